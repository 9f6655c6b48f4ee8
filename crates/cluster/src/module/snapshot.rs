// SPDX-License-Identifier: Apache-2.0
//! Recording of snapshots in the own archive.
//!
//! **Input**: the parts of a snapshot, each the frames of a service or of the consensus module. **Output**:
//! [`SnapshotRecorder::poll`] returns the recordings once all parts are recorded. A call writes a bounded number of bytes, and none while
//! the archive has not recorded what was written before: the log, which the same archive records, waits only for little of a
//! snapshot. Most of the agent's time is left to its other work ([`Pace`]).

use std::collections::VecDeque;

use taran::{ChannelUri, Client, ExclusivePublication, Pending};
use taran_archive_client::protocol::SourceLocation;
use taran_archive_client::{ArchiveConnection, Call};

use super::log::LogError;
use crate::consensus::Nanos;
use crate::service::SnapshotFrames;

/// Time limit of each step, and of the archive for some bytes.
const TIMEOUT: Nanos = 30_000_000_000;
/// Bytes that one call writes, and a frame more at most.
const BYTES_PER_POLL: usize = 32 * 1024;
/// Bytes that the archive may have to record yet when the next ones are written.
const MAX_UNRECORDED: i64 = 256 * 1024;
/// Duty cycles are without writing for this multiple of the time that one with writing took.
const REST: Nanos = 3;
/// Longest time without writing, also if the process stood still meanwhile.
const LONGEST_REST: Nanos = 100_000_000;
/// Bytes of a frame in the log beside its payload.
const FRAME_HEADER: usize = 32;

/// A snapshot that is being recorded: the parts one after the other.
pub(crate) struct SnapshotRecorder {
    parts: VecDeque<Part>,
    recorded: Vec<(i32, i64)>,
    step: Step,
    /// Set by each progress.
    deadline: Nanos,
    pace: Pace,
}

/// The share of an agent's time that writing takes. Where others need the core, too, its duty cycles are long, and so are the rests.
#[derive(Debug, Default)]
struct Pace {
    /// Begin of the last duty cycle, if it was one with writing.
    begun: Option<Nanos>,
    rests_until: Nanos,
}

impl Pace {
    /// Begins a duty cycle. Returns true if it may write.
    fn begin(&mut self, now: Nanos) -> bool {
        if let Some(begun) = self.begun.take() {
            let rest = (now - begun).saturating_mul(REST).min(LONGEST_REST);
            self.rests_until = now.saturating_add(rest);
        }
        now >= self.rests_until
    }

    /// Records that this duty cycle writes.
    const fn on_written(&mut self, now: Nanos) {
        self.begun = Some(now);
    }
}

struct Part {
    service_id: i32,
    stream_id: i32,
    frames: SnapshotFrames,
    /// A frame for which there was no room.
    next: Option<Vec<u8>>,
}

/// Result of a call.
pub(crate) enum SnapshotProgress {
    /// The amount of work that was done.
    Pending(usize),
    /// All parts are recorded: the recording of each, with its service.
    Complete(Vec<(i32, i64)>),
}

enum Step {
    Next,
    Adding(Pending<ExclusivePublication>),
    Recording {
        publication: Box<ExclusivePublication>,
        call: Option<Call<i64>>,
        counter: Option<i32>,
        position: i64,
    },
}

/// Type of the counter with the recorded position; its key begins with recording id and session id.
const RECORDING_POSITION: i32 = 100;

impl SnapshotRecorder {
    /// Creates the recorder of these parts: service id, stream id, frames.
    pub(crate) fn new(parts: Vec<(i32, i32, SnapshotFrames)>, now: Nanos) -> Self {
        Self {
            parts: parts
                .into_iter()
                .map(|(service_id, stream_id, frames)| Part {
                    service_id,
                    stream_id,
                    frames,
                    next: None,
                })
                .collect(),
            recorded: Vec::new(),
            step: Step::Next,
            deadline: now + TIMEOUT,
            pace: Pace::default(),
        }
    }

