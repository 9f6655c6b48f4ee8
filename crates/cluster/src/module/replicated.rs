// SPDX-License-Identifier: Apache-2.0
//! The replicated state of a member: what follows from the entries of the log, and nothing else.

use std::collections::BTreeMap;

use taran::Action;
use thiserror::Error;

use super::egress::Egress;
use crate::consensus::{MemberId, Role};
use crate::protocol::{
    ClusterAction, ClusterTimeUnit, LogMessage, MessageError, SessionMessageHeader, split,
};
use crate::service::{ClientSession, Cluster, Effects, Service};
use crate::state::{PendingMessages, ServiceMessageError, SessionLimits, Sessions, Timers};

/// State of the consensus module, as counter 200 shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i64)]
pub(super) enum ModuleState {
    Active = 1,
    Suspended = 2,
    Snapshot = 3,
    Terminating = 5,
    Closed = 6,
}

/// An entry of the log that this member cannot apply: it must not go on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum EntryError {
    #[error("the log has an entry at {position} that cannot be read: {source}")]
    Malformed { position: i64, source: MessageError },
    #[error("the log opens session {session_id} at {position}, which is open")]
    SessionIsOpen { session_id: i64, position: i64 },
    #[error("incompatible timestamp units: the log has {found}, aeron.cluster.clock is {own}")]
    TimeUnit {
        found: ClusterTimeUnit,
        own: ClusterTimeUnit,
    },
    #[error(transparent)]
    ServiceMessage(#[from] ServiceMessageError),
}

/// A snapshot that is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SnapshotDue {
    pub(super) log_position: i64,
    pub(super) term: i64,
    pub(super) timestamp: i64,
}

/// Replicated state, and the service.
pub(super) struct Replicated<S> {
    pub(super) service: S,
    member_id: MemberId,
    time_unit: ClusterTimeUnit,
    pub(super) sessions: Sessions,
    pub(super) timers: Timers,
    /// Of each service, by ascending id; there is at least one.
    pub(super) pending: Vec<PendingMessages>,
    pub(super) clients: BTreeMap<i64, ClientSession>,
    pub(super) egress: Egress,
    pub(super) state: ModuleState,
    pub(super) role: Role,
    /// Term of the log at the position that is consumed.
    pub(super) term: i64,
    /// Position and time of the last entry.
    pub(super) position: i64,
    pub(super) timestamp: i64,
    /// As leader: entries behind this position are its own, whose effects it has applied when it appended them.
    pub(super) own_base: Option<i64>,
    pub(super) snapshot_due: Option<SnapshotDue>,
    pub(super) failure: Option<EntryError>,
}

impl<S: Service> Replicated<S> {
    pub(super) fn new(
        service: S,
        member_id: MemberId,
        time_unit: ClusterTimeUnit,
        limits: SessionLimits,
        service_count: usize,
    ) -> Self {
        let services = (0..).take(service_count.max(1));
        Self {
            service,
            member_id,
            time_unit,
            sessions: Sessions::new(limits),
            timers: Timers::new(),
            pending: services.map(PendingMessages::new).collect(),
            clients: BTreeMap::new(),
            egress: Egress::default(),
            state: ModuleState::Active,
            role: Role::Follower,
            term: -1,
            position: 0,
            timestamp: 0,
            own_base: None,
            snapshot_due: None,
            failure: None,
        }
    }

