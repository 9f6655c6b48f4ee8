// SPDX-License-Identifier: Apache-2.0
//! Contents of snapshots (`docs/spec/cluster.md` §6.5), byte-compatible with official consensus modules.

use thiserror::Error;

use super::{PendingMessages, ServiceMessageError, Sessions, Timers};
use crate::protocol::{
    CloseReason, ClusterSession, ClusterTimeUnit, ConsensusModule, MessageError, NULL_VALUE,
    PendingMessageTracker, SESSION_HEADER_LENGTH, SessionMessageHeader, SnapshotMark,
    SnapshotMarker, SnapshotMessage, Timer, split,
};
use crate::state::SessionPhase;

/// Kind of the snapshot of a consensus module.
pub const MODULE_SNAPSHOT_TYPE: i64 = 1;
/// Kind of the snapshot of a service.
pub const SERVICE_SNAPSHOT_TYPE: i64 = 2;

/// Capacity that snapshots state for an empty store, as official members with the default do.
const INITIAL_CAPACITY: i32 = 4096;

/// Reason why frames are no snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// A frame that is no message of a snapshot.
    #[error(
        "the snapshot has a frame that cannot be read: {0}; invalidate it with `invalidate-latest-snapshot`"
    )]
    Message(#[from] MessageError),
    /// A snapshot of another kind.
    #[error("the snapshot has the type {found}, expected {expected}")]
    WrongType {
        /// Type of the snapshot.
        found: i64,
        /// Expected type.
        expected: i64,
    },
    /// Begin or end at a wrong place, or a frame outside of both.
    #[error("the snapshot is out of order at frame {frame}: {what}")]
    OutOfOrder {
        /// Number of the frame.
        frame: usize,
        /// Frame that is not expected there.
        what: &'static str,
    },
    /// Another unit of time.
    #[error("the snapshot has the time unit {found}, the cluster's clock {expected}")]
    TimeUnit {
        /// Unit of the snapshot.
        found: ClusterTimeUnit,
        /// Unit of the clock.
        expected: ClusterTimeUnit,
    },
    /// A major version of the application that this one is not compatible with.
    #[error(
        "the snapshot was taken by the application version {found:#x}, this is {expected:#x}: the major differs"
    )]
    AppVersion {
        /// Version of the snapshot.
        found: i32,
        /// Own version.
        expected: i32,
    },
    /// Pending messages that do not follow each other.
    #[error(transparent)]
    ServiceMessages(#[from] ServiceMessageError),
}

/// Identity of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleSnapshot {
    /// Position of the snapshot.
    pub log_position: i64,
    /// Term of the snapshot.
    pub term: i64,
    /// Unit of the cluster's clock.
    pub time_unit: ClusterTimeUnit,
    /// Version of the application.
    pub app_version: i32,
}

