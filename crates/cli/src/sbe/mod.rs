//! `taran sbe`: schemas of Simple Binary Encoding, and messages by them.

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
use taran_sbe::model::Schema;

use crate::failure::Failure;

/// The arguments.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// A folder that schemas may include files from, besides their own and those below it
    #[arg(long, value_name = "DIR", global = true)]
    include_from: Vec<PathBuf>,

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
    let folders = arguments.include_from.as_slice();
    match &arguments.command {
        Command::Check(arguments) => check::run(arguments, folders),
        Command::Describe(arguments) => describe::run(arguments, folders),
        Command::Diff(arguments) => diff::run(arguments, folders),
        Command::Generate(arguments) => generate::run(arguments, folders),
        Command::Decode(arguments) => decode::run(arguments, folders),
    }
}

/// The schema in a file, or on standard input; what is only dubious about it is for `check` to tell.
fn schema(path: &Path, folders: &[PathBuf]) -> Result<Schema, Failure> {
    Ok(source::schema(path, folders)?.schema)
}
