// SPDX-License-Identifier: Apache-2.0
//! Recordings of snapshots in the own archive, read at a start, which waits for them.

use std::time::{Duration, Instant};

use taran::FragmentAssembler;
use taran_archive_client::{ArchiveClient, ReplayParams};

use super::launch::LaunchError;
use crate::protocol::{SnapshotMark, SnapshotMessage};
use crate::service::ClientSession;
use crate::state::{SERVICE_SNAPSHOT_TYPE, SnapshotError};

/// Time limit for steps of a start.
pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Time between two looks.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Waits until `condition` returns a value.
pub(crate) fn wait<T>(
    archive: &mut ArchiveClient,
    what: &'static str,
    mut condition: impl FnMut(&mut ArchiveClient) -> Result<Option<T>, LaunchError>,
) -> Result<T, LaunchError> {
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        archive.poll();
        if let Some(value) = condition(archive)? {
            return Ok(value);
        }
        if Instant::now() > deadline {
            return Err(LaunchError::Timeout { what });
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Snapshot of a service.
pub(crate) struct ServiceSnapshot {
    pub(crate) sessions: Vec<ClientSession>,
    /// Frames of the service's own.
    pub(crate) frames: Vec<Vec<u8>>,
}

/// Reads recordings from the archive.
pub(crate) struct RecordingReader<'a> {
    archive: &'a mut ArchiveClient,
    channel: &'a str,
    stream_id: i32,
}

impl<'a> RecordingReader<'a> {
    /// Creates a reader with channel and stream id of the replays.
    pub(crate) const fn new(
        archive: &'a mut ArchiveClient,
        channel: &'a str,
        stream_id: i32,
    ) -> Self {
        Self {
            archive,
            channel,
            stream_id,
        }
    }

    /// Passes the messages of a recording to `take`.
    pub(crate) fn read(
        &mut self,
        recording_id: i64,
        mut take: impl FnMut(&[u8]) -> Result<(), SnapshotError>,
    ) -> Result<(), LaunchError> {
        let end = wait(
            self.archive,
            "the end of a snapshot's recording",
            |archive| Ok(archive.stop_position(recording_id)?),
        )?;
        let (_, mut subscription) = self.archive.replay(
            recording_id,
            self.channel,
            self.stream_id,
            &ReplayParams::new().position(0).length(end),
        )?;
        let mut assembler = FragmentAssembler::new();
        let mut failure = None;
        let mut position = 0;
        while position < end {
            let before = position;
            // The time limit is one for each progress: snapshots may be large.
            wait(self.archive, "the replay of a snapshot", |_| {
                let handler = |bytes: &[u8], header: &taran::Header<'_>| {
                    position = header.position();
                    if failure.is_none() {
                        failure = take(bytes).err();
                    }
                };
                // A closed subscription ends in the time limit.
                let _ = subscription.poll(assembler.wrap(handler), 100);
                Ok((position > before).then_some(()))
            })?;
        }
        failure.map_or(Ok(()), |source| {
            Err(LaunchError::Snapshot {
                recording_id,
                source,
            })
        })
    }

    /// Reads the snapshot of a service.
    pub(crate) fn read_service(
        &mut self,
        recording_id: i64,
    ) -> Result<ServiceSnapshot, LaunchError> {
        let mut snapshot = ServiceSnapshot {
            sessions: Vec::new(),
            frames: Vec::new(),
        };
        let mut has_ended = false;
        self.read(recording_id, |frame| {
            if has_ended {
                snapshot.frames.push(frame.to_vec());
                return Ok(());
            }
            match SnapshotMessage::decode(frame)? {
                SnapshotMessage::SnapshotMarker(marker) => {
                    if marker.type_id != SERVICE_SNAPSHOT_TYPE {
                        return Err(SnapshotError::WrongType {
                            found: marker.type_id,
                            expected: SERVICE_SNAPSHOT_TYPE,
                        });
                    }
                    has_ended = marker.mark == SnapshotMark::END;
                }
                SnapshotMessage::ClientSession(session) => {
                    snapshot.sessions.push(ClientSession {
                        id: session.cluster_session_id,
                        response_stream_id: session.response_stream_id,
                        response_channel: session.response_channel.to_owned(),
                        principal: session.encoded_principal.to_vec(),
                    });
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(snapshot)
    }
}
