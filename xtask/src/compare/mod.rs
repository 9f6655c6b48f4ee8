// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask compare`: builds the official drivers and clients with the benchmarks, and runs these.

mod needs;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run as run_command;

/// Runs the task; the arguments are those of the program in `peers`.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let manifest = root().join("peers/Cargo.toml");
    // These options need neither the official implementations nor their build tools.
    let is_plan =
        |argument: &String| ["--list", "--help", "--markdown"].contains(&argument.as_str());
    let is_plan = arguments.iter().any(is_plan);
    let path = if is_plan {
        std::env::var_os("PATH").unwrap_or_default()
    } else {
        prepare()?
    };
    let cargo = |subcommand: &str| {
        let mut command = Command::new("cargo");
        command
            .args([subcommand, "--release", "--locked", "--quiet"])
            .arg("--manifest-path")
            .arg(&manifest)
            .env("PATH", &path);
        command
    };
    let mut compare = cargo("run");
    compare.args(["--bin", "compare"]);
    if is_plan {
        compare.arg("--no-default-features");
    } else {
        run_command(&mut cargo("build"))?;
    }
    // `exec`, so that the exit code of the program is that of the task.
    let error = compare.arg("--").args(arguments).current_dir(root()).exec();
    Err(format!("cannot run {compare:?}: {error}"))
}

/// Checks the build tools of the official C driver, and builds the Java programs. Returns the search path for the build.
fn prepare() -> Result<OsString, String> {
    needs::check()?;
    if let Err(reason) = interop() {
        eprintln!("cargo xtask compare: skipping the official Java driver: {reason}");
    }
    needs::path_with_cmake(&root().join("target/cmake"))
}

fn interop() -> Result<(), String> {
    run_command(
        Command::new("mvn")
            .args(["--quiet", "--batch-mode", "package"])
            .current_dir(root().join("interop")),
    )
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
