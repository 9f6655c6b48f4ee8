// SPDX-License-Identifier: Apache-2.0
//! Sessions of clients (`docs/spec/cluster.md` §2).

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::consensus::{MemberId, Nanos};
use crate::protocol::{
    Challenge, ChallengeResponse, CloseReason, EgressMessage, EventCode, NULL_VALUE,
    NewLeaderEvent, PROTOCOL_VERSION, SessionCloseEvent, SessionConnectRequest, SessionEvent,
    SessionOpenEvent, major, version_text,
};

/// Longest principal in bytes.
const PRINCIPAL_LIMIT: usize = 4096;

/// Identifies a session object of this member, also one that has no session id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(u64);

/// Decision of an [`Authenticator`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// The client is accepted, with the identity by which its requests are authorised; at most 4 KiB.
    Accept(Vec<u8>),
    /// The client is asked for more credentials.
    Challenge(Vec<u8>),
    /// The client is rejected.
    Reject,
    /// Not decided yet: the authenticator is asked again.
    Undecided,
}

/// Decides which clients may connect.
///
/// `on_connect_request` comes first, then [`decide`](Self::decide) until it decides. After a challenge, `on_challenge_response`
/// comes if the client answers, and `decide` again. Calls come from the agent's thread and must not wait.
pub trait Authenticator: Send {
    /// Called when a client asks for a session.
    fn on_connect_request(&mut self, session_id: i64, credentials: &[u8], now_ms: i64);

    /// Called when a client answers a challenge.
    fn on_challenge_response(&mut self, session_id: i64, credentials: &[u8], now_ms: i64);

    /// Decides about a client that can receive the answer.
    fn decide(&mut self, session_id: i64, is_challenged: bool, now_ms: i64) -> Authentication;

    /// Called when a client is gone before it is accepted or rejected: nothing more is asked about it.
    fn on_session_gone(&mut self, _session_id: i64) {}
}

/// Accepts all clients, with an empty principal.
#[derive(Clone, Copy, Debug, Default)]
pub struct AcceptAll;

impl Authenticator for AcceptAll {
    fn on_connect_request(&mut self, _: i64, _: &[u8], _: i64) {}

    fn on_challenge_response(&mut self, _: i64, _: &[u8], _: i64) {}

    fn decide(&mut self, _: i64, _: bool, _: i64) -> Authentication {
        Authentication::Accept(Vec::new())
    }
}

/// State of the egress publication of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EgressState {
    /// It is being added, or nothing subscribes to it yet.
    Connecting,
    /// Messages can be sent.
    Connected,
    /// It cannot be added.
    Failed,
}

/// Egress and log as sessions use them. Nothing waits; what is not possible now is tried again by the next
/// [`Sessions::step`].
pub trait SessionIo {
    /// Adds the egress publication of a session.
    fn connect_egress(&mut self, handle: Handle, channel: &str, stream_id: i32);

    /// Closes the egress publication of a session.
    fn close_egress(&mut self, handle: Handle);

    /// Returns the state of the egress publication.
    fn egress(&mut self, handle: Handle) -> EgressState;

    /// Sends a message to a client. Returns false if there is no room now.
    fn send(&mut self, handle: Handle, message: &EgressMessage<'_>) -> bool;

    /// Appends to the log. Returns the position behind the entry, or none if there is no room now.
    fn append_open(&mut self, event: &SessionOpenEvent<'_>) -> Option<i64>;

    /// Appends to the log. Returns the position behind the entry, or none if there is no room now.
    fn append_close(&mut self, event: &SessionCloseEvent) -> Option<i64>;
}

/// Limits of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Most sessions, pending and open ones.
    pub max_sessions: usize,
    /// Silence after which a session is closed.
    pub timeout: Nanos,
}

/// Leadership, as a member tells clients about it.
#[derive(Clone, Copy, Debug)]
pub struct Leadership<'a> {
    /// Monotonic time.
    pub now: Nanos,
    /// Wall clock in milliseconds, for authenticators.
    pub now_ms: i64,
    /// Time in the unit of the cluster's clock, for entries of the log.
    pub timestamp: i64,
    /// Current term.
    pub term: i64,
    /// Leader, or -1.
    pub leader: MemberId,
    /// Ingress endpoints of all members.
    pub ingress_endpoints: &'a str,
    /// Heartbeat timeout of the leader.
    pub heartbeat_timeout: Nanos,
}

