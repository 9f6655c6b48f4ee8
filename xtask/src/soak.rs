// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask soak [--minutes M | --seconds S]`: builds the test `soak` of `taran-cli` and runs it in network namespaces of its
//! own.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Completion, TaskResult, at_least_one};

/// With the value `1`, a soak test that cannot run fails instead of being skipped.
const REQUIRED: &str = "TARAN_REQUIRE_NAMESPACES";

/// Script that checks the requirements: two namespaces and a lossy link between them.
const TRY: &str = include_str!("../../crates/cli/tests/namespaces/try.sh");

/// `cargo xtask soak [--minutes M | --seconds S]`; the default is one minute.
pub(crate) fn run(arguments: &[String]) -> TaskResult {
    let seconds = seconds(arguments)?;
    if let Err(why) = can_run() {
        if std::env::var(REQUIRED).is_ok_and(|value| value == "1") {
            return Err(format!("the soak test is required, but {why}"));
        }
        return Ok(Completion::Skipped(why));
    }
    super::run(
        Command::new("mvn")
            .args(["--quiet", "--batch-mode", "package"])
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../interop")),
    )?;
    let test = ["--package", "taran-cli", "--test", "soak"];
    super::run(
        Command::new("cargo")
            .args(["test", "--quiet", "--no-run"])
            .args(test),
    )?;
    // Offline: the namespace has no connection to the registry, and all dependencies are built.
    super::run(
        Command::new("unshare")
            .args(["-m", "-n", "cargo", "test", "--quiet", "--offline"])
            .args(test)
            .args(["--", "--exact", "soak", "--nocapture"])
            .env("NAMESPACES_TEST_INSIDE_ITS_OWN", "1")
            .env("TARAN_SOAK_SECONDS", seconds.to_string()),
    )?;
    Ok(Completion::Ran)
}

fn seconds(arguments: &[String]) -> Result<u64, String> {
    match arguments {
        [] => Ok(60),
        [unit, text] if unit == "--minutes" => Ok(60 * at_least_one(unit, text)?),
        [unit, text] if unit == "--seconds" => at_least_one(unit, text),
        _ => Err("usage: cargo xtask soak [--minutes M | --seconds S]".to_owned()),
    }
}

fn can_run() -> Result<(), String> {
    let tried = Command::new("unshare")
        .args(["-m", "-n", "sh", "-c", &format!("{TRY}\njava -version")])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if tried.status.success() {
        return Ok(());
    }
    let output = String::from_utf8_lossy(&tried.stderr).trim().to_owned();
    Err(format!(
        "it needs root, network namespaces, iproute2, nftables and a JDK: {output}"
    ))
}