impl ModuleSnapshot {
    fn marker(&self, type_id: i64, mark: SnapshotMark) -> SnapshotMessage<'static> {
        SnapshotMessage::SnapshotMarker(SnapshotMarker {
            type_id,
            log_position: self.log_position,
            leadership_term_id: self.term,
            index: 0,
            mark,
            time_unit: Some(self.time_unit),
            app_version: Some(self.app_version),
        })
    }

    /// Returns the frames of the snapshot of a consensus module, in order.
    #[must_use]
    pub fn module_frames(
        &self,
        sessions: &Sessions,
        timers: &Timers,
        services: &[PendingMessages],
    ) -> Vec<Vec<u8>> {
        let mut frames = Frames::default();
        frames.push(&self.marker(MODULE_SNAPSHOT_TYPE, SnapshotMark::BEGIN));
        let first = services.first().map(tracker);
        frames.push(&SnapshotMessage::ConsensusModule(ConsensusModule {
            next_session_id: sessions.committed_next_id(),
            next_service_session_id: Some(first.map_or(0, |it| it.next_service_session_id)),
            log_service_session_id: Some(first.map_or(0, |it| it.log_service_session_id)),
            pending_message_capacity: first.and_then(|it| it.pending_message_capacity),
        }));
        for session in sessions.in_snapshot() {
            frames.push(&SnapshotMessage::ClusterSession(ClusterSession {
                cluster_session_id: session.id,
                correlation_id: session.correlation_id,
                opened_log_position: session.opened_position,
                time_of_last_activity: NULL_VALUE,
                close_reason: match session.phase() {
                    SessionPhase::Closing(reason) => *reason,
                    _ => CloseReason::NULL,
                },
                response_stream_id: session.response_stream_id,
                response_channel: &session.response_channel,
            }));
        }
        for (correlation_id, deadline) in timers.iter() {
            frames.push(&SnapshotMessage::Timer(Timer {
                correlation_id,
                deadline,
            }));
        }
        for service in services {
            frames.push(&SnapshotMessage::PendingMessageTracker(tracker(service)));
            for message in service.messages() {
                frames.push_with(
                    &SnapshotMessage::SessionMessageHeader(SessionMessageHeader {
                        leadership_term_id: self.term,
                        cluster_session_id: message.id,
                        timestamp: i64::MAX,
                    }),
                    &message.payload,
                );
            }
        }
        frames.push(&self.marker(MODULE_SNAPSHOT_TYPE, SnapshotMark::END));
        frames.0
    }

    /// Returns the frames before the user data of the snapshot of a service: id, egress stream and channel, and principal of each
    /// session.
    #[must_use]
    pub fn service_frames<'a>(
        &self,
        sessions: impl IntoIterator<Item = crate::protocol::ClientSession<'a>>,
    ) -> Vec<Vec<u8>> {
        let mut frames = Frames::default();
        frames.push(&self.marker(SERVICE_SNAPSHOT_TYPE, SnapshotMark::BEGIN));
        for session in sessions {
            frames.push(&SnapshotMessage::ClientSession(session));
        }
        frames.push(&self.marker(SERVICE_SNAPSHOT_TYPE, SnapshotMark::END));
        frames.0
    }
}

fn tracker(service: &PendingMessages) -> PendingMessageTracker {
    PendingMessageTracker {
        next_service_session_id: service.next_id(),
        log_service_session_id: service.log_id(),
        pending_message_capacity: Some(INITIAL_CAPACITY),
        service_id: service.service_id(),
    }
}

#[derive(Default)]
struct Frames(Vec<Vec<u8>>);

impl Frames {
    fn push(&mut self, message: &SnapshotMessage<'_>) {
        self.push_with(message, &[]);
    }

    fn push_with(&mut self, message: &SnapshotMessage<'_>, payload: &[u8]) {
        // Longer than each fixed part; what is longer still has its texts counted.
        let mut frame = vec![0; 256];
        let length = loop {
            match message.encode(&mut frame) {
                Ok(length) => break length,
                Err(_) => frame.resize(frame.len() * 2, 0),
            }
        };
        frame.truncate(length);
        frame.extend_from_slice(payload);
        self.0.push(frame);
    }
}

/// Pending messages of a service in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotService {
    tracker: PendingMessageTracker,
    messages: Vec<(i64, Vec<u8>)>,
}

/// Reads the snapshot of a consensus module, frame by frame, until [`on_frame`](Self::on_frame) returns true; then
/// [`finish`](Self::finish) checks and yields what it contains.
#[derive(Debug)]
pub struct SnapshotReader {
    time_unit: ClusterTimeUnit,
    app_version: i32,
    frame: usize,
    begin: Option<SnapshotMarker>,
    is_ended: bool,
    services: Vec<SnapshotService>,
}

impl SnapshotReader {
    /// Creates a reader for a cluster with this clock and application.
    #[must_use]
    pub const fn new(time_unit: ClusterTimeUnit, app_version: i32) -> Self {
        Self {
            time_unit,
            app_version,
            frame: 0,
            begin: None,
            is_ended: false,
            services: Vec::new(),
        }
    }

