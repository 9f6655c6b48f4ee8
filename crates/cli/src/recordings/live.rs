// SPDX-License-Identifier: Apache-2.0
//! Commands for a running archive.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use taran_archive_client::protocol::{
    NULL_VALUE, RecordingSignal, RecordingSignalEvent, SourceLocation,
};
use taran_archive_client::{ArchiveEvent, ReplayParams, ReplaySession, ReplicationParams};

use super::other;
use super::place::{Archive, Live};
use super::progress::{self, Progress};
use crate::failure::Failure;
use crate::output;

/// Interval at which positions are asked for.
const POSITION_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Args, Debug)]
#[command(after_help = "\
The recording goes on after the command has ended: 'taran recordings stop' ends it.

  taran recordings record /var/lib/archive aeron:ipc 1001
  taran recordings record /var/lib/archive 'aeron:udp?endpoint=224.20.30.39:24326' 10 --remote")]
pub(super) struct Record {
    #[command(flatten)]
    archive: Archive,

    /// Channel of the stream
    channel: String,

    /// Stream id
    #[arg(allow_negative_numbers = true)]
    stream_id: i32,

    /// Receive the stream from the network, in place of the publications of the archive's driver
    #[arg(long)]
    remote: bool,

    /// Extend this stopped recording, with a stream that begins where it ends
    #[arg(long, value_name = "RECORDING")]
    extend: Option<i64>,

    /// Stop to wait for other publishers when a recording has ended
    #[arg(long)]
    auto_stop: bool,

    /// Wait until a recording has started, at most for the timeout
    #[arg(long)]
    wait: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
A recording subscription records each publisher of its stream in a recording of its own. Stopped by its id, a recording ends alone.")]
#[group(required = true, multiple = false, id = "which", args = ["recording_id", "subscription", "channel"])]
pub(super) struct Stop {
    #[command(flatten)]
    archive: Archive,

    /// The recording
    recording_id: Option<i64>,

    /// Stop the recordings of this recording subscription, which 'record' has printed
    #[arg(long, value_name = "ID")]
    subscription: Option<i64>,

    /// Stop the recordings of this channel and of the stream id
    #[arg(long, value_name = "CHANNEL", requires = "stream")]
    channel: Option<String>,

    /// Stream id for --channel
    #[arg(
        long,
        value_name = "ID",
        requires = "channel",
        allow_negative_numbers = true
    )]
    stream: Option<i32>,
}

#[derive(Args, Debug)]
#[command(after_help = "\
The replay goes on after the command has ended. It ends by itself if no subscriber is there within seconds
(aeron.archive.connect.timeout).")]
pub(super) struct Replay {
    #[command(flatten)]
    archive: Archive,

    /// The recording
    recording_id: i64,

    /// Channel of the replay
    channel: String,

    /// Stream id of the replay
    #[arg(allow_negative_numbers = true)]
    stream_id: i32,

    /// Position to start at, that of a frame [default: the start of the recording]
    #[arg(long, value_name = "POSITION")]
    position: Option<i64>,

    /// Number of bytes [default: all; an active recording is followed]
    #[arg(long, value_name = "BYTES", conflicts_with = "until_now")]
    length: Option<i64>,

    /// End with what is recorded now
    #[arg(long)]
    until_now: bool,
}

#[derive(Args, Debug)]
pub(super) struct StopReplay {
    #[command(flatten)]
    archive: Archive,

    /// The replay, which 'replay' has printed
    #[arg(allow_negative_numbers = true)]
    replay_id: i64,
}

#[derive(Args, Debug)]
#[command(after_help = "\
ARCHIVE is the archive that gets the copy; its own process connects to the source.

  taran recordings replicate /var/lib/archive 'aeron:udp?endpoint=source.example:8010' 3")]
pub(super) struct Replicate {
    #[command(flatten)]
    archive: Archive,

    /// Control channel of the source archive, as the archive that gets the copy reaches it
    source: String,

    /// The recording of the source archive
    recording_id: i64,

    /// Stream id for requests to the source archive
    #[arg(long, value_name = "ID", default_value_t = 10)]
    source_stream: i32,

    /// Extend this recording in place of a new one
    #[arg(long, value_name = "RECORDING")]
    into: Option<i64>,

    /// End at this position
    #[arg(long, value_name = "POSITION")]
    stop_position: Option<i64>,

    /// Join the live stream at this channel when the copy has caught up
    #[arg(long, value_name = "CHANNEL")]
    live: Option<String>,

