// SPDX-License-Identifier: Apache-2.0
//! `taran fix`: dictionaries and messages of FIX.

mod check;
mod decode;
mod describe;
mod diff;
mod generate;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use taran_fix::dict::{Dictionary, Rejected, read_file};

use crate::failure::Failure;
use crate::printable;

/// Command-line arguments.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Dictionary of FIXT 1.1, for dictionaries of FIX 5.0 and later: header, trailer and session messages
    #[arg(long, value_name = "DICTIONARY", global = true)]
    transport: Option<PathBuf>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Report all problems of dictionaries
    Check(check::Arguments),
    /// Generate Rust encoders and decoders for a dictionary
    Generate(generate::Arguments),
    /// Describe messages and fields of a dictionary
    Describe(describe::Arguments),
    /// Report the differences of two dictionaries, and whether they are compatible
    Diff(diff::Arguments),
    /// Print the messages of a log
    Decode(decode::Arguments),
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let transport = arguments.transport.as_deref();
    match &arguments.command {
        Command::Check(arguments) => check::run(arguments),
        Command::Generate(arguments) => generate::run(arguments, transport),
        Command::Describe(arguments) => describe::run(arguments, transport),
        Command::Diff(arguments) => diff::run(arguments, transport),
        Command::Decode(arguments) => decode::run(arguments, transport),
    }
}

/// Reads a dictionary, over that of the transport if it needs one and there is one.
fn dictionary(path: &Path, transport: Option<&Path>) -> Result<Dictionary, Failure> {
    let dictionary = read_file(path).map_err(|rejected| unusable(&rejected))?;
    match transport {
        Some(transport) if dictionary.version().is_over_fixt() => {
            let transport = read_file(transport).map_err(|rejected| unusable(&rejected))?;
            Ok(dictionary.over(&transport))
        }
        _ => Ok(dictionary),
    }
}

fn unusable(rejected: &Rejected) -> Failure {
    let problems = rejected.to_string();
    Failure::Other(format!(
        "the dictionary cannot be used:\n{}",
        printable::lines(&problems)
    ))
}