    /// Takes a frame. Returns true once the snapshot is complete.
    ///
    /// # Errors
    /// The frame is no frame of a snapshot, or not in its place; the snapshot is of another kind, clock or application.
    pub fn on_frame(
        &mut self,
        frame: &[u8],
        sessions: &mut Sessions,
        timers: &mut Timers,
    ) -> Result<bool, SnapshotError> {
        let number = self.frame;
        self.frame += 1;
        let out_of_order = |what| SnapshotError::OutOfOrder {
            frame: number,
            what,
        };
        let message = SnapshotMessage::decode(frame)?;
        if let SnapshotMessage::SnapshotMarker(marker) = message {
            return self.on_marker(&marker, number);
        }
        if self.begin.is_none() || self.is_ended {
            return Err(out_of_order("a frame outside of the markers"));
        }
        match message {
            SnapshotMessage::ConsensusModule(module) => {
                sessions.restore_next_id(module.next_session_id);
            }
            SnapshotMessage::ClusterSession(session) => {
                if session.cluster_session_id < 0
                    || sessions.get(session.cluster_session_id).is_some()
                {
                    return Err(out_of_order("a session that is there already"));
                }
                sessions.restore(0, &session);
            }
            SnapshotMessage::Timer(timer) => timers.schedule(timer.correlation_id, timer.deadline),
            SnapshotMessage::PendingMessageTracker(tracker) => {
                let messages = Vec::new();
                self.services.push(SnapshotService { tracker, messages });
            }
            SnapshotMessage::SessionMessageHeader(header) => {
                let (_, payload) = split(frame)?;
                let service = self.services.last_mut();
                let service = service.ok_or_else(|| out_of_order("a message without tracker"))?;
                service
                    .messages
                    .push((header.cluster_session_id, payload.to_vec()));
            }
            // Members are of old versions; markers were taken above.
            SnapshotMessage::ClusterMembers(_) | SnapshotMessage::SnapshotMarker(_) => {}
            SnapshotMessage::ClientSession(_) => {
                return Err(out_of_order("a session of a service"));
            }
        }
        Ok(false)
    }

    fn on_marker(&mut self, marker: &SnapshotMarker, frame: usize) -> Result<bool, SnapshotError> {
        if marker.type_id != MODULE_SNAPSHOT_TYPE {
            return Err(SnapshotError::WrongType {
                found: marker.type_id,
                expected: MODULE_SNAPSHOT_TYPE,
            });
        }
        let out_of_order = |what| SnapshotError::OutOfOrder { frame, what };
        match marker.mark {
            SnapshotMark::BEGIN if self.begin.is_some() => Err(out_of_order("a second begin")),
            SnapshotMark::BEGIN => {
                check(marker, self.time_unit, self.app_version)?;
                self.begin = Some(*marker);
                Ok(false)
            }
            SnapshotMark::END if self.begin.is_none() => Err(out_of_order("an end without begin")),
            SnapshotMark::END => {
                self.is_ended = true;
                Ok(true)
            }
            _ => Err(out_of_order("a section")),
        }
    }

    /// Returns the marker at the begin of the snapshot, and the pending messages of services.
    ///
    /// # Errors
    /// The snapshot is not complete, or its pending messages do not follow each other.
    pub fn finish(
        self,
        service_count: usize,
    ) -> Result<(SnapshotMarker, Vec<PendingMessages>), SnapshotError> {
        let incomplete = SnapshotError::OutOfOrder {
            frame: self.frame,
            what: "the end is missing",
        };
        let begin = self.begin.filter(|_| self.is_ended).ok_or(incomplete)?;
        let mut services: Vec<PendingMessages> = (0..)
            .take(service_count)
            .map(PendingMessages::new)
            .collect();
        for SnapshotService { tracker, messages } in self.services {
            let restored = PendingMessages::restore(
                tracker.service_id,
                tracker.next_service_session_id,
                tracker.log_service_session_id,
                messages,
            )?;
            let slot = usize::try_from(tracker.service_id).ok();
            if let Some(slot) = slot.and_then(|index| services.get_mut(index)) {
                *slot = restored;
            }
        }
        Ok((begin, services))
    }
}

/// Checks unit and version of a marker. Null stands for milliseconds and for no version.
fn check(
    marker: &SnapshotMarker,
    expected: ClusterTimeUnit,
    app_version: i32,
) -> Result<(), SnapshotError> {
    let found = marker.time_unit.unwrap_or(ClusterTimeUnit::MILLIS);
    if found != expected {
        return Err(SnapshotError::TimeUnit { found, expected });
    }
    let version = marker.app_version.unwrap_or(app_version);
    if version >> 16 != app_version >> 16 {
        return Err(SnapshotError::AppVersion {
            found: version,
            expected: app_version,
        });
    }
    Ok(())
}

/// Length of the header of a pending message, which its payload follows.
const _: () = assert!(SESSION_HEADER_LENGTH == 32);
