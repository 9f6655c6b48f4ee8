// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask python`: builds the wheel and the source distribution of the Python package, and tests them in a virtual
//! environment.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::sources::{files_below, root};
use crate::{Completion, TaskResult, run};

/// Tools of the virtual environment.
const TOOLS: &[&str] = &["maturin==1.16.0", "mypy==2.4.1"];

const MANIFEST: &str = "bindings/python/Cargo.toml";

pub(crate) fn python(arguments: &[String]) -> TaskResult {
    if !arguments.is_empty() {
        return Err("it takes no arguments".to_owned());
    }
    let can_run = Command::new("python3")
        .args([
            "-c",
            "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))",
        ])
        .status();
    if !can_run.is_ok_and(|status| status.success()) {
        let reason = "needs Python 3.11 with venv (Debian: python3-venv)";
        return Ok(Completion::Skipped(reason.to_owned()));
    }
    let folder = root().join("target/python");
    let environment = folder.join("venv");
    let tool = |name: &str| Command::new(environment.join("bin").join(name));
    run(Command::new("python3")
        .args(["-m", "venv"])
        .arg(&environment))?;
    run(tool("pip")
        .args(["install", "--quiet", "--retries", "3"])
        .args(TOOLS))?;

    run(Command::new("cargo")
        .args(["fmt", "--check", "--manifest-path", MANIFEST])
        .current_dir(root()))?;
    run(Command::new("cargo")
        .args([
            "clippy",
            "--locked",
            "--quiet",
            "--no-deps",
            "--manifest-path",
            MANIFEST,
            "--target-dir",
        ])
        .arg(&folder)
        .args(["--", "-D", "warnings"])
        .current_dir(root()))?;

    let wheels = folder.join("wheels");
    if wheels.exists() {
        fs::remove_dir_all(&wheels).map_err(|error| format!("{}: {error}", wheels.display()))?;
    }
    run(tool("maturin")
        .args(["sdist", "--manifest-path", MANIFEST, "--out"])
        .arg(&wheels)
        .current_dir(root()))?;
    let sources = files_below(&wheels, &[".tar.gz"]);
    let [sdist] = &sources[..] else {
        return Err(format!(
            "one source distribution is expected, not {sources:?}"
        ));
    };
    run(tool("maturin")
        .args([
            "build",
            "--locked",
            "--manifest-path",
            MANIFEST,
            "--target-dir",
        ])
        .arg(&folder)
        .arg("--out")
        .arg(&wheels)
        .current_dir(root()))?;
    let built = files_below(&wheels, &[".whl"]);
    let [wheel] = &built[..] else {
        return Err(format!("one wheel is expected, not {built:?}"));
    };
    let package = root().join("bindings/python");
    run(tool("python")
        .arg(package.join("tests/check_distribution.py"))
        .args([wheel, sdist]))?;
    // It builds outside of the repository: pip unpacks it in a directory of its own. A wheel of it needs no second test.
    run(tool("pip")
        .args(["wheel", "--quiet", "--no-deps", "--no-build-isolation"])
        .arg("--wheel-dir")
        .arg(wheels.join("from-sources"))
        .arg(sdist)
        .env("CARGO_TARGET_DIR", &folder)
        .env("MATURIN_PEP517_ARGS", "--profile dev --locked")
        // The build backend is the maturin of the environment.
        .env("PATH", path_with(&environment.join("bin"))?))?;
    run(tool("pip")
        .args(["install", "--quiet", "--force-reinstall", "--no-deps"])
        .arg(wheel))?;

    run(tool("mypy")
        .args(["--strict", "tests", "examples"])
        .current_dir(&package))?;
    // In a folder without the sources, so that it is the installed package that is checked.
    run(tool("stubtest").arg("taran").current_dir(&folder))?;
    run(tool("python")
        .args(["-W", "error::ResourceWarning"])
        .arg(package.join("tests/test_taran.py"))
        .arg("--verbose")
        .current_dir(&folder))?;
    Ok(Completion::Ran)
}

/// Returns the search path with a directory before all others.
fn path_with(directory: &Path) -> Result<OsString, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let others = std::env::split_paths(&path);
    let all = std::iter::once(directory.to_owned()).chain(others);
    std::env::join_paths(all).map_err(|error| error.to_string())
}
