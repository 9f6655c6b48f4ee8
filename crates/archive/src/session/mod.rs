// SPDX-License-Identifier: Apache-2.0
//! Control sessions (`docs/spec/archive.md` §1.5 to §1.9).

mod response_queue;
#[cfg(test)]
mod tests;

use std::fmt::Display;

use taran_archive_client::protocol::{
    Challenge, ControlResponse, ControlResponseCode, ErrorCode, Message, Ping, ProtocolVersion,
    RecordingSignal, RecordingSignalEvent,
};

use taran_protocol::event::ArchiveEventCode;

pub(crate) use response_queue::{ResponseQueue, ResponseStream};

use crate::event_log::EventLog;
use crate::security::{Authenticator, Decision, SessionProxy};

/// Interval at which a session that is not active yet repeats its message.
const RESEND_INTERVAL_NS: i64 = 200_000_000;

/// Properties of a session that do not change.
#[derive(Clone, Debug)]
pub(crate) struct SessionIdentity {
    /// Id of the session.
    pub(crate) id: i64,
    /// Correlation id of the connect request.
    pub(crate) correlation_id: i64,
    /// Correlation id of the image on which requests come.
    pub(crate) request_image: i64,
    /// Version of the client, if the archive does not understand it.
    pub(crate) unsupported_version: Option<ProtocolVersion>,
}

/// Time limits of sessions in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionTimeouts {
    pub(crate) connect_ns: i64,
    pub(crate) ping_interval_ns: i64,
}

/// Reason why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionEnd {
    /// The client asked for it.
    Closed,
    /// The client's subscription to responses is gone.
    ResponsesNotConnected,
    /// The client's request publication is gone.
    RequestsGone,
    /// Publication or counter could not be added.
    NotCreated,
    /// The client did not connect to its response stream in time.
    NotConnectedInTime,
    /// The client did not become active in time.
    NotAuthenticatedInTime,
    /// The client was rejected, and told so for long enough.
    Rejected,
    /// Responses could not be sent in time.
    ResponsesBlocked,
    /// The response stream ended.
    ResponsesEnded,
}

impl SessionEnd {
    /// Returns the reason for the event log.
    fn reason(self) -> &'static str {
        match self {
            Self::Closed => "the client has closed it",
            Self::ResponsesNotConnected => "the client is not subscribed to responses any more",
            Self::RequestsGone => "the client's publication of requests is gone",
            Self::NotCreated => "its publication or counter could not be added",
            Self::Rejected => "the credentials were rejected",
            other => other.abort_reason().unwrap_or_default(),
        }
    }

    /// Returns the reason to log and to tell the client, if the session was aborted.
    pub(crate) fn abort_reason(self) -> Option<&'static str> {
        match self {
            Self::Closed
            | Self::ResponsesNotConnected
            | Self::RequestsGone
            | Self::NotCreated
            | Self::Rejected => None,
            Self::NotConnectedInTime => Some("the response stream was not connected in time"),
            Self::NotAuthenticatedInTime => Some("the client was not authenticated in time"),
            Self::ResponsesBlocked => Some(
                "responses could not be sent in time: the client has to poll its response subscription",
            ),
            Self::ResponsesEnded => Some("the response stream has ended"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Init,
    Connecting,
    Connected,
    Challenged,
    Authenticated,
    Active,
    Rejected,
    Done(SessionEnd),
}

impl State {
    /// Returns the name in the event log.
    fn name(self) -> &'static str {
        match self {
            Self::Init => "INIT",
            Self::Connecting => "CONNECTING",
            Self::Connected => "CONNECTED",
            Self::Challenged => "CHALLENGED",
            Self::Authenticated => "AUTHENTICATED",
            Self::Active => "ACTIVE",
            Self::Rejected => "REJECTED",
            Self::Done(_) => "DONE",
        }
    }
}

/// A response to a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Response<'a> {
    pub(crate) correlation_id: i64,
    pub(crate) relevant_id: i64,
    pub(crate) code: ControlResponseCode,
    pub(crate) text: &'a str,
}

/// A signal of a recording or replication.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signal {
    pub(crate) correlation_id: i64,
    pub(crate) recording_id: i64,
    pub(crate) subscription_id: i64,
    pub(crate) position: i64,
    pub(crate) signal: RecordingSignal,
}

