//! Runs random scenarios of drivers and clients with streams; started by `cargo xtask sim`. See docs/testing.md.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use taran_sim::scenario::Suite;

fn main() -> ExitCode {
    taran_sim::command::main(&[Suite::streams()])
}
