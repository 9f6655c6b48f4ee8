// SPDX-License-Identifier: Apache-2.0
//! `taran log`: the contents of a log buffer (docs/spec/uri-and-configuration.md §5.8).

mod frames;
mod show;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use taran_core::memory::{FileStorage, MemoryError};
use taran_protocol::log::LogBuffers;

use crate::failure::Failure;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Log buffers are the files NUMBER.logbuffer in the subdirectories publications and images of a driver's directory. NUMBER
is the registration id of a publication or the correlation id of an image. A log buffer may be in use: it is read once,
and a frame that is being written then appears as the end of its term.

The output is the metadata of the log buffer, then each frame of each of its three terms, in the order of the partitions
in the file. A term ends at its first uncommitted frame.

  taran log /dev/shm/aeron-me/publications/7.logbuffer
  taran log --bytes 16 --format ascii FILE      the first 16 bytes of each message, as text
  taran log --bytes 0 FILE                      headers only
  taran log --json FILE | jq .frames[0]

Exit status: 0 shown, 1 no such file, or it is no log buffer; 2 incorrect usage.")]
pub(crate) struct Arguments {
    /// The log buffer
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Maximum number of payload bytes to show per message [default: all]
    #[arg(short = 'b', long, value_name = "BYTES")]
    bytes: Option<usize>,

    /// Format of the payload
    #[arg(long, value_enum, default_value_t = Format::Hex)]
    format: Format,

    /// Do not show the default frame header
    #[arg(long)]
    skip_default_header: bool,

    /// Continue after a gap of zeroes, up to frames from an earlier use of the term
    #[arg(long)]
    scan_over_zeroes: bool,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Format of payload bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Two hexadecimal digits per byte
    Hex,
    /// ASCII characters; other bytes are escaped
    Ascii,
}

/// Reason why a file cannot be shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogFailure {
    #[error(
        "{0}; expected a file from the subdirectory publications or images of a driver's directory"
    )]
    Memory(#[from] MemoryError),
    #[error("{} is no log buffer: {source}", path.display())]
    NoLog {
        path: PathBuf,
        source: taran_protocol::log::LogError,
    },
}

/// Prints the log buffer.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    // A mapping would allocate pages of the driver's file system where the log has holes, or fail with SIGBUS.
    let region = FileStorage
        .copy(&arguments.file)
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