    /// Proceeds.
    pub(crate) fn poll(
        &mut self,
        client: &Client,
        channel: &str,
        archive: &mut ArchiveConnection,
        now: Nanos,
    ) -> Result<SnapshotProgress, LogError> {
        if now > self.deadline {
            return Err(LogError::SnapshotTimeout);
        }
        let may_write = self.pace.begin(now);
        let Some(part) = self.parts.front_mut() else {
            return Ok(SnapshotProgress::Complete(std::mem::take(
                &mut self.recorded,
            )));
        };
        let work = match &mut self.step {
            Step::Next => {
                let pending = client.async_add_exclusive_publication(channel, part.stream_id)?;
                self.step = Step::Adding(pending);
                1
            }
            Step::Adding(pending) => {
                let Some(publication) = pending.poll() else {
                    return Ok(SnapshotProgress::Pending(0));
                };
                let publication = publication?;
                let channel =
                    ChannelUri::parse(channel)?.with_session_id(publication.session_id())?;
                let call = archive.start_recording(
                    channel.as_str(),
                    part.stream_id,
                    SourceLocation::LOCAL,
                    true,
                );
                self.step = Step::Recording {
                    position: publication.position(),
                    publication: Box::new(publication),
                    call: Some(call),
                    counter: None,
                };
                1
            }
            Step::Recording {
                publication,
                call,
                counter,
                position,
            } => {
                if let Some(result) = call.as_mut().and_then(Call::poll) {
                    *call = None;
                    result?;
                }
                if counter.is_none() {
                    *counter = find_session(client, publication.session_id());
                }
                let counters = client.counters();
                // Ids of counters are used again: that of an aborted recording may be of another one.
                let session = publication.session_id().to_le_bytes();
                let is_own = |counter: &i32| {
                    counters
                        .key(*counter)
                        .is_some_and(|key| key[8..12] == session)
                };
                let Some((counter, recorded)) = counter
                    .filter(is_own)
                    .and_then(|counter| Some((counter, counters.value(counter)?)))
                else {
                    return Ok(SnapshotProgress::Pending(0));
                };
                let mut work = usize::from(recorded > *position);
                *position = recorded;
                let has_room = publication.position() - recorded < MAX_UNRECORDED;
                let is_written = if may_write && has_room {
                    let (written, is_complete) = part.write(publication)?;
                    if written > 0 {
                        self.pace.on_written(now);
                    }
                    work += written;
                    is_complete
                } else {
                    false
                };
                if is_written
                    && recorded >= publication.position()
                    && let Some(key) = counters.key(counter)
                {
                    let mut id = [0; 8];
                    id.copy_from_slice(&key[..8]);
                    self.recorded
                        .push((part.service_id, i64::from_le_bytes(id)));
                    self.parts.pop_front();
                    // Closes the publication, with which the recording stops.
                    self.step = Step::Next;
                    work += 1;
                }
                work
            }
        };
        if work > 0 {
            self.deadline = now + TIMEOUT;
        }
        Ok(SnapshotProgress::Pending(work))
    }
}

impl Part {
    /// Writes some frames. Returns their number, and true if there is none left.
    fn write(&mut self, publication: &mut ExclusivePublication) -> Result<(usize, bool), LogError> {
        let (mut frames, mut bytes) = (0, 0);
        while bytes < BYTES_PER_POLL {
            let Some(frame) = self.next.take().or_else(|| self.frames.next()) else {
                return Ok((frames, true));
            };
            match publication.offer(&frame) {
                Ok(_) => {
                    frames += 1;
                    bytes += (FRAME_HEADER + frame.len()).next_multiple_of(FRAME_HEADER);
                }
                Err(error) if error.is_retryable() => {
                    self.next = Some(frame);
                    break;
                }
                Err(error) => return Err(LogError::Snapshot(error)),
            }
        }
        Ok((frames, false))
    }
}

/// Returns the counter of the recording of a session.
fn find_session(client: &Client, session_id: i32) -> Option<i32> {
    let session = session_id.to_le_bytes();
    let found = client
        .counters()
        .find(|meta| meta.type_id == RECORDING_POSITION && meta.key[8..12] == session);
    found.map(|meta| meta.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_rests_for_three_times_as_long_as_its_duty_cycle_took() {
        let mut pace = Pace::default();
        let mut now = 1_000;
        for duration in [50, 20_000] {
            assert!(pace.begin(now));
            pace.on_written(now);
            now += duration;
            assert!(!pace.begin(now));
            assert!(!pace.begin(now + 3 * duration - 1));
            now += 3 * duration;
            assert!(pace.begin(now));
            // A duty cycle without writing has no rest behind it.
            now += 1_000_000;
        }
        // The process stood still.
        pace.on_written(now);
        assert!(!pace.begin(now + 60_000_000_000));
        assert!(pace.begin(now + 60_000_000_000 + LONGEST_REST));
    }
}