/// A control session.
///
/// Contract: [`on_stream`](Self::on_stream) and [`on_counter`](Self::on_counter) report what was added for the session;
/// [`poll`](Self::poll) is called in each duty cycle. [`activate`](Self::activate) comes before each request is handled, and
/// says whether it may be. Responses are input of [`respond`](Self::respond) and [`signal`](Self::signal) and arrive in
/// order. Output is the [`end`](Self::end).
#[derive(Debug)]
pub(crate) struct ControlSession<S> {
    identity: SessionIdentity,
    timeouts: SessionTimeouts,
    state: State,
    has_counter: bool,
    stream: Option<ResponseQueue<S>>,
    deadline_ns: i64,
    resend_at_ns: i64,
    ping_at_ns: i64,
    principal: Vec<u8>,
    buffer: Vec<u8>,
    events: EventLog,
}

impl<S: ResponseStream> ControlSession<S> {
    pub(crate) fn new(
        identity: SessionIdentity,
        timeouts: SessionTimeouts,
        events: EventLog,
        now_ns: i64,
    ) -> Self {
        Self {
            identity,
            timeouts,
            state: State::Init,
            has_counter: false,
            stream: None,
            deadline_ns: now_ns.saturating_add(timeouts.connect_ns),
            resend_at_ns: now_ns,
            ping_at_ns: now_ns,
            principal: Vec::new(),
            buffer: Vec::new(),
            events,
        }
    }

    fn enter(&mut self, state: State) {
        let (id, before) = (self.identity.id, self.state);
        self.state = state;
        let event = ArchiveEventCode::ControlSessionStateChange;
        match state {
            State::Done(end) => self.events.log(
                event,
                format_args!(
                    "controlSessionId={id}, {} -> {}, reason=\"{}\"",
                    before.name(),
                    state.name(),
                    end.reason()
                ),
            ),
            _ => self.events.log(
                event,
                format_args!(
                    "controlSessionId={id}, {} -> {}",
                    before.name(),
                    state.name()
                ),
            ),
        }
    }

    pub(crate) fn id(&self) -> i64 {
        self.identity.id
    }

    pub(crate) fn request_image(&self) -> i64 {
        self.identity.request_image
    }

    /// Returns the identity of the client, empty before its authentication.
    pub(crate) fn principal(&self) -> &[u8] {
        &self.principal
    }

    pub(crate) fn is_active(&self) -> bool {
        self.state == State::Active
    }

    pub(crate) fn end(&self) -> Option<SessionEnd> {
        match self.state {
            State::Done(end) => Some(end),
            _ => None,
        }
    }

    /// Ends the session.
    pub(crate) fn close(&mut self, end: SessionEnd) {
        if self.end().is_none() {
            self.enter(State::Done(end));
        }
    }

    /// Returns the response stream, to close it.
    pub(crate) fn into_stream(self) -> Option<S> {
        self.stream.map(ResponseQueue::into_stream)
    }

    pub(crate) fn on_stream(&mut self, stream: S) {
        self.stream = Some(ResponseQueue::new(stream));
    }

    pub(crate) fn on_counter(&mut self) {
        self.has_counter = true;
    }

    /// Takes note of an answer to a challenge. Ignored unless the client was challenged.
    pub(crate) fn on_challenge_response(
        &mut self,
        correlation_id: i64,
        credentials: &[u8],
        authenticator: &mut dyn Authenticator,
        now_ms: i64,
    ) {
        if self.state == State::Challenged {
            self.identity.correlation_id = correlation_id;
            authenticator.on_challenge_response(self.identity.id, credentials, now_ms);
        }
    }

    /// Returns true if a request may be handled. The first one makes an authenticated session active.
    pub(crate) fn activate(&mut self, now_ns: i64) -> bool {
        if self.state == State::Authenticated && self.identity.unsupported_version.is_none() {
            self.enter(State::Active);
            self.ping_at_ns = now_ns.saturating_add(self.timeouts.ping_interval_ns);
        }
        self.is_active()
    }

