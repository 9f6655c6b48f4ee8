// SPDX-License-Identifier: Apache-2.0
//! Runs random scenarios of drivers and clients with streams, of a log writer, or of
//! streams with full file systems; started by `cargo xtask sim`. See docs/testing.md.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use taran_sim::scenario::Suite;

fn main() -> ExitCode {
    taran_sim::command::main(&[
        Suite::streams(),
        taran_sim::log_writer::suite(None),
        taran_sim::full_memory::suite(None),
    ])
}
