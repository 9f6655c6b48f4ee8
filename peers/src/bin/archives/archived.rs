// SPDX-License-Identifier: Apache-2.0
//! A client of an archive with streams that are being recorded.

use std::fmt;
use std::time::{Duration, Instant};

use taran::{Client, ExclusivePublication};
use taran_archive_client::protocol::{RecordingSignal, SourceLocation};
use taran_archive_client::{ArchiveClient, ArchiveContext};
use taran_bench::payload;
use taran_bench::side::RunError;
use taran_core::affinity;
use taran_core::counters::Counter;

use crate::Load;

/// First stream id of the recorded streams.
const STREAM_ID: i32 = 2_001;
/// Type of the counters with the recorded positions (`docs/spec/archive.md` §4.6).
const RECORDED_POSITION: i32 = 100;
/// Time limit of each step.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Converts an error of the archive or its client.
pub(crate) fn peer(error: impl fmt::Display) -> RunError {
    RunError::Peer(error.to_string())
}

/// Returns the context of a client at the archive's driver.
pub(crate) fn context() -> ArchiveContext {
    ArchiveContext::new()
        .control_channel("aeron:ipc")
        .response_channel("aeron:ipc")
        .message_timeout(TIMEOUT)
}

/// A client of an archive.
pub(crate) struct Archived {
    pub(crate) client: Client,
    pub(crate) archive: ArchiveClient,
    next_stream_id: i32,
}

/// A stream that is being recorded.
pub(crate) struct Stream {
    pub(crate) publication: ExclusivePublication,
    pub(crate) recording_id: i64,
    subscription_id: i64,
    recorded: Counter,
    sequence: u64,
}

impl Archived {
    /// Pins the calling thread, and connects.
    pub(crate) fn connect(load: &Load) -> Result<Archived, RunError> {
        if let Some(cpu) = load.cpu {
            affinity::pin_current_thread(cpu).map_err(peer)?;
        }
        let client = Client::builder().aeron_dir(&load.aeron_dir).connect()?;
        let archive = context().connect(&client).map_err(peer)?;
        Ok(Archived {
            client,
            archive,
            next_stream_id: STREAM_ID,
        })
    }

    /// Starts to record a new stream.
    pub(crate) fn record(&mut self, load: &Load) -> Result<Stream, RunError> {
        let stream_id = self.next_stream_id;
        self.next_stream_id += 1;
        let location = if load.remote {
            SourceLocation::REMOTE
        } else {
            SourceLocation::LOCAL
        };
        let subscription_id = self
            .archive
            .start_recording(&load.channel, stream_id, location, false)
            .map_err(peer)?;
        let publication = self
            .client
            .add_exclusive_publication(&load.channel, stream_id)?;
        let started = self
            .archive
            .wait_for_signal(|signal| {
                (signal.signal, signal.subscription_id) == (RecordingSignal::START, subscription_id)
            })
            .map_err(peer)?;
        wait("a connection", || publication.is_connected())?;
        let key = started.recording_id.to_le_bytes();
        let counters = self.client.counters();
        let found = counters.find(|meta| meta.type_id == RECORDED_POSITION && meta.key[..8] == key);
        let recorded = found
            .and_then(|meta| counters.counter(meta.id))
            .ok_or_else(|| peer("there is no counter with the recorded position"))?;
        Ok(Stream {
            publication,
            recording_id: started.recording_id,
            subscription_id,
            recorded,
            sequence: 0,
        })
    }

    /// Stops a recording.
    pub(crate) fn stop(&mut self, stream: &Stream) -> Result<(), RunError> {
        self.archive
            .stop_recording_subscription(stream.subscription_id)
            .map_err(peer)?;
        self.archive
            .wait_for_signal_of(stream.recording_id, RecordingSignal::STOP)
            .map(drop)
            .map_err(peer)
    }

    /// Stops and deletes a recording, so that rounds do not fill the disk.
    pub(crate) fn delete(&mut self, stream: &Stream) -> Result<(), RunError> {
        self.stop(stream)?;
        self.archive
            .purge_recording(stream.recording_id)
            .map_err(peer)?;
        self.archive
            .wait_for_signal_of(stream.recording_id, RecordingSignal::DELETE)
            .map(drop)
            .map_err(peer)
    }
}

impl Stream {
    /// Sends a message; returns false if there is no room for it.
    #[inline]
    pub(crate) fn send(&mut self, length: usize, due_ns: i64) -> Result<bool, RunError> {
        match self.publication.try_claim(length) {
            Ok(mut claim) => {
                payload::write(&mut claim, due_ns, self.sequence);
                claim.commit();
                self.sequence += 1;
                Ok(true)
            }
            Err(error) if error.is_retryable() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the recorded position.
    #[inline]
    pub(crate) fn recorded(&self) -> i64 {
        self.recorded.get()
    }
}

/// Waits until a condition is true.
pub(crate) fn wait(
    what: &'static str,
    mut condition: impl FnMut() -> bool,
) -> Result<(), RunError> {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        if Instant::now() > deadline {
            return Err(RunError::TimedOut(TIMEOUT, what));
        }
        std::thread::yield_now();
    }
    Ok(())
}
