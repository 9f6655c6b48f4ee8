//! `taran sbe`: schemas of Simple Binary Encoding, and messages by them.

mod check;
mod decode;
mod describe;
mod diff;
mod generate;
mod show;

use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use taran_sbe::compile_file;
use taran_sbe::model::Schema;

use crate::failure::Failure;

/// The arguments.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Tell everything that is wrong with schemas
    Check(check::Arguments),
    /// Show what lies where in the messages of a schema
    Describe(describe::Arguments),
    /// Tell what changed between two versions of a schema, and whether they understand each other
    Diff(diff::Arguments),
    /// Make Rust of schemas
    Generate(generate::Arguments),
    /// Show what is in messages
    Decode(decode::Arguments),
}

/// Does what was asked.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        Command::Check(arguments) => check::run(arguments),
        Command::Describe(arguments) => describe::run(arguments),
        Command::Diff(arguments) => diff::run(arguments),
        Command::Generate(arguments) => generate::run(arguments),
        Command::Decode(arguments) => decode::run(arguments),
    }
}

/// The schema in a file; what is only dubious about it is for `check` to tell.
fn schema(path: &Path) -> Result<Schema, Failure> {
    Ok(compile_file(path)?.schema)
}