    /// Runs one duty cycle; returns the amount of work.
    pub(crate) fn poll(
        &mut self,
        now_ns: i64,
        now_ms: i64,
        authenticator: &mut dyn Authenticator,
    ) -> usize {
        let before = self.state;
        let sent = match self.state {
            State::Init => self.poll_init(now_ns),
            State::Connecting => self.poll_connecting(now_ns),
            State::Connected => self.poll_connected(now_ns, now_ms, authenticator),
            State::Challenged => {
                let mut proxy = SessionProxy::new(self.identity.id);
                authenticator.on_challenged_session(&mut proxy, now_ms);
                self.decide(proxy, now_ns)
            }
            State::Authenticated => self.resend(now_ns, Self::send_accepted),
            State::Active => self.poll_active(now_ns),
            State::Rejected => self.resend(now_ns, Self::send_rejected),
            State::Done(_) => 0,
        };
        self.check_end(now_ns);
        sent + usize::from(self.state != before)
    }

    fn poll_init(&mut self, now_ns: i64) -> usize {
        if self.has_counter && self.stream.is_some() {
            self.enter(State::Connecting);
            self.deadline_ns = now_ns.saturating_add(self.timeouts.connect_ns);
        }
        0
    }

    fn poll_connecting(&mut self, now_ns: i64) -> usize {
        let stream = self.stream.as_ref();
        if stream.is_some_and(|queue| queue.stream().is_connected()) {
            self.enter(State::Connected);
            self.resend_at_ns = now_ns;
        }
        0
    }

    fn poll_connected(
        &mut self,
        now_ns: i64,
        now_ms: i64,
        authenticator: &mut dyn Authenticator,
    ) -> usize {
        if now_ns < self.resend_at_ns {
            return 0;
        }
        self.resend_at_ns = now_ns.saturating_add(RESEND_INTERVAL_NS);
        if let Some(version) = self.identity.unsupported_version {
            let text = format!(
                "protocol version {version} of the client is not supported: needs major version {}",
                ProtocolVersion::CURRENT.major()
            );
            // The relevant id is the session, as that of the official archive.
            return usize::from(self.send_response(
                now_ns,
                self.identity.id,
                ControlResponseCode::ERROR,
                &text,
            ));
        }
        let mut proxy = SessionProxy::new(self.identity.id);
        authenticator.on_connected_session(&mut proxy, now_ms);
        self.decide(proxy, now_ns)
    }

    /// Applies a decision of the authenticator, unless it cannot be sent.
    fn decide(&mut self, proxy: SessionProxy, now_ns: i64) -> usize {
        match proxy.into_decision() {
            None => 0,
            Some(Decision::Authenticate(principal)) => {
                let is_sent = self.send_accepted(now_ns);
                if is_sent {
                    self.principal = principal;
                    self.enter(State::Authenticated);
                    self.resend_at_ns = now_ns.saturating_add(RESEND_INTERVAL_NS);
                }
                usize::from(is_sent)
            }
            Some(Decision::Challenge(challenge)) => {
                let challenge = Challenge {
                    control_session_id: self.identity.id,
                    correlation_id: self.identity.correlation_id,
                    version: ProtocolVersion::CURRENT,
                    encoded_challenge: &challenge,
                };
                let is_sent = self.send_now(&challenge, now_ns);
                if is_sent {
                    self.enter(State::Challenged);
                }
                usize::from(is_sent)
            }
            Some(Decision::Reject) => {
                self.enter(State::Rejected);
                self.resend_at_ns = now_ns.saturating_add(RESEND_INTERVAL_NS);
                usize::from(self.send_rejected(now_ns))
            }
        }
    }

    fn poll_active(&mut self, now_ns: i64) -> usize {
        let mut work = 0;
        if let Some(queue) = &mut self.stream {
            work += queue.flush(now_ns);
        }
        if now_ns >= self.ping_at_ns {
            let ping = Ping {
                control_session_id: self.identity.id,
            };
            if self.send_now(&ping, now_ns) {
                self.ping_at_ns = now_ns.saturating_add(self.timeouts.ping_interval_ns);
                work += 1;
            }
        }
        work
    }

    fn resend(&mut self, now_ns: i64, send: impl FnOnce(&mut Self, i64) -> bool) -> usize {
        if now_ns < self.resend_at_ns {
            return 0;
        }
        self.resend_at_ns = now_ns.saturating_add(RESEND_INTERVAL_NS);
        usize::from(send(self, now_ns))
    }

    fn send_accepted(&mut self, now_ns: i64) -> bool {
        self.send_response(now_ns, self.identity.id, ControlResponseCode::OK, "")
    }

    fn send_rejected(&mut self, now_ns: i64) -> bool {
        self.send_response(
            now_ns,
            ErrorCode::AuthenticationRejected.raw(),
            ControlResponseCode::ERROR,
            "the credentials of the client were rejected",
        )
    }