    /// Runs `call` with the service and the cluster.
    pub(super) fn with_service<T>(
        &mut self,
        call: impl FnOnce(&mut S, &mut Cluster<'_>) -> T,
    ) -> T {
        let (service, mut cluster) = self.split();
        call(service, &mut cluster)
    }

    /// Separates the service from what it may use.
    fn split(&mut self) -> (&mut S, Cluster<'_>) {
        let cluster = Cluster {
            member_id: self.member_id,
            role: self.role,
            term: self.term,
            timestamp: self.timestamp,
            log_position: self.position,
            clients: &self.clients,
            effects: Effects::Module {
                sessions: &mut self.sessions,
                timers: &mut self.timers,
                // The service of this process is the first one.
                pending: &mut self.pending[0],
                egress: &self.egress.connected,
            },
        };
        (&mut self.service, cluster)
    }

    /// Takes an entry. A break ends the poll before the next one.
    pub(super) fn on_entry(&mut self, bytes: &[u8], position: i64) -> Action {
        if self.failure.is_some() || self.snapshot_due.is_some() {
            return Action::Abort;
        }
        match self.try_entry(bytes, position) {
            Ok(()) if self.snapshot_due.is_some() => Action::Break,
            Ok(()) => Action::Continue,
            Err(error) => {
                self.failure = Some(error);
                Action::Break
            }
        }
    }

    fn try_entry(&mut self, bytes: &[u8], position: i64) -> Result<(), EntryError> {
        let is_own = self.own_base.is_some_and(|base| position > base);
        self.position = position;
        // The frequent entry first.
        if let Ok((header, payload)) = split(bytes) {
            return self.on_message(&header, payload, is_own);
        }
        let message = match LogMessage::decode(bytes) {
            Ok(message) => message,
            // Of a newer version, or an extension of another implementation: no member of ours acts on it.
            Err(MessageError::UnexpectedTemplate { .. }) => return Ok(()),
            Err(source) => return Err(EntryError::Malformed { position, source }),
        };
        match message {
            LogMessage::SessionMessageHeader(_) | LogMessage::MembershipChangeEvent(_) => {}
            LogMessage::TimerEvent(event) => {
                self.timestamp = event.timestamp;
                if !is_own {
                    self.timers.on_timer_event(event.correlation_id);
                }
                let id = event.correlation_id;
                self.with_service(|service, cluster| service.on_timer_event(cluster, id));
            }
            LogMessage::SessionOpenEvent(event) => {
                self.timestamp = event.timestamp;
                let id = event.cluster_session_id;
                if !is_own && !self.sessions.on_open_event(position, &event) {
                    return Err(EntryError::SessionIsOpen {
                        session_id: id,
                        position,
                    });
                }
                let session = ClientSession {
                    id,
                    response_stream_id: event.response_stream_id,
                    response_channel: event.response_channel.to_owned(),
                    principal: event.encoded_principal.to_vec(),
                };
                self.clients.insert(id, session.clone());
                self.with_service(|service, cluster| service.on_session_open(cluster, &session));
            }
            LogMessage::SessionCloseEvent(event) => {
                self.timestamp = event.timestamp;
                let id = event.cluster_session_id;
                if !is_own {
                    self.sessions.on_close_event(id);
                }
                if let Some(session) = self.clients.remove(&id) {
                    let reason = event.close_reason;
                    self.with_service(|service, cluster| {
                        service.on_session_close(cluster, &session, reason);
                    });
                }
            }
            LogMessage::ClusterActionRequest(request) => {
                self.timestamp = request.timestamp;
                self.on_action(
                    request.action,
                    request.flags.unwrap_or(0),
                    request.leadership_term_id,
                );
            }
            LogMessage::NewLeadershipTermEvent(event) => {
                self.timestamp = event.timestamp;
                let found = event.time_unit.unwrap_or(ClusterTimeUnit::MILLIS);
                if found != self.time_unit {
                    let own = self.time_unit;
                    return Err(EntryError::TimeUnit { found, own });
                }
                self.term = event.leadership_term_id;
                let (term, leader) = (event.leadership_term_id, event.leader_member_id);
                self.with_service(|service, cluster| {
                    service.on_new_leadership_term(cluster, term, leader);
                });
            }
        }
        Ok(())
    }

    fn on_message(
        &mut self,
        header: &SessionMessageHeader,
        payload: &[u8],
        is_own: bool,
    ) -> Result<(), EntryError> {
        self.timestamp = header.timestamp;
        let id = header.cluster_session_id;
        if id < 0 {
            let service = usize::try_from(PendingMessages::service_of(id)).ok();
            let pending = service.and_then(|service| self.pending.get_mut(service));
            if let Some(pending) = pending.filter(|_| !is_own) {
                pending.on_log_message(id)?;
            }
            self.with_service(|service, cluster| {
                service.on_session_message(cluster, None, payload);
            });
            return Ok(());
        }
        let (service, mut cluster) = self.split();
        let clients = cluster.clients;
        if let Some(session) = clients.get(&id) {
            service.on_session_message(&mut cluster, Some(session), payload);
        }
        Ok(())
    }

    fn on_action(&mut self, action: ClusterAction, flags: i32, term: i64) {
        match action {
            ClusterAction::SUSPEND => self.state = ModuleState::Suspended,
            ClusterAction::RESUME => self.state = ModuleState::Active,
            // With flag 1, only standby nodes take one.
            ClusterAction::SNAPSHOT if flags == 0 => {
                self.state = ModuleState::Snapshot;
                self.snapshot_due = Some(SnapshotDue {
                    log_position: self.position,
                    term,
                    timestamp: self.timestamp,
                });
            }
            _ => {}
        }
    }
}
