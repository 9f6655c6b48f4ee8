// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask deb`: builds the Debian package, looks into it, installs it in a copy of this system and removes it again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::packaging::runs;
use crate::{Completion, TaskResult};

/// Made from the description of the command line, for the package.
const GENERATED: &str = "target/packaging";

/// Directory in which cargo-deb is installed, unless this machine has it.
const TOOLS: &str = "target/tools";
const CARGO_DEB: &str = "3.8.0";

/// Directory and settings of a build that is quick: cargo-deb takes binaries of the release profile only.
const QUICK: &str = "target/quick";
const UNOPTIMISED: &[(&str, &str)] = &[
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"),
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "0"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "256"),
];

const MAINTAINER: &str = "Taran developers <taran-io@users.noreply.github.com>";

/// Paths that a package must contain, besides what cargo-deb adds.
const CONTENTS: &[&str] = &[
    "./usr/bin/taran",
    "./etc/taran/driver.properties",
    "./etc/taran/archive.properties",
    "./usr/lib/systemd/system/taran-driver.service",
    "./usr/lib/systemd/system/taran-archive.service",
    "./usr/lib/sysusers.d/taran.conf",
    "./usr/share/man/man1/taran.1.gz",
    "./usr/share/man/man1/taran-driver.1.gz",
    "./usr/share/bash-completion/completions/taran",
    "./usr/share/zsh/vendor-completions/_taran",
    "./usr/share/fish/vendor_completions.d/taran.fish",
    "./usr/share/doc/taran/copyright",
    "./usr/share/doc/taran/changelog.Debian.gz",
    "./usr/share/doc/taran/changelog.gz",
];

/// Installs a package, runs driver and archive as its units would, and purges it; in namespaces and a copy of this system.
const TRIAL: &str = include_str!("trial.sh");

#[derive(Default)]
struct Options {
    target: Option<String>,
    output: Option<PathBuf>,
    /// Builds without optimisation, to try the package and not to release it.
    quick: bool,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let usage = "usage: cargo xtask deb [--quick] [--target TARGET] [--output DIR]";
        let mut options = Self::default();
        let mut words = arguments.iter();
        while let Some(name) = words.next() {
            let mut value = || words.next().ok_or(usage);
            match name.as_str() {
                "--quick" => options.quick = true,
                "--target" => options.target = Some(value()?.clone()),
                "--output" => options.output = Some(PathBuf::from(value()?)),
                _ => return Err(usage.to_owned()),
            }
        }
        Ok(options)
    }
}

/// `cargo xtask deb [--quick] [--target TARGET] [--output DIR]`.
pub(crate) fn deb(arguments: &[String]) -> TaskResult {
    let options = Options::parse(arguments)?;
    // cargo-deb finds the dependencies of the binary with dpkg-shlibdeps.
    if !runs("dpkg-shlibdeps", &["--version"]) {
        return Ok(Completion::Skipped(
            "dpkg-shlibdeps is not installed (package dpkg-dev)".to_owned(),
        ));
    }
    let Some(cargo_deb) = cargo_deb() else {
        return Ok(Completion::Skipped(format!(
            "cargo-deb {CARGO_DEB} is not installed and cannot be (`cargo install cargo-deb --locked`)"
        )));
    };
    let mut shared = vec!["--locked", "--package", "taran-cli"];
    if let Some(target) = &options.target {
        shared.extend(["--target", target]);
    }
    let target_directory = if options.quick { QUICK } else { "target" };
    let settings = if options.quick { UNOPTIMISED } else { &[] };
    super::run(
        Command::new("cargo")
            .args(["build", "--release"])
            .args(&shared)
            .env("CARGO_TARGET_DIR", target_directory)
            .envs(settings.iter().copied()),
    )?;
    let mut binary = PathBuf::from(target_directory);
    binary.extend(&options.target);
    binary.push("release/taran");
    generate(&binary)?;

    let output = options
        .output
        .unwrap_or_else(|| PathBuf::from("target/debian"));
    fs::create_dir_all(&output).map_err(|error| format!("cannot make {output:?}: {error}"))?;
    let package = output_of(
        Command::new(cargo_deb)
            .args(["--no-build", "--strip"])
            .args(&shared)
            .env("CARGO_TARGET_DIR", target_directory)
            .arg("--output")
            .arg(&output),
    )?;
    let package = Path::new(package.trim());
    check_contents(package)?;
    let left_out: Vec<_> = [lint(package)?, try_out(package)?]
        .into_iter()
        .flatten()
        .collect();
    println!("{}", package.display());
    Ok(if left_out.is_empty() {
        Completion::Ran
    } else {
        Completion::Skipped(format!(
            "the package is built, but {}",
            left_out.join(", and ")
        ))
    })
}

