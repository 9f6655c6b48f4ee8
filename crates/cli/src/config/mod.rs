// SPDX-License-Identifier: Apache-2.0
//! `taran config`: the meaning, the values and the sources of options.

mod explain;
mod print;
mod sources;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Command-line arguments.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Explain an option: meaning, range, default, current value and its source
    Explain(explain::Arguments),
    /// Print the value of every option and its source
    Print(print::Arguments),
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        Command::Explain(arguments) => explain::run(arguments),
        Command::Print(arguments) => print::run(arguments),
    }
}