/// Progress of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionPhase {
    /// Waits for its egress publication, and the authenticator.
    Connecting,
    /// The challenge has to be sent.
    Challenging(Vec<u8>),
    /// The answer to the challenge is awaited.
    Challenged,
    /// The open event has to be appended.
    Authenticated,
    /// The event has to be sent, with which the session ends.
    Rejecting(EventCode, String),
    /// Open.
    Open,
    /// The close event has to be appended.
    Closing(CloseReason),
}

/// Message that an open session has to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notice {
    Opened,
    NewLeader,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Id, or -1 for a client that is sent to another member.
    pub id: i64,
    /// Correlation id of the client's last request.
    pub correlation_id: i64,
    /// Stream id for egress.
    pub response_stream_id: i32,
    /// Channel for egress.
    pub response_channel: String,
    /// Principal.
    pub principal: Vec<u8>,
    /// Position behind the open event; -1 before.
    pub opened_position: i64,
    /// Name and version of the client.
    pub client_info: String,
    phase: SessionPhase,
    last_activity: Nanos,
    ingress_image: Option<i64>,
    /// This member knows the session from the log or a snapshot: the client may not have the OK of a leader that died.
    is_from_log: bool,
    notices: VecDeque<Notice>,
}

impl Session {
    /// Returns the phase.
    #[must_use]
    pub const fn phase(&self) -> &SessionPhase {
        &self.phase
    }

    const fn is_pending(&self) -> bool {
        !matches!(self.phase, SessionPhase::Open | SessionPhase::Closing(_))
    }

    const fn counts(&self) -> bool {
        !matches!(self.phase, SessionPhase::Rejecting(..))
    }

    /// Returns true if the authenticator knows the client, and has neither accepted nor rejected it.
    const fn is_undecided(&self) -> bool {
        matches!(
            self.phase,
            SessionPhase::Connecting | SessionPhase::Challenging(_) | SessionPhase::Challenged
        )
    }
}

/// Session of an administrative request that passed the checks.
#[derive(Clone, Copy, Debug)]
pub struct AdminSession<'a> {
    /// Handle, for the answer.
    pub handle: Handle,
    /// Principal, for the authorisation.
    pub principal: &'a [u8],
}

/// Sessions of one member.
///
/// **Input**: requests of clients (`on_*`), entries of the log on members that do not lead
/// ([`on_open_event`](Self::on_open_event), [`on_close_event`](Self::on_close_event)), the commit position, the end of an ingress
/// image, begin and end of leadership. [`step`](Self::step), each slow tick, does what is due through [`SessionIo`].
#[derive(Debug)]
pub struct Sessions {
    limits: SessionLimits,
    sessions: BTreeMap<Handle, Session>,
    by_id: HashMap<i64, Handle>,
    next_handle: u64,
    next_id: i64,
    committed_next_id: i64,
    /// Open events of this leader that are not committed: position, and the session id that follows.
    uncommitted_ids: VecDeque<(i64, i64)>,
    /// Closed sessions whose close event is not committed.
    uncommitted_closed: VecDeque<(i64, Session, CloseReason)>,
    timed_out: u64,
    /// Response channels of clients that the authenticator has rejected, until they are taken.
    rejected: Vec<String>,
}

impl Sessions {
    /// Creates an empty table.
    #[must_use]
    pub fn new(limits: SessionLimits) -> Self {
        Self {
            limits,
            sessions: BTreeMap::new(),
            by_id: HashMap::new(),
            next_handle: 1,
            next_id: 1,
            committed_next_id: 1,
            uncommitted_ids: VecDeque::new(),
            uncommitted_closed: VecDeque::new(),
            timed_out: 0,
            rejected: Vec::new(),
        }
    }

    fn insert(&mut self, session: Session) -> Handle {
        let handle = Handle(self.next_handle);
        self.next_handle += 1;
        if session.id != NULL_VALUE {
            self.by_id.insert(session.id, handle);
        }
        self.sessions.insert(handle, session);
        handle
    }

