//! `taran recordings`: the files of an archive that does not run (docs/spec/archive.md §10).

mod change;
mod show;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use taran_archive::files::tools::{Segments, StoppedArchive};
use taran_archive::files::{CatalogOptions, Checksum, SyncLevel};
use taran_storage::{Disk, OsDisk};

use crate::failure::Failure;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Commands that change files refuse to work while an archive uses the directory, and make changes durable before they end.
'list', 'describe', 'dump', 'mark' and 'errors' change nothing, and work on a running archive too.

Exit status: 0 done, 1 failed or problems found, 2 incorrect usage.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List the recordings
    List(List),
    /// Show all fields of recordings, the purged and invalid ones included
    Describe(Target),
    /// Show the frames of a recording
    Dump(Dump),
    /// Show the mark file: process id, settings, last heartbeat
    Mark(Archive),
    /// Show the errors of the archive
    Errors(Archive),
    /// Verify recordings, and find the ends of those that were not stopped
    Verify(Verify),
    /// Store checksums in frames and catalog entries
    Checksum(Stamp),
    /// Remove invalid and purged recordings and their files for good
    Compact(Archive),
    /// Show or delete segment files that belong to no recording
    Orphans(Orphans),
    /// Mark a recording as valid
    MarkValid(One),
    /// Mark a recording as invalid
    MarkInvalid(One),
}

/// The directory of an archive.
#[derive(Args, Debug)]
struct Archive {
    /// Directory of the archive (aeron.archive.dir)
    directory: PathBuf,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
struct List {
    #[command(flatten)]
    archive: Archive,

    /// Only recordings of this stream
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    stream: Option<i32>,

    /// Only recordings whose channel contains this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    channel: String,

    /// Print only the number of recordings
    #[arg(long)]
    count: bool,
}

/// One or all recordings.
#[derive(Args, Debug)]
struct Target {
    #[command(flatten)]
    archive: Archive,

    /// The recording; all by default
    recording_id: Option<i64>,
}

#[derive(Args, Debug)]
struct One {
    #[command(flatten)]
    archive: Archive,

    /// The recording
    recording_id: i64,
}

#[derive(Args, Debug)]
struct Dump {
    #[command(flatten)]
    archive: Archive,

    /// The recording
    recording_id: i64,

    /// Show at most this number of frames
    #[arg(long, value_name = "N", default_value_t = 100)]
    frames: u64,

    /// Show at most this number of bytes of each frame
    #[arg(long, value_name = "N", default_value_t = 64)]
    bytes: usize,
}

#[derive(Args, Debug)]
struct Verify {
    #[command(flatten)]
    target: Target,

    /// Read all segment files, not only the last one of each recording
    #[arg(short, long)]
    all: bool,

    /// Verify checksums: CRC-32, CRC-32C, or the name of the official class
    #[arg(long, value_name = "NAME")]
    checksum: Option<Checksum>,

    /// Change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args, Debug)]
struct Stamp {
    /// Algorithm: CRC-32, CRC-32C, or the name of the official class
    #[arg(long, value_name = "NAME")]
    checksum: Checksum,

    #[command(flatten)]
    target: Target,

    /// Write all segment files, not only the last one of each recording
    #[arg(short, long)]
    all: bool,
}

#[derive(Args, Debug)]
struct Orphans {
    #[command(flatten)]
    target: Target,

    /// Delete them
    #[arg(long)]
    delete: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.verb {
        Verb::List(list) => show::list(list),
        Verb::Describe(target) => show::describe(target),
        Verb::Dump(dump) => show::dump(dump),
        Verb::Mark(archive) => show::mark(archive),
        Verb::Errors(archive) => show::errors(archive),
        Verb::Verify(verify) => change::verify(verify),
        Verb::Checksum(stamp) => change::checksum(stamp),
        Verb::Compact(archive) => change::compact(archive),
        Verb::Orphans(orphans) => change::orphans(orphans),
        Verb::MarkValid(one) => change::mark(one, true),
        Verb::MarkInvalid(one) => change::mark(one, false),
    }
}

impl Archive {
    fn disk() -> Arc<dyn Disk> {
        Arc::new(OsDisk)
    }

    /// Opens the files for changes.
    fn open(&self, checksum: Option<Checksum>) -> Result<StoppedArchive, Failure> {
        let options = CatalogOptions {
            checksum,
            sync: SyncLevel::Data,
            ..CatalogOptions::default()
        };
        StoppedArchive::open(&Self::disk(), &self.directory, options, now_ms()).map_err(other)
    }
}

/// Returns the segment files to work on.
fn segments(all: bool) -> Segments {
    if all { Segments::All } else { Segments::Last }
}

/// Returns the time in epoch milliseconds.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

/// Converts an error whose text says what to do.
fn other(error: impl std::fmt::Display) -> Failure {
    Failure::Other(error.to_string())
}
