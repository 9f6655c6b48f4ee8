// SPDX-License-Identifier: Apache-2.0
//! Our archive, and loads on an archive of either implementation by our client.

#![forbid(unsafe_code)]

mod archived;
mod files;
mod limit;
mod record;
mod replay;
mod requests;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Parser, Subcommand};
use taran_bench::side::RunError;
use taran_peers::bench::{Found, conclude, end_with_parent};
use taran_peers::measured::Measured;

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run an archive until the end of standard input; options are environment variables
    Run {
        /// With a driver in the process
        #[arg(long)]
        driver: bool,
    },
    /// Write a directory with recordings
    Files(files::Recordings),
    /// Record streams at full rate
    Record(Load),
    /// Measure the times from offers to the recorded position
    Durability {
        #[command(flatten)]
        load: Load,
        /// Messages per second of all streams
        #[arg(long)]
        rate: u64,
    },
    /// Replay a recording at full rate
    Replay(Load),
    /// Measure the times from the connection to the first replayed message
    Connect(Load),
    /// List all recordings, again and again
    List(Load),
    /// Find a recording by its channel, again and again
    Find(Load),
    /// Record a channel until the end of standard input
    Beside(Load),
    /// Hold idle recordings and control sessions until the end of standard input
    Hold {
        #[command(flatten)]
        load: Load,
        /// Number of sessions beside that of the client
        #[arg(long, default_value_t = 0)]
        sessions: u16,
    },
    /// Write blocks to files as an archive does
    Write(limit::Blocks),
    /// Read blocks of files into memory
    Read(limit::Blocks),
}

/// Load on an archive.
#[derive(Args, Debug, Clone)]
struct Load {
    /// Aeron directory of the driver
    #[arg(long)]
    aeron_dir: PathBuf,
    /// Channel of the streams
    #[arg(long, default_value = "aeron:ipc?term-length=16m")]
    channel: String,
    /// Payload bytes of a message
    #[arg(long, default_value_t = 288)]
    length: usize,
    /// Number of recorded streams
    #[arg(long, default_value_t = 1)]
    streams: u16,
    /// Record what the driver receives in place of what it sends
    #[arg(long)]
    remote: bool,
    /// Bytes recorded by a round, or of the recording that is replayed
    #[arg(long, default_value_t = 512 << 20)]
    bytes: u64,
    /// Duration of the measurement in milliseconds
    #[arg(long, default_value_t = 1_000)]
    measure_ms: u64,
    /// Duration of the warm-up in milliseconds
    #[arg(long, default_value_t = 500)]
    warmup_ms: u64,
    /// Core of the client's thread
    #[arg(long)]
    cpu: Option<usize>,
}

/// Bytes that a round has moved, and the time that it took.
type Round = Result<(u64, Duration), RunError>;

/// Repeats a round for the warm-up, then for the measurement. Returns megabytes per second of the latter.
fn repeat([warmup_ms, measure_ms]: [u64; 2], mut round: impl FnMut() -> Round) -> Found {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(warmup_ms) {
        round()?;
    }
    let (mut bytes, mut elapsed) = (0, Duration::ZERO);
    while elapsed < Duration::from_millis(measure_ms) {
        let (more, time) = round()?;
        bytes += more;
        elapsed += time;
    }
    Ok(Some(Measured::of(
        bytes as f64 / 1e6 / elapsed.as_secs_f64(),
    )))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let stop = end_with_parent();
    conclude(match &arguments.task {
        Task::Run { driver } => run::run(*driver, &stop).map(|()| None),
        Task::Files(recordings) => files::write(recordings).map(|()| None),
        Task::Record(load) => record::throughput(load),
        Task::Durability { load, rate } => record::durability(load, *rate),
        Task::Replay(load) => replay::throughput(load),
        Task::Connect(load) => replay::connect(load),
        Task::List(load) => requests::list(load),
        Task::Find(load) => requests::find(load),
        Task::Beside(load) => record::beside(load, &stop).map(|()| None),
        Task::Hold { load, sessions } => requests::hold(load, *sessions, &stop).map(|()| None),
        Task::Write(blocks) => limit::write(blocks),
        Task::Read(blocks) => limit::read(blocks),
    })
}
