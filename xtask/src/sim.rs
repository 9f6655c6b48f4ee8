//! Random worlds: many stories from seeds, with everything checked that must always hold; see docs/testing.md.

use std::process::Command;

/// Builds the program with optimisation and all checks, and runs it with these arguments.
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
            .args(["--example", "random-worlds", "--"])
            .args(arguments),
    )
}
