// SPDX-License-Identifier: Apache-2.0
//! Snapshots of a service: loading one at the start, and taking one.

use taran_archive_client::{ArchiveConnecting, ArchiveConnection, ArchiveContext};

use super::agent::{ContainerAgent, ContainerError};
use super::config::ContainerConfig;
use super::launch::ContainerLaunchError;
use crate::consensus::Nanos;
use crate::module::LaunchError;
use crate::module::containers::RECOVERY_RECORDINGS;
use crate::module::recordings::RecordingReader;
use crate::module::snapshot::{SnapshotProgress, SnapshotRecorder};
use crate::module::type_id::{COMMIT_POSITION, RECOVERY_STATE};
use crate::protocol::ClientSession;
use crate::service::{Service, SnapshotFrames, SnapshotWriter};
use crate::state::ModuleSnapshot;

/// Offset of response streams of the archive, which official containers use too.
const RESPONSE_STREAM: i32 = 121;

/// A snapshot that is being taken.
pub(super) struct Snapshot {
    step: Step,
    begun: Nanos,
}

enum Step {
    Connecting(Box<ArchiveConnecting>, SnapshotFrames),
    Recording(Box<ArchiveConnection>, SnapshotRecorder),
}

fn archive(config: &ContainerConfig) -> ArchiveContext {
    let (cluster, service) = (config.cluster_id, config.service_id);
    ArchiveContext::new()
        .control_channel(&config.archive_channel)
        .control_stream_id(config.archive_stream_id)
        .response_channel(&config.archive_channel)
        .response_stream_id(RESPONSE_STREAM + 100 * cluster + service)
        .client_name(format!("cluster-{cluster}-service-{service}"))
}

/// Content of the counter from which a container learns what to load.
struct RecoveryState {
    term: i64,
    position: i64,
    timestamp: i64,
    recording_id: Option<i64>,
}

impl RecoveryState {
    /// Reads the key of the counter; none if it is not of this cluster, or has no recording of this service.
    fn read(key: &[u8], cluster_id: i32, service_id: i32) -> Option<Self> {
        let long = |at: usize| {
            let bytes = key.get(at..)?.first_chunk()?;
            Some(i64::from_le_bytes(*bytes))
        };
        let int = |at: usize| {
            let bytes = key.get(at..)?.first_chunk()?;
            Some(i32::from_le_bytes(*bytes))
        };
        if int(24)? != cluster_id {
            return None;
        }
        let (term, count) = (long(0)?, int(28)?);
        let index = usize::try_from(service_id).ok()?;
        let recording_id = if term == -1 {
            None
        } else if service_id < count {
            Some(long(RECOVERY_RECORDINGS + 8 * index)?)
        } else {
            return None;
        };
        Some(Self {
            term,
            position: long(8)?,
            timestamp: long(16)?,
            recording_id,
        })
    }
}

impl<S: Service> ContainerAgent<S> {
    /// Starts the service, once the consensus module tells what to load.
    pub(super) fn recover(&mut self) -> Result<usize, ContainerError> {
        let (cluster, service) = (self.config.cluster_id, self.config.service_id);
        let counters = self.client.counters();
        let commit = counters
            .find(|meta| meta.type_id == COMMIT_POSITION && meta.key[..4] == cluster.to_le_bytes());
        let recovery = counters.find(|meta| {
            meta.type_id == RECOVERY_STATE
                && RecoveryState::read(&meta.key, cluster, service).is_some()
        });
        let (Some(commit), Some(recovery)) = (commit, recovery) else {
            return Ok(0);
        };
        let Some(state) = RecoveryState::read(&recovery.key, cluster, service) else {
            return Ok(0);
        };
        self.replica.term = state.term;
        self.replica.position = state.position;
        self.replica.timestamp = state.timestamp;
        let registration_id = counters.registration_id(commit.id).unwrap_or(-1);
        let loaded = self.load(state.recording_id);
        let client_id = if loaded.is_ok() {
            self.client.client_id()
        } else {
            -1
        };
        self.replica
            .requests
            .acknowledge(state.position, state.timestamp, client_id);
        if let Err(error) = loaded {
            self.fail(error);
            return Ok(1);
        }
        self.commit = Some((commit.id, registration_id));
        self.mark.set_ready(self.now.epoch_millis);
        Ok(1)
    }

    fn load(&mut self, recording_id: Option<i64>) -> Result<(), ContainerError> {
        let mut frames = None;
        if let Some(recording_id) = recording_id {
            let snapshot = self.read_snapshot(recording_id).map_err(Box::new)?;
            let checked = self.replica.service.check_snapshot(&snapshot.frames);
            checked.map_err(|reason| {
                Box::new(ContainerLaunchError::Snapshot(
                    LaunchError::ServiceSnapshot {
                        recording_id,
                        reason,
                    },
                ))
            })?;
            let sessions = snapshot.sessions.into_iter();
            self.replica
                .clients
                .extend(sessions.map(|session| (session.id, session)));
            frames = Some(snapshot.frames);
        }
        self.replica
            .with_service(|service, cluster| service.on_start(cluster, frames.as_deref()));
        Ok(())
    }

