// SPDX-License-Identifier: Apache-2.0
//! Entries of the log, as a service gets them (`docs/spec/cluster.md` §7.5).

use taran::{Action, Client};

use super::agent::{ContainerError, Replica};
use crate::consensus::Role;
use crate::protocol::{
    ClusterAction, ClusterTimeUnit, LogMessage, MessageError, NewLeadershipTermEvent,
    SessionMessageHeader, SessionOpenEvent, split,
};
use crate::service::{ClientSession, Service};

impl<S: Service> Replica<S> {
    /// Takes an entry. A break ends the poll before the next one, which has to wait.
    pub(super) fn on_entry(&mut self, client: &Client, bytes: &[u8], position: i64) -> Action {
        if self.failure.is_some() {
            return Action::Abort;
        }
        self.position = position;
        let result = self.apply(client, bytes);
        if let Err(reason) = result {
            self.failure = Some(ContainerError::Entry { position, reason });
        }
        let has_to_wait = self.failure.is_some()
            || self.is_snapshot_due
            || !self.connecting.is_empty()
            || !self.requests.is_flushed();
        if has_to_wait {
            Action::Break
        } else {
            Action::Continue
        }
    }

    fn apply(&mut self, client: &Client, bytes: &[u8]) -> Result<(), String> {
        // The frequent entry first.
        if let Ok((header, payload)) = split(bytes) {
            self.on_message(&header, payload);
            return Ok(());
        }
        let message = match LogMessage::decode(bytes) {
            Ok(message) => message,
            // Of a newer version, or of an extension.
            Err(MessageError::UnexpectedTemplate { .. }) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        match message {
            LogMessage::SessionMessageHeader(_) | LogMessage::MembershipChangeEvent(_) => {}
            LogMessage::TimerEvent(event) => {
                self.timestamp = event.timestamp;
                let id = event.correlation_id;
                self.with_service(|service, cluster| service.on_timer_event(cluster, id));
            }
            LogMessage::SessionOpenEvent(event) => return self.on_open(client, &event),
            LogMessage::SessionCloseEvent(event) => {
                self.timestamp = event.timestamp;
                let id = event.cluster_session_id;
                self.egress.remove(&id);
                self.connecting.remove(&id);
                if let Some(session) = self.clients.remove(&id) {
                    let reason = event.close_reason;
                    self.with_service(|service, cluster| {
                        service.on_session_close(cluster, &session, reason);
                    });
                }
            }
            LogMessage::ClusterActionRequest(request) => {
                self.timestamp = request.timestamp;
                // With flag 1, only standby nodes take one.
                self.is_snapshot_due =
                    request.action == ClusterAction::SNAPSHOT && request.flags.unwrap_or(0) == 0;
                self.term = request.leadership_term_id;
            }
            LogMessage::NewLeadershipTermEvent(event) => return self.on_term(&event),
        }
        Ok(())
    }

    fn on_message(&mut self, header: &SessionMessageHeader, payload: &[u8]) {
        self.timestamp = header.timestamp;
        let id = header.cluster_session_id;
        let (service, mut cluster) = self.split();
        if id < 0 {
            service.on_session_message(&mut cluster, None, payload);
        } else if let Some(session) = cluster.clients.get(&id) {
            service.on_session_message(&mut cluster, Some(session), payload);
        }
    }

    fn on_open(&mut self, client: &Client, event: &SessionOpenEvent<'_>) -> Result<(), String> {
        self.timestamp = event.timestamp;
        let id = event.cluster_session_id;
        let session = ClientSession {
            id,
            response_stream_id: event.response_stream_id,
            response_channel: event.response_channel.to_owned(),
            principal: event.encoded_principal.to_vec(),
        };
        if self.clients.contains_key(&id) {
            return Err(format!("session {id} is open already"));
        }
        if self.role == Role::Leader {
            self.connect(client, &session);
        }
        self.clients.insert(id, session.clone());
        self.with_service(|service, cluster| service.on_session_open(cluster, &session));
        Ok(())
    }

    fn on_term(&mut self, event: &NewLeadershipTermEvent) -> Result<(), String> {
        self.timestamp = event.timestamp;
        let (own, version) = (self.app_version, event.app_version);
        if version.is_some_and(|version| version >> 16 != own >> 16) {
            let version = version.unwrap_or_default();
            return Err(format!(
                "the log was written by application version {version:#x}, this is {own:#x} (aeron.cluster.app.version): the \
                 major differs"
            ));
        }
        self.time_unit = event.time_unit.unwrap_or(ClusterTimeUnit::MILLIS);
        self.term = event.leadership_term_id;
        let (term, leader) = (event.leadership_term_id, event.leader_member_id);
        self.with_service(|service, cluster| {
            service.on_new_leadership_term(cluster, term, leader);
        });
        Ok(())
    }
}