    /// Channel for the data [default: that of the archive's configuration]
    #[arg(long, value_name = "CHANNEL")]
    replication_channel: Option<String>,

    /// Do not wait for the end
    #[arg(long)]
    detach: bool,

    #[command(flatten)]
    progress: progress::ProgressOption,
}

#[derive(Args, Debug)]
pub(super) struct StopReplication {
    #[command(flatten)]
    archive: Archive,

    /// The replication, which 'replicate' has printed
    #[arg(allow_negative_numbers = true)]
    replication_id: i64,
}

#[derive(Debug, Serialize)]
struct ShownRecord {
    subscription_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    recording_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<i64>,
}

/// Starts a recording.
pub(super) fn record(record: &Record) -> Result<ExitCode, Failure> {
    let mut live = record.archive.connect()?;
    let location = if record.remote {
        SourceLocation::REMOTE
    } else {
        SourceLocation::LOCAL
    };
    let (channel, stream, auto_stop) = (&record.channel, record.stream_id, record.auto_stop);
    let subscription_id = match record.extend {
        Some(id) => live
            .archive
            .extend_recording(id, channel, stream, location, auto_stop),
        None => live
            .archive
            .start_recording(channel, stream, location, auto_stop),
    }
    .map_err(other)?;
    let mut shown = ShownRecord {
        subscription_id,
        recording_id: None,
        position: None,
    };
    if record.wait {
        let is_start = |signal: &RecordingSignalEvent| {
            signal.subscription_id == subscription_id
                && (signal.signal == RecordingSignal::START
                    || signal.signal == RecordingSignal::EXTEND)
        };
        let started = live.archive.wait_for_signal(is_start);
        let started = started.map_err(|error| {
            other(format!(
                "{error}; the archive goes on waiting for publishers: 'taran recordings stop ... --subscription \
                 {subscription_id}' ends that"
            ))
        })?;
        shown.recording_id = Some(started.recording_id);
        shown.position = Some(started.position);
    }
    if record.archive.json {
        output::json(&shown)?;
    } else {
        let mut text = format!("recording subscription {subscription_id}");
        if let (Some(id), Some(position)) = (shown.recording_id, shown.position) {
            // Writing to a string cannot fail.
            let _ = write!(text, ": recording {id} from position {position}");
        }
        output::text(&format!("{text}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Stops recordings.
pub(super) fn stop(stop: &Stop) -> Result<ExitCode, Failure> {
    let mut live = stop.archive.connect()?;
    let (is_stopped, what) = match (stop.recording_id, stop.subscription, &stop.channel) {
        (Some(id), _, _) => (
            live.archive.stop_recording_by_identity(id),
            format!("recording {id}"),
        ),
        (_, Some(id), _) => (
            live.archive.try_stop_recording_subscription(id),
            format!("recording subscription {id}"),
        ),
        (_, _, Some(channel)) => {
            let stream = stop.stream.unwrap_or(0);
            (
                live.archive.try_stop_recording(channel, stream),
                format!("the recording of {channel} and stream {stream}"),
            )
        }
        // The arguments require one of them.
        _ => return Err(Failure::Usage("nothing to stop".to_owned())),
    };
    if !is_stopped.map_err(other)? {
        return Err(Failure::Other(format!("{what} is not active")));
    }
    done(&stop.archive, &format!("stopped {what}"))
}

#[derive(Debug, Serialize)]
struct ShownReplay {
    replay_id: i64,
    session_id: i32,
    subscription_channel: String,
    stream_id: i32,
}

/// Starts a replay.
pub(super) fn replay(replay: &Replay) -> Result<ExitCode, Failure> {
    let mut live = replay.archive.connect()?;
    let mut params = ReplayParams::new();
    if let Some(position) = replay.position {
        params = params.position(position);
    }
    if let Some(length) = replay.length {
        params = params.length(length);
    }
    if replay.until_now {
        params = params.until_now();
    }
    let session = live
        .archive
        .start_replay(
            replay.recording_id,
            &replay.channel,
            replay.stream_id,
            &params,
        )
        .map_err(other)?;
    let shown = ShownReplay {
        replay_id: session.id(),
        session_id: session.session_id(),
        subscription_channel: session
            .subscription_channel(&replay.channel)
            .map_err(other)?,
        stream_id: replay.stream_id,
    };
    if replay.archive.json {
        output::json(&shown)?;
    } else {
        output::text(&format!(
            "replay {} to {} stream {}\n",
            shown.replay_id, shown.subscription_channel, shown.stream_id
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Stops a replay.
pub(super) fn stop_replay(stop: &StopReplay) -> Result<ExitCode, Failure> {
    let mut live = stop.archive.connect()?;
    let session = ReplaySession::from_id(stop.replay_id);
    live.archive.stop_replay(session).map_err(other)?;
    done(
        &stop.archive,
        &format!("replay {} has ended", stop.replay_id),
    )
}

/// Stops a replication.
pub(super) fn stop_replication(stop: &StopReplication) -> Result<ExitCode, Failure> {
    let mut live = stop.archive.connect()?;
    let id = stop.replication_id;
    if !live.archive.try_stop_replication(id).map_err(other)? {
        return Err(Failure::Other(format!("replication {id} is not active")));
    }
    done(&stop.archive, &format!("stopped replication {id}"))
}

#[derive(Debug, Serialize)]
struct ShownReplication {
    replication_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    recording_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<i64>,
    has_all: bool,
}

/// Replicates a recording, and waits for the end.
pub(super) fn replicate(replicate: &Replicate) -> Result<ExitCode, Failure> {
    let mut live = replicate.archive.connect()?;
    let mut params = ReplicationParams::new();
    if let Some(id) = replicate.into {
        params = params.destination(id);
    }
    if let Some(position) = replicate.stop_position {
        params = params.stop_position(position);
    }
    if let Some(channel) = &replicate.live {
        params = params.live_destination(channel);
    }
    if let Some(channel) = &replicate.replication_channel {
        params = params.replication_channel(channel);
    }
    let (source, stream) = (&replicate.source, replicate.source_stream);
    let replication_id = live
        .archive
        .replicate(replicate.recording_id, source, stream, &params)
        .map_err(other)?;
    let mut shown = ShownReplication {
        replication_id,
        recording_id: replicate.into,
        position: None,
        has_all: false,
    };
    if !replicate.detach {
        await_end(&mut live, replicate, &mut shown)?;
    }
    if replicate.archive.json {
        output::json(&shown)?;
    } else {
        let mut text = format!("replication {replication_id}");
        if let (Some(id), Some(position)) = (shown.recording_id, shown.position) {
            // Writing to a string cannot fail.
            let _ = write!(text, ": recording {id} up to position {position}");
        }
        if shown.has_all {
            text.push_str(", which is all of the source");
        }
        output::text(&format!("{text}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits until a replication ends.
fn await_end(
    live: &mut Live,
    replicate: &Replicate,
    shown: &mut ShownReplication,
) -> Result<(), Failure> {
    let id = shown.replication_id;
    let mut progress = Progress::new(replicate.progress);
    let mut failure = None;
    let mut asked = Instant::now();
    loop {
        let work = live.archive.poll();
        while let Some(event) = live.archive.poll_event() {
            match event {
                ArchiveEvent::Signal(signal) if signal.correlation_id == id => {
                    if signal.recording_id != NULL_VALUE {
                        shown.recording_id = Some(signal.recording_id);
                    }
                    if signal.position != NULL_VALUE {
                        shown.position = Some(signal.position);
                    }
                    shown.has_all |= signal.signal == RecordingSignal::SYNC;
                    if signal.signal == RecordingSignal::ReplicateEnd {
                        return failure.map_or(Ok(()), |error| Err(other(error)));
                    }
                }
                ArchiveEvent::Error(error) if error.correlation_id == id => failure = Some(error),
                _ => {}
            }
        }
        live.check()?;
        if live.is_interrupted() {
            live.archive.try_stop_replication(id).map_err(other)?;
            return Err(Failure::Interrupted);
        }
        if let Some(recording) = shown.recording_id
            && asked.elapsed() >= POSITION_INTERVAL
        {
            asked = Instant::now();
            // The recording may have just stopped; its end is shown then.
            if let Ok(Some(position)) = live.archive.recording_position(recording) {
                shown.position = Some(position);
                progress.show(|| format!("recording {recording}: position {position}"));
            }
        }
        live.idle(work);
    }
}

#[derive(Debug, Serialize)]
struct Done<'a> {
    done: &'a str,
}

fn done(archive: &Archive, text: &str) -> Result<ExitCode, Failure> {
    if archive.json {
        output::json(&Done { done: text })?;
    } else {
        output::text(&format!("{text}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}
