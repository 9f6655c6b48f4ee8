// SPDX-License-Identifier: Apache-2.0
//! Opening, polling and closing control sessions.

use taran::{Counter, ExclusivePublication, ImageView, Pending};
use taran_archive_client::protocol::{ErrorCode, ProtocolVersion};

use super::ConductorCore;
use super::listing::Listing;
use crate::channel::{ResponseDefaults, response_channel};
use crate::counters::CounterSpec;
use crate::session::{ControlSession, SessionEnd, SessionIdentity, SessionTimeouts};

/// A session with what was added for it.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) control: ControlSession<ExclusivePublication>,
    pub(super) listing: Option<Listing>,
    image: ImageView,
    client_info: String,
    publication: Option<Pending<ExclusivePublication>>,
    pending_counter: Option<Pending<Counter>>,
    counter: Option<Counter>,
    publication_id: i64,
}

/// A request to connect, of either form.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectFields<'a> {
    pub(super) correlation_id: i64,
    pub(super) response_stream_id: i32,
    pub(super) version: ProtocolVersion,
    pub(super) response_channel: &'a str,
    pub(super) credentials: &'a [u8],
    pub(super) client_info: &'a str,
}

impl ConductorCore {
    pub(super) fn connect(&mut self, request: &ConnectFields<'_>, image: &ImageView) {
        let defaults = ResponseDefaults {
            term_length: self.config.control_term_length,
            sparse: self.config.control_term_sparse,
            mtu: self.config.control_mtu,
        };
        let channel = response_channel(request.response_channel, &defaults, image.correlation_id());
        let added = channel
            .map_err(|error| error.to_string())
            .and_then(|channel| {
                let stream_id = request.response_stream_id;
                let pending = self
                    .client
                    .async_add_exclusive_publication(channel, stream_id);
                pending.map_err(|error| error.to_string())
            });
        let publication = match added {
            Ok(publication) => publication,
            Err(text) => {
                // There is no stream on which the client could be told.
                self.log(
                    ErrorCode::Generic,
                    &format!("a client cannot be answered: {text}"),
                );
                return;
            }
        };
        let id = self.next_session_id;
        self.next_session_id += 1;
        let is_supported = request.version.major() == ProtocolVersion::CURRENT.major();
        let identity = SessionIdentity {
            id,
            correlation_id: request.correlation_id,
            request_image: image.correlation_id(),
            unsupported_version: (!is_supported).then_some(request.version),
        };
        let timeouts = SessionTimeouts {
            connect_ns: self.config.connect_timeout_ns,
            ping_interval_ns: self.config.liveness_check_interval_ns,
        };
        let spec = CounterSpec::control_session(
            id,
            request.client_info,
            image.source_identity(),
            image.session_id(),
            self.archive_id,
        );
        let counter = self
            .client
            .async_add_counter(spec.type_id, &spec.key, &spec.label);
        let counter = match counter {
            Ok(counter) => counter,
            Err(error) => {
                self.log(
                    ErrorCode::Generic,
                    &format!("a control session cannot be opened: {error}"),
                );
                return;
            }
        };
        let now_ms = self.now.epoch_millis;
        self.authenticator
            .on_connect_request(id, request.credentials, now_ms);
        let session = Session {
            control: ControlSession::new(identity, timeouts, self.events.clone(), self.now.nanos),
            listing: None,
            image: image.clone(),
            client_info: request.client_info.to_owned(),
            publication_id: publication.registration_id(),
            publication: Some(publication),
            pending_counter: Some(counter),
            counter: None,
        };
        self.sessions.insert(id, session);
        self.counters.control_sessions.increment();
    }

    pub(super) fn poll_sessions(&mut self) -> usize {
        let now = self.now;
        let mut work = 0;
        let mut ended = Vec::new();
        let mut errors = Vec::new();
        let mut listings = Vec::new();
        for (id, session) in &mut self.sessions {
            if let Err(error) = session.poll_pending() {
                let info = &session.client_info;
                errors.push(format!(
                    "the control session {id} ({info}) cannot be opened: {error}"
                ));
                session.control.close(SessionEnd::NotCreated);
            }
            work += session
                .control
                .poll(now.nanos, now.epoch_millis, &mut *self.authenticator);
            if session.listing.is_some() {
                listings.push(*id);
            }
            if session.control.end().is_some() {
                ended.push(*id);
            }
        }
        for error in errors {
            self.log(ErrorCode::Generic, &error);
        }
        for id in listings {
            work += self.poll_listing(id);
        }
        for id in ended {
            self.close_session(id);
        }
        work
    }

    fn close_session(&mut self, id: i64) {
        let Some(session) = self.sessions.remove(&id) else {
            return;
        };
        let reason = session.control.end().and_then(SessionEnd::abort_reason);
        if let Some(reason) = reason {
            let info = &session.client_info;
            let text = format!("control session {id} ({info}) ended: {reason}");
            self.log(ErrorCode::Generic, &text);
            // The client's publication is disconnected, so that the client knows. Nothing depends on the answer.
            if let Ok(pending) = session.image.async_reject(reason) {
                drop(pending);
            }
        }
        if let Some(publication) = session.control.into_stream() {
            publication.revoke();
        }
        self.tokens.retain(|_, token| token.session_id != id);
        self.authenticator.on_session_closed(id);
        self.counters.control_sessions.add(-1);
    }

    pub(super) fn close_all_sessions(&mut self) {
        let ids: Vec<_> = self.sessions.keys().copied().collect();
        for id in ids {
            if let Some(session) = self.sessions.get_mut(&id) {
                session.control.close(SessionEnd::Closed);
            }
            self.close_session(id);
        }
    }
}

impl Session {
    /// Takes what the driver has added. Fails if it has refused.
    fn poll_pending(&mut self) -> Result<(), taran::CommandError> {
        if let Some(pending) = &mut self.publication
            && let Some(publication) = pending.poll()
        {
            self.publication = None;
            self.control.on_stream(publication?);
        }
        if let Some(pending) = &mut self.pending_counter
            && let Some(counter) = pending.poll()
        {
            self.pending_counter = None;
            let counter = counter?;
            counter.set_reference_id(self.publication_id);
            counter.set(self.control.id());
            self.counter = Some(counter);
            self.control.on_counter();
        }
        Ok(())
    }
}
