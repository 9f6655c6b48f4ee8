//! Random scenarios: generated from seeds, with all invariants checked; see docs/testing.md.

use std::process::Command;

/// Builds the simulator with optimisation and debug assertions, and runs it with these arguments.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    super::run(
        Command::new("cargo")
            .args([
                "run",
                "--quiet",
                "--profile",
                "sim",
                "--package",
                "taran-sim",
            ])
            .args(["--example", "random-scenarios", "--"])
            .args(arguments),
    )
}
