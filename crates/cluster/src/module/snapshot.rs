// SPDX-License-Identifier: Apache-2.0
//! Recording of snapshots in the own archive.

use std::collections::VecDeque;

use taran::{ChannelUri, Client, ExclusivePublication, Pending};
use taran_archive_client::protocol::SourceLocation;
use taran_archive_client::{ArchiveConnection, Call};

use super::log::LogError;
use crate::consensus::Nanos;

/// Time limit of a snapshot.
const TIMEOUT: Nanos = 30_000_000_000;

/// A snapshot that is being recorded: the parts one after the other.
pub(crate) struct SnapshotRecorder {
    parts: VecDeque<Part>,
    recorded: Vec<(i32, i64)>,
    step: Step,
    deadline: Nanos,
}

struct Part {
    service_id: i32,
    stream_id: i32,
    frames: VecDeque<Vec<u8>>,
}

enum Step {
    Next,
    Adding(Pending<ExclusivePublication>),
    Recording {
        publication: Box<ExclusivePublication>,
        call: Option<Call<i64>>,
        counter: Option<i32>,
    },
}

/// Type of the counter with the recorded position; its key begins with recording id and session id.
const RECORDING_POSITION: i32 = 100;

impl SnapshotRecorder {
    /// Creates the recorder of these parts: service id, stream id, frames.
    pub(crate) fn new(parts: Vec<(i32, i32, Vec<Vec<u8>>)>, now: Nanos) -> Self {
        Self {
            parts: parts
                .into_iter()
                .map(|(service_id, stream_id, frames)| Part {
                    service_id,
                    stream_id,
                    frames: frames.into(),
                })
                .collect(),
            recorded: Vec::new(),
            step: Step::Next,
            deadline: now + TIMEOUT,
        }
    }

    /// Proceeds. Returns the recording of each part once all are complete.
    pub(crate) fn poll(
        &mut self,
        client: &Client,
        channel: &str,
        archive: &mut ArchiveConnection,
        now: Nanos,
    ) -> Result<Option<Vec<(i32, i64)>>, LogError> {
        if now > self.deadline {
            return Err(LogError::SnapshotTimeout);
        }
        let Some(part) = self.parts.front_mut() else {
            return Ok(Some(std::mem::take(&mut self.recorded)));
        };
        match &mut self.step {
            Step::Next => {
                let pending = client.async_add_exclusive_publication(channel, part.stream_id)?;
                self.step = Step::Adding(pending);
            }
            Step::Adding(pending) => {
                if let Some(publication) = pending.poll() {
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
                        publication: Box::new(publication),
                        call: Some(call),
                        counter: None,
                    };
                }
            }
            Step::Recording {
                publication,
                call,
                counter,
            } => {
                if let Some(result) = call.as_mut().and_then(Call::poll) {
                    *call = None;
                    result?;
                }
                if counter.is_none() {
                    let session = publication.session_id().to_le_bytes();
                    let found = client.counters().find(|meta| {
                        meta.type_id == RECORDING_POSITION && meta.key[8..12] == session
                    });
                    *counter = found.map(|meta| meta.id);
                }
                let Some(counter) = *counter else {
                    return Ok(None);
                };
                while let Some(frame) = part.frames.front() {
                    match publication.offer(frame) {
                        Ok(_) => drop(part.frames.pop_front()),
                        Err(error) if error.is_retryable() => return Ok(None),
                        Err(error) => return Err(LogError::Snapshot(error)),
                    }
                }
                let counters = client.counters();
                let is_recorded = counters
                    .value(counter)
                    .is_some_and(|position| position >= publication.position());
                if is_recorded && let Some(key) = counters.key(counter) {
                    let mut id = [0; 8];
                    id.copy_from_slice(&key[..8]);
                    self.recorded
                        .push((part.service_id, i64::from_le_bytes(id)));
                    self.parts.pop_front();
                    // Closes the publication, with which the recording stops.
                    self.step = Step::Next;
                }
            }
        }
        Ok(None)
    }
}
