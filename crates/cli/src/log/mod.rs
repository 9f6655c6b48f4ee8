//! `taran log`: what a log buffer holds (docs/spec/uri-and-configuration.md §5.8).

mod frames;
mod show;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use taran_core::memory::{FileStorage, MemoryError, Storage};
use taran_protocol::log::LogBuffers;

use crate::failure::Failure;

/// The arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
A log is a file in the folder publications or images of a driver's directory, NUMBER.logbuffer; the number is the
registration id of a publication or the correlation id of an image. It may be in use: then a frame that is just written
shows as the end of its term.

First what the log says of itself, then each frame of each of its three terms, oldest partition first in the file's
order. A term ends at its first frame that is not committed.

  taran log /dev/shm/aeron-me/publications/7.logbuffer
  taran log --bytes 16 --format ascii FILE      the first 16 bytes of each message, as text
  taran log --bytes 0 FILE                      headers only
  taran log --json FILE | jq .frames[0]

Exit status: 0 shown, 1 no such file, or it is no log; 2 wrong usage.")]
pub(crate) struct Arguments {
    /// The log
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Most bytes of each message to show [default: all]
    #[arg(short = 'b', long, value_name = "BYTES")]
    bytes: Option<usize>,

    /// How to show them
    #[arg(long, value_enum, default_value_t = Format::Hex)]
    format: Format,

    /// Do not show the template of frame headers
    #[arg(long)]
    skip_default_header: bool,

    /// Go on behind a gap of zeroes, to what was written there before
    #[arg(long)]
    scan_over_zeroes: bool,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// How bytes are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Two digits for each byte
    Hex,
    /// Characters; what is none is escaped
    Ascii,
}

/// Why a file is not shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogFailure {
    #[error("{0}; name a file of the folder publications or images of a driver's directory")]
    Memory(#[from] MemoryError),
    #[error("{} is no log: {source}", path.display())]
    NoLog {
        path: PathBuf,
        source: taran_protocol::log::LogError,
    },
}

/// Shows it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let region = FileStorage
        .open(&arguments.file)
        .map_err(LogFailure::from)?;
    let log = LogBuffers::open(&region).map_err(|source| LogFailure::NoLog {
        path: arguments.file.clone(),
        source,
    })?;
    if arguments.json {
        show::json(&log, arguments)?;
    } else {
        show::text(&log, arguments)?;
    }
    Ok(ExitCode::SUCCESS)
}