    fn remove(&mut self, handle: Handle) -> Option<Session> {
        let session = self.sessions.remove(&handle)?;
        self.by_id.remove(&session.id);
        Some(session)
    }

    /// Removes a session. The authenticator is told, unless it has decided about it.
    fn remove_pending(&mut self, handle: Handle, authenticator: &mut dyn Authenticator) {
        if let Some(session) = self.remove(handle)
            && session.is_undecided()
        {
            authenticator.on_session_gone(session.id);
        }
    }

    /// Takes a connect request from an ingress image. A member that does not lead sends the client to the leader.
    pub fn on_connect_request(
        &mut self,
        leadership: &Leadership<'_>,
        is_leader: bool,
        request: &SessionConnectRequest<'_>,
        image: i64,
        authenticator: &mut dyn Authenticator,
        io: &mut impl SessionIo,
    ) -> Handle {
        let version = request.version.unwrap_or(0);
        let count = self.sessions.values().filter(|it| it.counts()).count();
        let (id, phase) = if is_leader {
            let id = self.next_id;
            self.next_id += 1;
            let phase = if major(version) != major(PROTOCOL_VERSION) {
                let (found, own) = (version_text(version), version_text(PROTOCOL_VERSION));
                let detail = format!("invalid client version {found}, cluster is {own}");
                SessionPhase::Rejecting(EventCode::ERROR, detail)
            } else if count >= self.limits.max_sessions {
                let detail = "concurrent session limit".to_owned();
                SessionPhase::Rejecting(EventCode::ERROR, detail)
            } else {
                authenticator.on_connect_request(
                    id,
                    request.encoded_credentials,
                    leadership.now_ms,
                );
                SessionPhase::Connecting
            };
            (id, phase)
        } else {
            let detail = leadership.ingress_endpoints.to_owned();
            let phase = SessionPhase::Rejecting(EventCode::REDIRECT, detail);
            (NULL_VALUE, phase)
        };
        self.begin(leadership, request, image, id, phase, io)
    }

    /// Takes a connect request from an ingress image that cannot be served. The client is told why.
    pub fn on_unservable_request(
        &mut self,
        leadership: &Leadership<'_>,
        is_leader: bool,
        request: &SessionConnectRequest<'_>,
        image: i64,
        reason: String,
        io: &mut impl SessionIo,
    ) -> Handle {
        let mut id = NULL_VALUE;
        if is_leader {
            id = self.next_id;
            self.next_id += 1;
        }
        let phase = SessionPhase::Rejecting(EventCode::ERROR, reason);
        self.begin(leadership, request, image, id, phase, io)
    }

    fn begin(
        &mut self,
        leadership: &Leadership<'_>,
        request: &SessionConnectRequest<'_>,
        image: i64,
        id: i64,
        phase: SessionPhase,
        io: &mut impl SessionIo,
    ) -> Handle {
        let handle = self.insert(Session {
            id,
            correlation_id: request.correlation_id,
            response_stream_id: request.response_stream_id,
            response_channel: request.response_channel.to_owned(),
            principal: Vec::new(),
            opened_position: NULL_VALUE,
            client_info: request.client_info.to_owned(),
            phase,
            last_activity: leadership.now,
            ingress_image: Some(image),
            is_from_log: false,
            notices: VecDeque::new(),
        });
        io.connect_egress(handle, request.response_channel, request.response_stream_id);
        handle
    }

    /// Takes the answer to a challenge.
    pub fn on_challenge_response(
        &mut self,
        leadership: &Leadership<'_>,
        response: &ChallengeResponse<'_>,
        authenticator: &mut dyn Authenticator,
    ) {
        let id = response.cluster_session_id;
        let session = self.by_id.get(&id).copied();
        if let Some(session) = session.and_then(|handle| self.sessions.get_mut(&handle))
            && session.phase == SessionPhase::Challenged
        {
            session.correlation_id = response.correlation_id;
            session.last_activity = leadership.now;
            authenticator.on_challenge_response(
                id,
                response.encoded_credentials,
                leadership.now_ms,
            );
        }
    }

