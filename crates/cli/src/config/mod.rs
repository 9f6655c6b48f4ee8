//! `taran config`: options, what they mean, which values they have and why.

mod explain;
mod print;
mod sources;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// The arguments.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Explain an option: meaning, range, default, present value and where that comes from
    Explain(explain::Arguments),
    /// Print the value of every option and where it comes from
    Print(print::Arguments),
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        Command::Explain(arguments) => explain::run(arguments),
        Command::Print(arguments) => print::run(arguments),
    }
}
