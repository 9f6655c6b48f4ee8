//! Snapshots.

use super::control::toggle;
use super::{ModuleAgent, ModuleError};
use crate::consensus::Nanos;
use crate::files::{EntryKind, RecordingLogEntry};
use crate::module::replicated::{ModuleState, SnapshotDue};
use crate::module::snapshot::SnapshotRecorder;
use crate::protocol::ClientSession;
use crate::service::{Service, SnapshotWriter};
use crate::state::ModuleSnapshot;

/// A snapshot that is being taken.
pub(super) struct TakenSnapshot {
    recorder: SnapshotRecorder,
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
        let polled = snapshot
            .recorder
            .poll(&self.client, &self.config, &mut self.archive, now);
        match polled {
            Ok(None) => return Ok(0),
            Ok(Some(recordings)) => {
                snapshot.is_recorded = true;
                self.append_snapshot(due, recordings);
            }
            Err(error) => {
                self.error(&format!("failed to take snapshot: {error}"));
                self.end_snapshot();
            }
        }
        Ok(1)
    }

    fn begin_snapshot(&mut self, due: SnapshotDue) -> TakenSnapshot {
        let identity = ModuleSnapshot {
            log_position: due.log_position,
            term: due.term,
            time_unit: self.config.time_unit,
            app_version: self.config.app_version,
        };
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
        let module = identity.module_frames(
            &replicated.sessions,
            &replicated.timers,
            std::slice::from_ref(&replicated.pending),
        );
        let parts = vec![
            (0, self.config.service_snapshot_stream_id, service),
            (-1, self.config.module_snapshot_stream_id, module),
        ];
        TakenSnapshot {
            recorder: SnapshotRecorder::new(parts, self.now.nanos),
            due,
            begun: self.now.nanos,
            is_recorded: false,
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
        // The clients were not heard meanwhile.
        self.replicated.sessions.touch_all(self.now.nanos);
        if self.is_leading() && self.counters.toggle.get() == toggle::SNAPSHOT {
            self.counters.toggle.set(toggle::NEUTRAL);
        }
    }
}