    fn open_session(
        &mut self,
        leadership: &Leadership<'_>,
        term: i64,
        id: i64,
    ) -> Option<&mut Session> {
        if term != leadership.term {
            return None;
        }
        let handle = self.by_id.get(&id)?;
        let session = self.sessions.get_mut(handle)?;
        (session.phase == SessionPhase::Open).then_some(session)
    }

    /// Returns true if a message with this term and session is to be appended. The leader calls [`touch`](Self::touch) when it
    /// has been.
    pub fn accepts(&mut self, leadership: &Leadership<'_>, term: i64, id: i64) -> bool {
        self.open_session(leadership, term, id).is_some()
    }

    /// Notes the activity of a session.
    pub fn touch(&mut self, now: Nanos, id: i64) {
        if let Some(handle) = self.by_id.get(&id)
            && let Some(session) = self.sessions.get_mut(handle)
        {
            session.last_activity = now;
        }
    }

    /// Notes activity of all sessions, after a time in which nothing was heard.
    pub fn touch_all(&mut self, now: Nanos) {
        for session in self.sessions.values_mut() {
            session.last_activity = now;
        }
    }

    /// Takes a keep-alive. It links the session to the ingress image that it came from.
    pub fn on_keep_alive(&mut self, leadership: &Leadership<'_>, term: i64, id: i64, image: i64) {
        if let Some(session) = self.open_session(leadership, term, id) {
            session.last_activity = leadership.now;
            session.ingress_image.get_or_insert(image);
        }
    }

    /// Takes a close request of a client, which gets no answer.
    pub fn on_close_request(
        &mut self,
        leadership: &Leadership<'_>,
        term: i64,
        id: i64,
        io: &mut impl SessionIo,
    ) {
        if self.open_session(leadership, term, id).is_none() {
            return;
        }
        if let Some(handle) = self.by_id.get(&id).copied() {
            self.set_closing(handle, CloseReason::ClientAction);
            io.close_egress(handle);
            self.step_closing(leadership, handle, io);
        }
    }

