//! A day in the life of a network, in minutes: `cargo xtask soak [--minutes M | --seconds S]`.
//!
//! The story itself is the test `soak` of `taran-cli`, which is built here and run in a network of its own.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::at_least_one;

/// With the value `1`, a soak that cannot run fails.
const REQUIRED: &str = "TARAN_REQUIRE_NAMESPACES";

/// What has to work before anything is begun: two machines and a cable that loses, as between namespaces.
const TRY: &str = include_str!("../../crates/cli/tests/namespaces/try.sh");

/// `cargo xtask soak [--minutes M | --seconds S]`; one minute unless said otherwise.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let seconds = seconds(arguments)?;
    if let Err(why) = can_run() {
        if std::env::var(REQUIRED).is_ok_and(|value| value == "1") {
            return Err(format!("a soak is required, but {why}"));
        }
        eprintln!("SKIPPED: no soak: {why}");
        return Ok(());
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
    // Its network has no way out, and needs none any more.
    super::run(
        Command::new("unshare")
            .args(["-m", "-n", "cargo", "test", "--quiet", "--offline"])
            .args(test)
            .args(["--", "--exact", "soak", "--nocapture"])
            .env("NAMESPACES_TEST_INSIDE_ITS_OWN", "1")
            .env("TARAN_SOAK_SECONDS", seconds.to_string()),
    )
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
    let said = String::from_utf8_lossy(&tried.stderr).trim().to_owned();
    Err(format!(
        "it needs root, network namespaces, iproute2, nftables and a JDK: {said}"
    ))
}
