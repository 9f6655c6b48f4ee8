// SPDX-License-Identifier: Apache-2.0
//! Snapshots.

use super::{ModuleAgent, ModuleError};
use crate::consensus::Nanos;
use crate::files::{EntryKind, RecordingLogEntry};
use crate::module::replicated::{ModuleState, SnapshotDue};
use crate::module::snapshot::SnapshotRecorder;
use crate::module::toggle;
use crate::protocol::ClientSession;
use crate::service::{Service, SnapshotWriter};
use crate::state::{AckRound, ModuleSnapshot};

/// A snapshot that is being taken.
pub(super) struct TakenSnapshot {
    /// None while containers take theirs.
    recorder: Option<SnapshotRecorder>,
    /// Recordings of the snapshots of containers, with their services.
    services: Vec<(i32, i64)>,
    due: SnapshotDue,
    begun: Nanos,
    /// Its entries are in the recording log, and being flushed.
    is_recorded: bool,
}

impl<S: Service> ModuleAgent<S> {
    /// Takes a snapshot that is due, or proceeds with it.
    pub(super) fn take_snapshot(&mut self) -> Result<usize, ModuleError> {
        if self.snapshot.is_none()
            && let Some(due) = self.replicated.snapshot_due
        {
            self.snapshot = Some(self.begin_snapshot(due));
        }
        let Some(snapshot) = &mut self.snapshot else {
            return Ok(0);
        };
        if snapshot.is_recorded {
            if self.files.is_flushed() {
                let duration = self.now.nanos - snapshot.begun;
                self.counters.snapshot.record(duration);
                self.counters.snapshots.increment();
                self.end_snapshot();
                return Ok(1);
            }
            return Ok(0);
        }
        let (now, due) = (self.now.nanos, snapshot.due);
        let Some(recorder) = &mut snapshot.recorder else {
            return Ok(0);
        };
        let channel = &self.config.snapshot_channel;
        match recorder.poll(&self.client, channel, &mut self.archive, now) {
            Ok(None) => return Ok(0),
            Ok(Some(recordings)) => {
                snapshot.is_recorded = true;
                let mut services = std::mem::take(&mut snapshot.services);
                // Those of the services come first, the last one before all.
                services.reverse();
                services.extend(recordings);
                self.append_snapshot(due, services);
            }
            Err(error) => {
                self.error(&format!("failed to take snapshot: {error}"));
                self.end_snapshot();
            }
        }
        Ok(1)
    }

    fn begin_snapshot(&mut self, due: SnapshotDue) -> TakenSnapshot {
        if self.has_containers() {
            let position = due.log_position;
            self.containers.acks.expect(AckRound::Snapshot, position);
            return TakenSnapshot {
                recorder: None,
                services: Vec::new(),
                due,
                begun: self.now.nanos,
                is_recorded: false,
            };
        }
        let identity = self.snapshot_identity(due);
        let mut writer = SnapshotWriter::new();
        self.replicated
            .with_service(|service, cluster| service.on_take_snapshot(cluster, &mut writer));
        let replicated = &self.replicated;
        let clients = replicated.clients.values().map(|session| ClientSession {
            cluster_session_id: session.id,
            response_stream_id: session.response_stream_id,
            response_channel: &session.response_channel,
            encoded_principal: &session.principal,
        });
        let mut service = identity.service_frames(clients);
        service.extend(writer.into_frames());
        let parts = vec![
            (0, self.config.service_snapshot_stream_id, service),
            self.module_part(due),
        ];
        TakenSnapshot {
            recorder: Some(SnapshotRecorder::new(parts, self.now.nanos)),
            services: Vec::new(),
            due,
            begun: self.now.nanos,
            is_recorded: false,
        }
    }

    fn snapshot_identity(&self, due: SnapshotDue) -> ModuleSnapshot {
        ModuleSnapshot {
            log_position: due.log_position,
            term: due.term,
            time_unit: self.config.time_unit,
            app_version: self.config.app_version,
        }
    }

    /// Returns the part of the consensus module: service id, stream id and frames.
    fn module_part(&self, due: SnapshotDue) -> (i32, i32, Vec<Vec<u8>>) {
        let replicated = &self.replicated;
        let frames = self.snapshot_identity(due).module_frames(
            &replicated.sessions,
            &replicated.timers,
            &replicated.pending,
        );
        (-1, self.config.module_snapshot_stream_id, frames)
    }

    /// Takes the recordings of the containers' snapshots, and records that of the consensus module, which has all requests that
    /// the services made before.
    pub(super) fn on_services_snapshot(&mut self, recordings: Vec<i64>) {
        let Some(due) = self.snapshot.as_ref().map(|snapshot| snapshot.due) else {
            return;
        };
        if let Some(service) = recordings.iter().position(|id| *id == -1) {
            self.error(&format!(
                "failed to take snapshot: service {service} has none; the snapshot before stays the latest"
            ));
            self.end_snapshot();
            return;
        }
        let part = self.module_part(due);
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.services = (0..).zip(recordings).collect();
            snapshot.recorder = Some(SnapshotRecorder::new(vec![part], self.now.nanos));
        }
    }

    fn append_snapshot(&mut self, due: SnapshotDue, recordings: Vec<(i32, i64)>) {
        let terms = self.core.terms();
        let base = terms.get(due.term).map_or(0, |entry| entry.base);
        for (service_id, recording_id) in recordings {
            let entry = RecordingLogEntry {
                recording_id,
                leadership_term_id: due.term,
                term_base_log_position: base,
                log_position: due.log_position,
                timestamp: due.timestamp,
                service_id,
                kind: EntryKind::Snapshot,
                is_valid: true,
                archive_endpoint: String::new(),
            };
            self.files.change(|log| vec![log.append_snapshot(entry)]);
        }
    }

    fn end_snapshot(&mut self) {
        self.snapshot = None;
        self.replicated.snapshot_due = None;
        self.replicated.state = ModuleState::Active;
        // Before the toggle: tools that wait for it may ask for the next action at once.
        self.counters.state.set(ModuleState::Active as i64);
        // The clients were not heard meanwhile.
        self.replicated.sessions.touch_all(self.now.nanos);
        if self.is_leading() && self.counters.toggle.get() == toggle::SNAPSHOT {
            self.counters.toggle.set(toggle::NEUTRAL);
        }
    }
}