    fn send_response(
        &mut self,
        now_ns: i64,
        relevant_id: i64,
        code: ControlResponseCode,
        text: &str,
    ) -> bool {
        let response = ControlResponse {
            control_session_id: self.identity.id,
            correlation_id: self.identity.correlation_id,
            relevant_id,
            code,
            version: ProtocolVersion::CURRENT,
            error_message: text,
        };
        let is_sent = self.send_now(&response, now_ns);
        if is_sent {
            self.log_message(ArchiveEventCode::CmdOutResponse, &response);
        }
        is_sent
    }

    fn check_end(&mut self, now_ns: i64) {
        let is_connected = self
            .stream
            .as_ref()
            .is_some_and(|queue| queue.stream().is_connected());
        let has_ended = self.stream.as_ref().is_some_and(ResponseQueue::has_ended);
        let blocked = self
            .stream
            .as_ref()
            .and_then(ResponseQueue::blocked_since_ns);
        let is_blocked =
            blocked.is_some_and(|since| now_ns.wrapping_sub(since) >= self.timeouts.connect_ns);
        let is_late = now_ns >= self.deadline_ns;
        let end = match self.state {
            State::Init | State::Connecting if is_late => SessionEnd::NotConnectedInTime,
            State::Connected | State::Challenged if is_late => SessionEnd::NotAuthenticatedInTime,
            State::Rejected if is_late => SessionEnd::Rejected,
            State::Active | State::Authenticated if !is_connected => {
                SessionEnd::ResponsesNotConnected
            }
            State::Active | State::Authenticated if is_blocked => SessionEnd::ResponsesBlocked,
            State::Done(_) => return,
            _ if has_ended => SessionEnd::ResponsesEnded,
            _ => return,
        };
        self.close(end);
    }

    /// Sends a response, or queues it.
    pub(crate) fn respond(&mut self, response: &Response<'_>, now_ns: i64) {
        let message = ControlResponse {
            control_session_id: self.identity.id,
            correlation_id: response.correlation_id,
            relevant_id: response.relevant_id,
            code: response.code,
            version: ProtocolVersion::CURRENT,
            error_message: response.text,
        };
        self.send(&message, now_ns);
        self.log_message(ArchiveEventCode::CmdOutResponse, &message);
    }

    /// Logs the message that is in the buffer.
    fn log_message(&self, event: ArchiveEventCode, message: &(impl Message + Display)) {
        if self.events.is_enabled(event) {
            // A message that was encoded before fits.
            let length = message.encode(&mut vec![0; self.buffer.len()]).unwrap_or(0);
            self.events
                .message(event, length, format_args!("{message}"));
        }
    }

    /// Sends a signal, or queues it.
    pub(crate) fn signal(&mut self, signal: &Signal, now_ns: i64) {
        let message = RecordingSignalEvent {
            control_session_id: self.identity.id,
            correlation_id: signal.correlation_id,
            recording_id: signal.recording_id,
            subscription_id: signal.subscription_id,
            position: signal.position,
            signal: signal.signal,
        };
        self.send(&message, now_ns);
        self.log_message(ArchiveEventCode::RecordingSignal, &message);
    }

    fn send(&mut self, message: &impl Message, now_ns: i64) {
        let length = encode(message, &mut self.buffer);
        if let Some(queue) = &mut self.stream {
            queue.send(&self.buffer[..length], now_ns);
        }
    }

    /// Sends a message that its caller repeats. Returns false if it was not sent.
    pub(crate) fn send_now(&mut self, message: &impl Message, now_ns: i64) -> bool {
        let length = encode(message, &mut self.buffer);
        let queue = self.stream.as_mut();
        queue.is_some_and(|queue| queue.send_unqueued(&self.buffer[..length], now_ns))
    }

    /// Returns true if no response waits to be sent.
    #[cfg(test)]
    fn is_drained(&self) -> bool {
        self.stream.as_ref().is_none_or(ResponseQueue::is_empty)
    }
}

/// Encodes a message into a buffer that grows as needed; returns the length.
pub(crate) fn encode(message: &impl Message, buffer: &mut Vec<u8>) -> usize {
    loop {
        match message.encode(buffer) {
            Ok(length) => return length,
            // The only reason is a buffer that is too short; texts come from messages and files of bounded length.
            Err(_) => buffer.resize((buffer.len() * 2).max(256), 0),
        }
    }
}
