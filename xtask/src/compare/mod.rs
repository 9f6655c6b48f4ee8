//! `cargo xtask compare`: builds the official drivers and clients and the benchmarks around them, and runs those.

mod needs;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run as run_command;

/// Runs the chore; the arguments are those of the program in `peers`.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let manifest = root().join("peers/Cargo.toml");
    // What only looks at the plan needs nothing.
    let is_plan =
        |argument: &String| ["--list", "--help", "--markdown"].contains(&argument.as_str());
    let is_plan = arguments.iter().any(is_plan);
    let path = if is_plan {
        std::env::var_os("PATH").unwrap_or_default()
    } else {
        prepare()?
    };
    let cargo = |what: &str| {
        let mut command = Command::new("cargo");
        command
            .args([what, "--release", "--locked", "--quiet"])
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
    // Its exit code is that of the chore.
    let error = compare.arg("--").args(arguments).current_dir(root()).exec();
    Err(format!("{compare:?} cannot be run: {error}"))
}

/// Checks what the official C driver is built with, and builds the Java programs; gives the search path to build with.
fn prepare() -> Result<OsString, String> {
    needs::check()?;
    if let Err(reason) = interop() {
        eprintln!("cargo xtask compare: without the official Java driver: {reason}");
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