    fn read_snapshot(
        &self,
        recording_id: i64,
    ) -> Result<crate::module::recordings::ServiceSnapshot, ContainerLaunchError> {
        let channel = &self.config.archive_channel;
        let mut archive = archive(&self.config)
            .connect(&self.client)
            .map_err(|source| ContainerLaunchError::Archive {
                channel: channel.clone(),
                source,
            })?;
        let config = &self.config;
        let mut reader = RecordingReader::new(
            &mut archive,
            &config.replay_channel,
            config.replay_stream_id,
        );
        Ok(reader.read_service(recording_id)?)
    }

    /// Takes a snapshot that is due, or proceeds with it.
    pub(super) fn take_snapshot(&mut self) -> Result<usize, ContainerError> {
        let now = self.now.nanos;
        let result = self.try_take_snapshot();
        let recording_id = match result {
            Ok(SnapshotProgress::Pending(work)) => return Ok(work),
            Ok(SnapshotProgress::Complete(ref parts)) => parts.first().map_or(-1, |(_, id)| *id),
            Err(_) => -1,
        };
        if let Some(snapshot) = self.snapshot.take() {
            self.counters.snapshot.record(now - snapshot.begun);
        }
        self.replica.is_snapshot_due = false;
        let (position, timestamp) = (self.replica.position, self.replica.timestamp);
        self.replica
            .requests
            .acknowledge(position, timestamp, recording_id);
        // The consensus module keeps the snapshot before; it may not wait for an answer that does not come.
        if let Err(error) = result {
            self.fail(error);
        }
        Ok(1)
    }

    fn try_take_snapshot(&mut self) -> Result<SnapshotProgress, ContainerError> {
        let now = self.now.nanos;
        let failed = |error: &dyn std::fmt::Display| ContainerError::Snapshot(error.to_string());
        let Some(snapshot) = &mut self.snapshot else {
            let connecting = archive(&self.config).connecting(&self.client, now);
            let connecting = connecting.map_err(|error| failed(&error))?;
            let frames = self.frames();
            self.snapshot = Some(Snapshot {
                step: Step::Connecting(Box::new(connecting), frames),
                begun: now,
            });
            return Ok(SnapshotProgress::Pending(1));
        };
        match &mut snapshot.step {
            Step::Connecting(connecting, frames) => {
                let connected = connecting.poll(now).map_err(|error| failed(&error))?;
                if let Some(connection) = connected {
                    let frames = std::mem::take(frames);
                    let config = &self.config;
                    let part = (config.service_id, config.snapshot_stream_id, frames);
                    let recorder = SnapshotRecorder::new(vec![part], now);
                    snapshot.step = Step::Recording(Box::new(connection), recorder);
                }
                Ok(SnapshotProgress::Pending(0))
            }
            Step::Recording(connection, recorder) => {
                connection.poll(now);
                let channel = &self.config.snapshot_channel;
                let progress = recorder.poll(&self.client, channel, connection, now);
                progress.map_err(|error| failed(&error))
            }
        }
    }

    fn frames(&mut self) -> SnapshotFrames {
        let replica = &mut self.replica;
        let mut writer = SnapshotWriter::new();
        replica.with_service(|service, cluster| service.on_take_snapshot(cluster, &mut writer));
        let identity = ModuleSnapshot {
            log_position: replica.position,
            term: replica.term,
            time_unit: replica.time_unit,
            app_version: replica.app_version,
        };
        let clients = replica.clients.values().map(|session| ClientSession {
            cluster_session_id: session.id,
            response_stream_id: session.response_stream_id,
            response_channel: &session.response_channel,
            encoded_principal: &session.principal,
        });
        let mut frames = SnapshotFrames::from(identity.service_frames(clients));
        frames.append(writer.frames());
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_state_names_the_recording_of_the_service() {
        let mut key = Vec::new();
        for value in [3_i64, 960, 77] {
            key.extend_from_slice(&value.to_le_bytes());
        }
        key.extend_from_slice(&5_i32.to_le_bytes());
        key.extend_from_slice(&2_i32.to_le_bytes());
        for value in [40_i64, 41] {
            key.extend_from_slice(&value.to_le_bytes());
        }
        let state = RecoveryState::read(&key, 5, 1).unwrap();
        assert_eq!((state.term, state.position, state.timestamp), (3, 960, 77));
        assert_eq!(state.recording_id, Some(41));
        assert!(RecoveryState::read(&key, 4, 1).is_none(), "another cluster");
        assert!(RecoveryState::read(&key, 5, 2).is_none(), "no such service");
        assert!(RecoveryState::read(&key[..41], 5, 1).is_none(), "cut short");
        key[..8].copy_from_slice(&(-1_i64).to_le_bytes());
        let state = RecoveryState::read(&key, 5, 9).unwrap();
        assert_eq!(state.recording_id, None);
    }
}
