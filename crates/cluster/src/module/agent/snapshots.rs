// SPDX-License-Identifier: Apache-2.0
//! Snapshots.

use super::{ModuleAgent, ModuleError};
use crate::consensus::Nanos;
use crate::files::{EntryKind, RecordingLogEntry};
use crate::module::replicated::{ModuleState, SnapshotDue};
use crate::module::snapshot::{SnapshotProgress, SnapshotRecorder};
use crate::module::toggle;
use crate::protocol::ClientSession;
use crate::service::{Service, SnapshotFrames, SnapshotWriter};
use crate::state::{AckRound, ModuleSnapshot};

/// A snapshot that is being taken.
pub(super) struct TakenSnapshot {
    due: SnapshotDue,
    begun: Nanos,
    /// Recordings of the snapshots of containers, with their services.
    services: Vec<(i32, i64)>,
    step: Step,
}

enum Step {
    /// Containers take theirs. The entries behind the snapshot's position wait.
    AwaitingServices,
    /// The state is captured, and being recorded.
    Recording(Box<SnapshotRecorder>),
    /// Its entries are in the recording log, and being flushed.
    Flushing,
}

impl<S: Service> ModuleAgent<S> {
    /// Takes a snapshot that is due, or proceeds with it. The service is asked for its state at the position of the snapshot; the
    /// member goes on behind that position while the state is recorded.
    pub(super) fn take_snapshot(&mut self) -> Result<usize, ModuleError> {
        if self.snapshot.is_none()
            && let Some(due) = self.replicated.snapshot_due
        {
            self.begin_snapshot(due);
            return Ok(1);
        }
        let Some(snapshot) = &mut self.snapshot else {
            return Ok(0);
        };
        let recorder = match &mut snapshot.step {
            Step::Recording(recorder) => recorder,
            Step::Flushing if self.files.is_flushed() => {
                let duration = self.now.nanos - snapshot.begun;
                self.counters.snapshot.record(duration);
                self.counters.snapshots.increment();
                self.end_snapshot();
                return Ok(1);
            }
            Step::AwaitingServices | Step::Flushing => return Ok(0),
        };
        let (now, channel) = (self.now.nanos, &self.config.snapshot_channel);
        match recorder.poll(&self.client, channel, &mut self.archive, now) {
            Ok(SnapshotProgress::Pending(work)) => Ok(work),
            Ok(SnapshotProgress::Complete(recordings)) => {
                snapshot.step = Step::Flushing;
                let due = snapshot.due;
                let mut services = std::mem::take(&mut snapshot.services);
                // Those of the services come first, the last one before all.
                services.reverse();
                services.extend(recordings);
                self.append_snapshot(due, services);
                Ok(1)
            }
            Err(error) => {
                self.error(&format!("failed to take snapshot: {error}"));
                self.end_snapshot();
                Ok(1)
            }
        }
    }

    fn begin_snapshot(&mut self, due: SnapshotDue) {
        let step = if self.has_containers() {
            let position = due.log_position;
            self.containers.acks.expect(AckRound::Snapshot, position);
            Step::AwaitingServices
        } else {
            let service = (
                0,
                self.config.service_snapshot_stream_id,
                self.service_frames(due),
            );
            let parts = vec![service, self.module_part(due)];
            Step::Recording(Box::new(SnapshotRecorder::new(parts, self.now.nanos)))
        };
        let is_captured = matches!(step, Step::Recording(_));
        self.snapshot = Some(TakenSnapshot {
            due,
            begun: self.now.nanos,
            services: Vec::new(),
            step,
        });
        if is_captured {
            self.go_on();
        }
    }

    /// Goes on behind the position of a snapshot whose state is captured, or that has failed before that.
    fn go_on(&mut self) {
        self.replicated.snapshot_due = None;
        self.replicated.state = ModuleState::Active;
        self.counters.state.set(ModuleState::Active as i64);
        // The clients were not heard meanwhile.
        self.replicated.sessions.touch_all(self.now.nanos);
    }

    fn service_frames(&mut self, due: SnapshotDue) -> SnapshotFrames {
        let mut writer = SnapshotWriter::new();
        self.replicated
            .with_service(|service, cluster| service.on_take_snapshot(cluster, &mut writer));
        let clients = self.replicated.clients.values();
        let clients = clients.map(|session| ClientSession {
            cluster_session_id: session.id,
            response_stream_id: session.response_stream_id,
            response_channel: &session.response_channel,
            encoded_principal: &session.principal,
        });
        let identity = self.snapshot_identity(due);
        let mut frames = SnapshotFrames::from(identity.service_frames(clients));
        frames.append(writer.frames());
        frames
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
    fn module_part(&self, due: SnapshotDue) -> (i32, i32, SnapshotFrames) {
        let replicated = &self.replicated;
        let frames = self.snapshot_identity(due).module_frames(
            &replicated.sessions,
            &replicated.timers,
            &replicated.pending,
        );
        (-1, self.config.module_snapshot_stream_id, frames.into())
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
        let recorder = SnapshotRecorder::new(vec![self.module_part(due)], self.now.nanos);
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.services = (0..).zip(recordings).collect();
            snapshot.step = Step::Recording(Box::new(recorder));
        }
        self.go_on();
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
        let Some(taken) = self.snapshot.take() else {
            return;
        };
        if let Step::AwaitingServices = taken.step {
            self.go_on();
        }
        if self.toggled_snapshot == Some(taken.due.log_position) {
            self.toggled_snapshot = None;
            if self.counters.toggle.get() == toggle::SNAPSHOT {
                self.counters.toggle.set(toggle::NEUTRAL);
            }
        }
    }
}
