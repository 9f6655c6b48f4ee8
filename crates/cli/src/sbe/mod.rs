// SPDX-License-Identifier: Apache-2.0
//! `taran sbe`: Simple Binary Encoding schemas and messages.

mod check;
mod decode;
mod describe;
mod diff;
mod generate;
mod show;
mod source;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use taran_sbe::decode::Message;
use taran_sbe::model::Schema;

use crate::failure::Failure;

/// Command-line arguments.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Directory from which schemas may include files, besides their own directory and those below it
    #[arg(long, value_name = "DIR", global = true)]
    include_from: Vec<PathBuf>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Report all problems of schemas
    Check(check::Arguments),
    /// Describe the layout of the messages of a schema
    Describe(describe::Arguments),
    /// Report the changes between two versions of a schema, and whether they are compatible
    Diff(diff::Arguments),
    /// Generate Rust code for schemas
    Generate(generate::Arguments),
    /// Print messages
    Decode(decode::Arguments),
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let folders = arguments.include_from.as_slice();
    match &arguments.command {
        Command::Check(arguments) => check::run(arguments, folders),
        Command::Describe(arguments) => describe::run(arguments, folders),
        Command::Diff(arguments) => diff::run(arguments, folders),
        Command::Generate(arguments) => generate::run(arguments, folders),
        Command::Decode(arguments) => decode::run(arguments, folders),
    }
}

/// Reads the schema from a file or standard input. Warnings are left to `check`.
pub(crate) fn schema(path: &Path, folders: &[PathBuf]) -> Result<Schema, Failure> {
    Ok(source::schema(path, folders)?.schema)
}

/// Returns a message as text: one line per value.
pub(crate) fn message_text(message: &Message<'_>) -> String {
    show::message(message)
}