/// Returns the program cargo-deb, which is installed below `target` if this machine has none.
fn cargo_deb() -> Option<PathBuf> {
    if runs("cargo-deb", &["--version"]) {
        return Some(PathBuf::from("cargo-deb"));
    }
    let own = Path::new(TOOLS).join("bin/cargo-deb");
    if !own.exists() {
        let install = ["install", "cargo-deb", "--locked", "--debug", "--version"];
        let installed = Command::new("cargo")
            .args(install)
            .args([CARGO_DEB, "--root", TOOLS])
            .stdin(Stdio::null())
            .status();
        if !installed.is_ok_and(|status| status.success()) {
            return None;
        }
    }
    std::path::absolute(own).ok()
}

/// Makes the manual pages, completions and the changelog of the package.
fn generate(binary: &Path) -> Result<(), String> {
    let directory = Path::new(GENERATED);
    let completions = directory.join("completions");
    fs::create_dir_all(&completions)
        .map_err(|error| format!("cannot make {completions:?}: {error}"))?;
    super::run(
        Command::new(binary)
            .arg("manual")
            .arg(directory.join("man")),
    )?;
    let write = |file: &Path, text: &str| {
        fs::write(file, text).map_err(|error| format!("cannot write {file:?}: {error}"))
    };
    for shell in ["bash", "zsh", "fish"] {
        let text = output_of(Command::new(binary).args(["completions", shell]))?;
        write(&completions.join(format!("taran.{shell}")), &text)?;
    }
    // The one that Debian asks for, with the date of the commit; what has changed is in that of the project.
    let date = output_of(Command::new("git").args(["log", "-1", "--format=%cD"]))?;
    let version = output_of(Command::new(binary).arg("version"))?;
    let version = version.split_whitespace().nth(1).unwrap_or_default();
    let changelog = format!(
        "taran ({version}-1) unstable; urgency=medium\n\n  * See /usr/share/doc/taran/changelog.gz.\n\n \
         -- {MAINTAINER}  {date}"
    );
    write(&directory.join("changelog"), &changelog)
}

fn check_contents(package: &Path) -> Result<(), String> {
    let listing = output_of(Command::new("dpkg-deb").arg("--contents").arg(package))?;
    let paths: Vec<&str> = listing
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .collect();
    let missing: Vec<&str> = CONTENTS
        .iter()
        .copied()
        .filter(|wanted| !paths.contains(wanted))
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "{} does not contain {}",
            package.display(),
            missing.join(", ")
        ))
    }
}

/// Checks the package against the policy of Debian. Returns what was left out, and why.
fn lint(package: &Path) -> Result<Option<&'static str>, String> {
    if !runs("lintian", &["--version"]) {
        return Ok(Some("not checked: lintian is not on this machine"));
    }
    super::run(
        Command::new("lintian")
            .args([
                "--allow-root",
                "--fail-on",
                "error,warning",
                // It is not uploaded to Debian.
                "--suppress-tags",
                "initial-upload-closes-no-bugs",
                "--tag-display-limit",
                "0",
            ])
            .arg(package),
    )?;
    Ok(None)
}

/// Installs, runs and removes the package in a copy of this system. Returns what was left out, and why.
fn try_out(package: &Path) -> Result<Option<&'static str>, String> {
    let namespaces = ["--mount", "--net", "--pid", "--fork", "--kill-child"];
    let isolated = |program: &str| {
        let mut command = Command::new("unshare");
        command.args(namespaces).args(["sh", "-euc", program]);
        command
    };
    let can_run = "mount -t tmpfs none /mnt && mkdir /mnt/upper /mnt/work /mnt/root \
                   && mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work none /mnt/root \
                   && command -v systemd-sysusers systemd-analyze ip runuser";
    let probe = isolated(can_run)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !probe.is_ok_and(|status| status.success()) {
        return Ok(Some(
            "not installed: that needs root, namespaces, overlayfs, systemd and iproute2",
        ));
    }
    let package = std::path::absolute(package).map_err(|error| error.to_string())?;
    super::run(isolated(TRIAL).arg("trial").arg(package))?;
    Ok(None)
}

fn output_of(command: &mut Command) -> Result<String, String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?} ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{command:?} printed no UTF-8"))
}