    /// Returns the session of an administrative request, unless term or session do not fit.
    pub fn admin(
        &mut self,
        leadership: &Leadership<'_>,
        term: i64,
        id: i64,
    ) -> Option<AdminSession<'_>> {
        let handle = *self.by_id.get(&id)?;
        let session = self.open_session(leadership, term, id)?;
        Some(AdminSession {
            handle,
            principal: &session.principal,
        })
    }

    /// Closes the sessions of an ingress image that is gone, so that no session goes on behind a gap.
    pub fn on_image_gone(&mut self, image: i64) {
        for session in self.sessions.values_mut() {
            if session.ingress_image == Some(image) && session.phase == SessionPhase::Open {
                session.phase = SessionPhase::Closing(CloseReason::TIMEOUT);
            }
        }
    }

    /// Closes a session for a service, on each member.
    pub fn close_by_service(&mut self, id: i64) {
        if let Some(handle) = self.by_id.get(&id).copied()
            && self.sessions[&handle].phase == SessionPhase::Open
        {
            self.set_closing(handle, CloseReason::ServiceAction);
        }
    }

    fn set_closing(&mut self, handle: Handle, reason: CloseReason) {
        if let Some(session) = self.sessions.get_mut(&handle) {
            session.phase = SessionPhase::Closing(reason);
        }
    }

    /// Does what is due: answers, time-outs, entries of the log. `is_leader` is true while the leader takes entries; a member
    /// that does not lead sends redirects only.
    pub fn step(
        &mut self,
        leadership: &Leadership<'_>,
        is_leader: bool,
        authenticator: &mut dyn Authenticator,
        io: &mut impl SessionIo,
    ) {
        let handles: Vec<Handle> = self.sessions.keys().copied().collect();
        for handle in handles {
            let Some(session) = self.sessions.get(&handle) else {
                continue;
            };
            let silence = leadership.now - session.last_activity;
            let is_silent = silence > self.limits.timeout;
            match session.phase {
                SessionPhase::Rejecting(..) => {
                    self.step_rejecting(leadership, handle, is_silent, io);
                }
                _ if !is_leader => {}
                SessionPhase::Open if is_silent => {
                    self.timed_out += 1;
                    self.set_closing(handle, CloseReason::TIMEOUT);
                    self.step_closing(leadership, handle, io);
                }
                SessionPhase::Open => self.step_open(leadership, handle, io),
                SessionPhase::Closing(_) => self.step_closing(leadership, handle, io),
                _ if is_silent || io.egress(handle) == EgressState::Failed => {
                    self.timed_out += u64::from(is_silent);
                    self.remove_pending(handle, authenticator);
                    io.close_egress(handle);
                }
                _ => self.step_pending(leadership, handle, authenticator, io),
            }
        }
    }

    fn step_rejecting(
        &mut self,
        leadership: &Leadership<'_>,
        handle: Handle,
        is_silent: bool,
        io: &mut impl SessionIo,
    ) {
        let Some(session) = self.sessions.get(&handle) else {
            return;
        };
        let SessionPhase::Rejecting(code, detail) = &session.phase else {
            return;
        };
        let is_done = match io.egress(handle) {
            EgressState::Connecting => is_silent,
            EgressState::Failed => true,
            EgressState::Connected => {
                io.send(handle, &event(leadership, session, *code, detail)) || is_silent
            }
        };
        if is_done {
            self.remove(handle);
            io.close_egress(handle);
        }
    }

    fn step_pending(
        &mut self,
        leadership: &Leadership<'_>,
        handle: Handle,
        authenticator: &mut dyn Authenticator,
        io: &mut impl SessionIo,
    ) {
        if io.egress(handle) != EgressState::Connected {
            return;
        }
        let Some(session) = self.sessions.get_mut(&handle) else {
            return;
        };
        if matches!(
            session.phase,
            SessionPhase::Connecting | SessionPhase::Challenged
        ) {
            let is_challenged = session.phase == SessionPhase::Challenged;
            let decision = authenticator.decide(session.id, is_challenged, leadership.now_ms);
            session.phase = match decision {
                Authentication::Undecided => return,
                Authentication::Accept(principal) if principal.len() <= PRINCIPAL_LIMIT => {
                    session.principal = principal;
                    SessionPhase::Authenticated
                }
                Authentication::Challenge(challenge) => SessionPhase::Challenging(challenge),
                Authentication::Accept(_) | Authentication::Reject => {
                    self.rejected.push(session.response_channel.clone());
                    SessionPhase::Rejecting(
                        EventCode::AuthenticationRejected,
                        "session failed authentication".to_owned(),
                    )
                }
            };
        }
        match &session.phase {
            SessionPhase::Challenging(challenge) => {
                let message = EgressMessage::Challenge(Challenge {
                    correlation_id: session.correlation_id,
                    cluster_session_id: session.id,
                    encoded_challenge: challenge,
                });
                if io.send(handle, &message) {
                    session.phase = SessionPhase::Challenged;
                    session.last_activity = leadership.now;
                }
            }
            SessionPhase::Authenticated => {
                let event = SessionOpenEvent {
                    leadership_term_id: leadership.term,
                    correlation_id: session.correlation_id,
                    cluster_session_id: session.id,
                    timestamp: leadership.timestamp,
                    response_stream_id: session.response_stream_id,
                    response_channel: &session.response_channel,
                    encoded_principal: &session.principal,
                };
                if let Some(position) = io.append_open(&event) {
                    session.phase = SessionPhase::Open;
                    session.opened_position = position;
                    session.last_activity = leadership.now;
                    session.notices.push_back(Notice::Opened);
                    self.uncommitted_ids.push_back((position, session.id + 1));
                    self.step_open(leadership, handle, io);
                }
            }
            SessionPhase::Rejecting(..) => self.step_rejecting(leadership, handle, false, io),
            _ => {}
        }
    }

    fn step_open(&mut self, leadership: &Leadership<'_>, handle: Handle, io: &mut impl SessionIo) {
        let Some(session) = self.sessions.get_mut(&handle) else {
            return;
        };
        while let Some(notice) = session.notices.front() {
            if io.egress(handle) != EgressState::Connected {
                return;
            }
            let message = match notice {
                Notice::Opened => event(leadership, session, EventCode::OK, ""),
                Notice::NewLeader => EgressMessage::NewLeaderEvent(NewLeaderEvent {
                    leadership_term_id: leadership.term,
                    cluster_session_id: session.id,
                    leader_member_id: leadership.leader,
                    ingress_endpoints: leadership.ingress_endpoints,
                }),
            };
            if !io.send(handle, &message) {
                return;
            }
            session.notices.pop_front();
        }
    }

    fn step_closing(
        &mut self,
        leadership: &Leadership<'_>,
        handle: Handle,
        io: &mut impl SessionIo,
    ) {
        let Some(session) = self.sessions.get(&handle) else {
            return;
        };
        let SessionPhase::Closing(reason) = session.phase else {
            return;
        };
        let close = SessionCloseEvent {
            leadership_term_id: leadership.term,
            cluster_session_id: session.id,
            timestamp: leadership.timestamp,
            close_reason: reason,
        };
        let Some(position) = io.append_close(&close) else {
            return;
        };
        let detail = match reason {
            CloseReason::ServiceAction => Some("SERVICE_ACTION"),
            CloseReason::TIMEOUT => Some("TIMEOUT"),
            _ => None,
        };
        if let Some(detail) = detail
            && io.egress(handle) == EgressState::Connected
        {
            // The client of a session that timed out may be gone; a lost event is noticed by its own timeout.
            io.send(
                handle,
                &event(leadership, session, EventCode::CLOSED, detail),
            );
        }
        io.close_egress(handle);
        if let Some(session) = self.remove(handle) {
            self.uncommitted_closed
                .push_back((position, session, reason));
        }
    }

    /// Takes an open event from the log. Returns false if the session is open already.
    pub fn on_open_event(&mut self, position: i64, event: &SessionOpenEvent<'_>) -> bool {
        let id = event.cluster_session_id;
        if self.by_id.contains_key(&id) {
            return false;
        }
        self.note_id(id);
        self.insert(Session {
            id,
            correlation_id: event.correlation_id,
            response_stream_id: event.response_stream_id,
            response_channel: event.response_channel.to_owned(),
            principal: event.encoded_principal.to_vec(),
            opened_position: position,
            client_info: String::new(),
            phase: SessionPhase::Open,
            last_activity: 0,
            ingress_image: None,
            is_from_log: true,
            notices: VecDeque::new(),
        });
        true
    }

    fn note_id(&mut self, id: i64) {
        let next = id.saturating_add(1);
        self.next_id = self.next_id.max(next);
        self.committed_next_id = self.committed_next_id.max(next);
    }

    /// Takes a close event from the log. Returns false if there is no such session.
    pub fn on_close_event(&mut self, id: i64) -> bool {
        let handle = self.by_id.get(&id).copied();
        handle.is_some_and(|handle| self.remove(handle).is_some())
    }

    /// Restores a session, and the next session id, from a snapshot.
    pub fn restore(&mut self, next_id: i64, session: &crate::protocol::ClusterSession<'_>) {
        self.restore_next_id(next_id);
        let phase = match session.close_reason {
            CloseReason::Unknown(_) => SessionPhase::Open,
            reason => SessionPhase::Closing(reason),
        };
        self.insert(Session {
            id: session.cluster_session_id,
            correlation_id: session.correlation_id,
            response_stream_id: session.response_stream_id,
            response_channel: session.response_channel.to_owned(),
            principal: Vec::new(),
            opened_position: session.opened_log_position,
            client_info: String::new(),
            phase,
            last_activity: 0,
            ingress_image: None,
            is_from_log: true,
            notices: VecDeque::new(),
        });
    }

    /// Restores the next session id from a snapshot.
    pub fn restore_next_id(&mut self, next_id: i64) {
        self.note_id(next_id.saturating_sub(1));
    }

    /// Takes the commit position of the leader.
    pub fn on_committed(&mut self, position: i64) {
        while let Some((at, next)) = self.uncommitted_ids.front().copied()
            && at <= position
        {
            self.committed_next_id = self.committed_next_id.max(next);
            self.uncommitted_ids.pop_front();
        }
        while let Some((at, ..)) = self.uncommitted_closed.front()
            && *at <= position
        {
            self.uncommitted_closed.pop_front();
        }
    }

    /// Begins leadership: reconnects all sessions, or closes them if the node has just been started, because their clients are
    /// not connected to it.
    pub fn begin_leadership(&mut self, now: Nanos, is_startup: bool, io: &mut impl SessionIo) {
        for (handle, session) in &mut self.sessions {
            session.last_activity = now;
            if session.phase != SessionPhase::Open {
                continue;
            }
            if is_startup {
                session.phase = SessionPhase::Closing(CloseReason::TIMEOUT);
                continue;
            }
            session.notices.clear();
            if session.is_from_log {
                session.notices.push_back(Notice::Opened);
            }
            session.notices.push_back(Notice::NewLeader);
            io.connect_egress(
                *handle,
                &session.response_channel,
                session.response_stream_id,
            );
        }
    }

    /// Ends leadership, or an attempt at it. Sessions that are not open in the committed log are closed; clients are told why.
    pub fn end_leadership(
        &mut self,
        leadership: &Leadership<'_>,
        commit: i64,
        authenticator: &mut dyn Authenticator,
        io: &mut impl SessionIo,
    ) {
        let handles: Vec<Handle> = self.sessions.keys().copied().collect();
        for handle in handles {
            let session = &self.sessions[&handle];
            let is_lost = session.is_pending() || session.opened_position > commit;
            if is_lost {
                if io.egress(handle) == EgressState::Connected && session.counts() {
                    io.send(
                        handle,
                        &event(leadership, session, EventCode::CLOSED, "election"),
                    );
                }
                self.remove_pending(handle, authenticator);
            } else if let Some(session) = self.sessions.get_mut(&handle) {
                session.ingress_image = None;
                session.notices.clear();
            }
            io.close_egress(handle);
        }
        for (position, mut session, reason) in std::mem::take(&mut self.uncommitted_closed) {
            if position > commit && session.opened_position <= commit {
                session.phase = SessionPhase::Closing(reason);
                session.ingress_image = None;
                self.insert(session);
            }
        }
        self.uncommitted_ids.clear();
    }

    /// Returns a session.
    #[must_use]
    pub fn session(&self, handle: Handle) -> Option<&Session> {
        self.sessions.get(&handle)
    }

    /// Returns the handle and the session with this id.
    #[must_use]
    pub fn get(&self, id: i64) -> Option<(Handle, &Session)> {
        let handle = *self.by_id.get(&id)?;
        Some((handle, self.sessions.get(&handle)?))
    }

    /// Returns all sessions that a snapshot contains, by ascending id.
    #[must_use]
    pub fn in_snapshot(&self) -> Vec<&Session> {
        let mut sessions: Vec<&Session> = self
            .sessions
            .values()
            .filter(|session| !session.is_pending())
            .collect();
        sessions.sort_by_key(|session| session.id);
        sessions
    }

    /// Returns the session id that follows the last committed one: the same on all members at one position of the log.
    #[must_use]
    pub const fn committed_next_id(&self) -> i64 {
        self.committed_next_id
    }

    /// Returns the number of sessions that timed out.
    #[must_use]
    pub const fn timed_out(&self) -> u64 {
        self.timed_out
    }

    /// Takes the response channels of the clients that the authenticator has rejected since the last call. It is called after
    /// each [`step`](Self::step).
    pub fn take_rejected(&mut self) -> Vec<String> {
        std::mem::take(&mut self.rejected)
    }

    /// Returns the number of sessions, pending ones and redirects included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Returns true if there is no session.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }
}

fn event<'a>(
    leadership: &Leadership<'_>,
    session: &Session,
    code: EventCode,
    detail: &'a str,
) -> EgressMessage<'a> {
    EgressMessage::SessionEvent(SessionEvent {
        cluster_session_id: session.id,
        correlation_id: session.correlation_id,
        leadership_term_id: leadership.term,
        leader_member_id: leadership.leader,
        code,
        version: Some(PROTOCOL_VERSION),
        leader_heartbeat_timeout_ns: Some(leadership.heartbeat_timeout),
        detail,
    })
}
