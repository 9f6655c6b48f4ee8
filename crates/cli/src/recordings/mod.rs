// SPDX-License-Identifier: Apache-2.0
//! `taran recordings`: the recordings of an archive, through its files (docs/spec/archive.md §10) or a control session (§1).

mod change;
mod live;
mod messages;
mod place;
mod progress;
mod purge;
mod read;
mod show;
mod transfer;

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use taran_archive::files::Checksum;
use taran_archive::files::tools::Segments;

use crate::failure::Failure;
use place::{Archive, Directory};

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
ARCHIVE is the directory of an archive, stopped or running, or the control channel of a running one:

  taran recordings list /var/lib/archive
  taran recordings list 'aeron:udp?endpoint=archive.example:8010'
  taran recordings tail /var/lib/archive 3 --schema orders.xml
  taran recordings export /var/lib/archive 3 - | ssh other taran recordings import /var/lib/archive -

'list', 'describe', 'dump', 'tail' and 'export' read; 'mark', 'errors' read the files of DIR. 'verify', 'checksum', 'compact', 'orphans',
'migrate', 'import', 'mark-valid' and 'mark-invalid' change the files of DIR: they refuse to work while an archive uses them, and
make changes durable before they end. 'record', 'stop', 'replay', 'stop-replay', 'replicate' and 'stop-replication' need a running
archive: the one of the directory, or the one that answers on the channel. 'purge' works either way.

Exit status: 0 done, 1 failed or problems found, 2 incorrect usage, 130 interrupted.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List the recordings
    List(List),
    /// Show all fields of recordings, with a directory the purged and invalid ones included
    Describe(Describe),
    /// Show the frames of a recording, or its messages with an SBE schema
    Dump(Dump),
    /// Show the last messages of a recording, then those that are recorded meanwhile
    Tail(Tail),
    /// Start to record a stream, or extend a recording
    Record(live::Record),
    /// Stop recordings
    Stop(live::Stop),
    /// Replay a recording to a channel
    Replay(live::Replay),
    /// Stop a replay
    StopReplay(live::StopReplay),
    /// Copy a recording from another archive
    Replicate(live::Replicate),
    /// Stop a replication
    StopReplication(live::StopReplication),
    /// Delete a recording, or its segments before a position, for good
    Purge(purge::Purge),
    /// Write a recording to one file
    Export(transfer::Export),
    /// Add a recording from a file
    Import(transfer::Import),
    /// Show the mark file: process id, settings, last heartbeat
    Mark(Directory),
    /// Show the errors of the archive
    Errors(Directory),
    /// Verify recordings, and find the ends of those that were not stopped
    Verify(Verify),
    /// Store checksums in frames and catalog entries
    Checksum(Stamp),
    /// Remove invalid and purged recordings and their files for good
    Compact(Directory),
    /// Show or delete segment files that belong to no recording
    Orphans(Orphans),
    /// Show whether the files have the current format
    Migrate(Directory),
    /// Mark a recording as valid
    MarkValid(One),
    /// Mark a recording as invalid
    MarkInvalid(One),
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

#[derive(Args, Debug)]
struct Describe {
    #[command(flatten)]
    archive: Archive,

    /// The recording; all by default
    recording_id: Option<i64>,
}

/// One or all recordings.
#[derive(Args, Debug)]
struct Target {
    #[command(flatten)]
    directory: Directory,

    /// The recording; all by default
    recording_id: Option<i64>,
}

#[derive(Args, Debug)]
struct One {
    #[command(flatten)]
    directory: Directory,

    /// The recording
    recording_id: i64,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Exit status: 0 done, 1 failed, a frame is damaged or a message cannot be decoded, 2 incorrect usage, 130 interrupted.")]
struct Dump {
    #[command(flatten)]
    archive: Archive,

    /// The recording
    recording_id: i64,

    /// Start with the frame at this position [default: the start of the recording]
    #[arg(long, value_name = "POSITION")]
    position: Option<i64>,

    /// Show at most this number of frames, or of messages with --schema
    #[arg(long, value_name = "N", default_value_t = 100)]
    frames: u64,

    #[command(flatten)]
    format: messages::Format,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Without --position and --start, the last messages are shown first if ARCHIVE is a directory; of an archive that is reached by its
channel, only what is recorded from now on.

Exit status: 0 the recording has ended, 1 failed, 2 incorrect usage, 130 interrupted.")]
struct Tail {
    #[command(flatten)]
    archive: Archive,

    /// The recording
    recording_id: i64,

    /// Number of last frames that are shown first, for a directory
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    last: usize,

    /// Start at the start of the recording
    #[arg(long, conflicts_with_all = ["position", "last"])]
    start: bool,

    /// Start with the frame at this position
    #[arg(long, value_name = "POSITION", conflicts_with = "last")]
    position: Option<i64>,

    /// End after this number of frames, or of messages with --schema
    #[arg(long, value_name = "N")]
    frames: Option<u64>,

    /// End with what is recorded now
    #[arg(long)]
    no_follow: bool,

    #[command(flatten)]
    format: messages::Format,
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

    #[command(flatten)]
    progress: progress::ProgressOption,
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
        Verb::Describe(describe) => show::describe(describe),
        Verb::Dump(dump) => read::dump(dump),
        Verb::Tail(tail) => read::tail(tail),
        Verb::Record(record) => live::record(record),
        Verb::Stop(stop) => live::stop(stop),
        Verb::Replay(replay) => live::replay(replay),
        Verb::StopReplay(stop) => live::stop_replay(stop),
        Verb::Replicate(replicate) => live::replicate(replicate),
        Verb::StopReplication(stop) => live::stop_replication(stop),
        Verb::Purge(purge) => purge::purge(purge),
        Verb::Export(export) => transfer::export(export),
        Verb::Import(import) => transfer::import(import),
        Verb::Mark(directory) => show::mark(directory),
        Verb::Errors(directory) => show::errors(directory),
        Verb::Verify(verify) => change::verify(verify),
        Verb::Checksum(stamp) => change::checksum(stamp),
        Verb::Compact(directory) => change::compact(directory),
        Verb::Orphans(orphans) => change::orphans(orphans),
        Verb::Migrate(directory) => change::migrate(directory),
        Verb::MarkValid(one) => change::mark(one, true),
        Verb::MarkInvalid(one) => change::mark(one, false),
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
