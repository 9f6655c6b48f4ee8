// SPDX-License-Identifier: Apache-2.0
//! The state machine of a session.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use super::attempt::Attempt;
use super::endpoints::{IngressEndpoint, parse_endpoints};
use super::state::{ClosedReason, ClusterEvent, ClusterState};
use super::{Credentials, MemberId};
use crate::protocol::{
    ChallengeResponse, EgressMessage, EventCode, IngressMessage, NewLeaderEvent, PROTOCOL_VERSION,
    SessionCloseRequest, SessionConnectRequest, SessionEvent, SessionKeepAlive,
};

/// Pause before a member is asked again that knows no leader, or has refused a session that replaces a lost one.
const PAUSE_NS: i64 = 20_000_000;
/// Longest wait for the answer of one member.
const MAX_ANSWER_NS: i64 = 1_000_000_000;
/// Heartbeat timeout of leaders that state none.
const DEFAULT_HEARTBEAT_NS: i64 = 10_000_000_000;
/// Time without a new leader after which the session is given up, in heartbeat timeouts of the leader.
const NEW_LEADER_TIMEOUTS: i64 = 2;
/// Requests of one attempt whose answers are recognized.
const REQUEST_LIMIT: usize = 256;

/// Identifies a connection to a member, within one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(u64);

/// Command for the connections to members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkCommand {
    /// Opens an ingress publication of its own; without an endpoint, on the ingress channel as it is.
    Open {
        /// Connection.
        link: LinkId,
        /// Endpoint.
        endpoint: Option<String>,
    },
    /// Closes an ingress publication.
    Close {
        /// Connection.
        link: LinkId,
    },
}

/// Settings of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// Ingress endpoints of the members; empty for one connection on the ingress channel.
    pub endpoints: Vec<IngressEndpoint>,
    /// Stream id for egress.
    pub response_stream_id: i32,
    /// Name and version of the client.
    pub client_info: String,
    /// Time limit for the first session, and for the connection to a new leader.
    pub message_timeout_ns: i64,
    /// Time without a message after which a keep-alive is sent; 0 for never.
    pub keep_alive_ns: i64,
    /// Time without a leader after which a session is given up; 0 for twice the leader's heartbeat
    /// timeout, and at least the message timeout.
    pub new_leader_timeout_ns: i64,
    /// Time for which a new session is sought when one is lost; 0 closes instead.
    pub reconnect_timeout_ns: i64,
}

/// An open session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Established {
    /// Id of the session.
    pub session_id: i64,
    /// Term of the leader, which each message names.
    pub term: i64,
    /// Leader.
    pub leader: MemberId,
    /// Heartbeat timeout of the leader, in nanoseconds.
    pub heartbeat_timeout_ns: i64,
}

#[derive(Clone, Debug)]
struct Link {
    id: LinkId,
    /// Member; none for the ingress channel as it is.
    member: Option<IngressEndpoint>,
    is_connected: bool,
}

#[derive(Clone, Debug)]
enum Phase {
    /// Opens a session: the first one, or one that replaces a lost one.
    Opening(Attempt),
    Connected {
        link: LinkId,
    },
    AwaitingLeader {
        begin_ns: i64,
        deadline_ns: i64,
    },
    /// The new leader is known, and the connection to it is awaited.
    Joining {
        link: LinkId,
        deadline_ns: i64,
    },
    Closed(ClosedReason),
}

/// A request that is to be sent. It has no text, because credentials are secret.
#[derive(Clone)]
enum Request {
    Connect {
        correlation_id: i64,
        credentials: Vec<u8>,
    },
    ChallengeResponse {
        correlation_id: i64,
        session_id: i64,
        credentials: Vec<u8>,
    },
    KeepAlive,
    /// Closes a session that was opened twice.
    CloseStray {
        session_id: i64,
    },
}

/// A session with a cluster.
///
/// **Input**: [`on_egress`](Self::on_egress) once with the channel for answers; [`set_connected`](Self::set_connected) with the state
/// of each connection that [`next_command`](Self::next_command) has opened; [`on_message`](Self::on_message) for each message other
/// than application messages; [`on_leader_lost`](Self::on_leader_lost) when the connection to the leader, or the stream from it, has
/// ended; [`tick`](Self::tick) with the time, after all of these. **Output**: [`next_command`](Self::next_command) opens and closes
/// connections; [`request`](Self::request) has to be sent, and is repeated until [`on_sent`](Self::on_sent) is called;
/// [`next_event`](Self::next_event) tells the application. Application messages go to [`leader`](Self::leader), each reported with
/// [`on_offered`](Self::on_offered).
pub struct Session<C> {
    options: SessionOptions,
    credentials: C,
    response_channel: Option<String>,
    members: Vec<IngressEndpoint>,
    links: Vec<Link>,
    next_link: u64,
    phase: Phase,
    /// The session that is open, or that a new one replaces.
    established: Option<Established>,
    /// Requests of the last attempt, whose late answers open sessions that nothing uses.
    old_requests: Vec<i64>,
    strays: Vec<i64>,
    request: Option<(LinkId, Request)>,
    commands: VecDeque<LinkCommand>,
    events: VecDeque<ClusterEvent>,
    sent: u64,
    last_sent_ns: i64,
}

impl<C> fmt::Debug for Session<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("phase", &self.phase)
            .field("established", &self.established)
            .field("links", &self.links)
            .finish_non_exhaustive()
    }
}

impl<C: Credentials> Session<C> {
    /// Creates a session that is to be opened.
    #[must_use]
    pub fn new(options: SessionOptions, credentials: C, now_ns: i64) -> Self {
        let mut session = Self {
            members: options.endpoints.clone(),
            phase: Phase::Opening(Attempt::new(now_ns, options.message_timeout_ns)),
            options,
            credentials,
            response_channel: None,
            links: Vec::new(),
            next_link: 0,
            established: None,
            old_requests: Vec::new(),
            strays: Vec::new(),
            request: None,
            commands: VecDeque::new(),
            events: VecDeque::new(),
            sent: 0,
            last_sent_ns: now_ns,
        };
        session.open_links();
        session
    }

    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> ClusterState {
        match &self.phase {
            Phase::Opening(_) if self.established.is_none() => ClusterState::Connecting,
            Phase::Opening(_) => ClusterState::Reconnecting,
            Phase::Connected { .. } => ClusterState::Connected,
            Phase::AwaitingLeader { .. } | Phase::Joining { .. } => ClusterState::AwaitingLeader,
            Phase::Closed(reason) => ClusterState::Closed(reason.clone()),
        }
    }

    /// Returns why the session is closed; none while it is not.
    #[must_use]
    pub fn closed_reason(&self) -> Option<&ClosedReason> {
        match &self.phase {
            Phase::Closed(reason) => Some(reason),
            _ => None,
        }
    }

    /// Returns the session; the lost one while a new one is being opened.
    #[must_use]
    pub const fn established(&self) -> Option<&Established> {
        self.established.as_ref()
    }

    /// Returns the connection to the leader, for messages; none while there is none.
    #[must_use]
    pub const fn leader(&self) -> Option<(LinkId, &Established)> {
        match (&self.phase, &self.established) {
            (Phase::Connected { link }, Some(established)) => Some((*link, established)),
            _ => None,
        }
    }

    /// Returns the number of messages that were sent.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Removes and returns the oldest event.
    pub fn next_event(&mut self) -> Option<ClusterEvent> {
        self.events.pop_front()
    }

    /// Returns true if there is an event.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Removes and returns the oldest command.
    pub fn next_command(&mut self) -> Option<LinkCommand> {
        self.commands.pop_front()
    }

    /// Takes the channel for answers, with its port.
    pub fn on_egress(&mut self, response_channel: String) {
        self.response_channel = Some(response_channel);
    }

    /// Takes the state of a connection.
    pub fn set_connected(&mut self, link: LinkId, is_connected: bool) {
        if let Some(link) = self.links.iter_mut().find(|it| it.id == link) {
            link.is_connected = is_connected;
        }
    }

    /// Takes a message that was sent to the leader. Returns its number, from 1.
    pub fn on_offered(&mut self, now_ns: i64) -> u64 {
        self.last_sent_ns = now_ns;
        self.sent += 1;
        self.sent
    }

    /// Returns the request that has to be sent now, and over which connection.
    #[must_use]
    pub fn request(&self) -> Option<(LinkId, IngressMessage<'_>)> {
        let (link, request) = self.request.as_ref()?;
        let established = self.established.as_ref();
        let message = match request {
            Request::Connect {
                correlation_id,
                credentials,
            } => IngressMessage::SessionConnectRequest(SessionConnectRequest {
                correlation_id: *correlation_id,
                response_stream_id: self.options.response_stream_id,
                version: Some(PROTOCOL_VERSION),
                response_channel: self.response_channel.as_deref()?,
                encoded_credentials: credentials,
                client_info: &self.options.client_info,
            }),
            Request::ChallengeResponse {
                correlation_id,
                session_id,
                credentials,
            } => IngressMessage::ChallengeResponse(ChallengeResponse {
                correlation_id: *correlation_id,
                cluster_session_id: *session_id,
                encoded_credentials: credentials,
            }),
            Request::KeepAlive => IngressMessage::SessionKeepAlive(SessionKeepAlive {
                leadership_term_id: established?.term,
                cluster_session_id: established?.session_id,
            }),
            Request::CloseStray { session_id } => {
                IngressMessage::SessionCloseRequest(SessionCloseRequest {
                    leadership_term_id: established?.term,
                    cluster_session_id: *session_id,
                })
            }
        };
        Some((*link, message))
    }

    /// Takes that the request was sent.
    pub fn on_sent(&mut self, now_ns: i64) {
        if let Some((_, Request::KeepAlive)) = self.request.take() {
            self.last_sent_ns = now_ns;
        }
    }

    /// Takes a message of the cluster, other than an application message.
    pub fn on_message(
        &mut self,
        message: &EgressMessage<'_>,
        now_ns: i64,
        next_correlation_id: impl FnOnce() -> i64,
    ) {
        match message {
            EgressMessage::SessionEvent(event) => self.on_session_event(event, now_ns),
            EgressMessage::NewLeaderEvent(event) => self.on_new_leader(event, now_ns),
            EgressMessage::Challenge(challenge) => {
                let Phase::Opening(attempt) = &mut self.phase else {
                    return;
                };
                let Some(link) = attempt.link_of(challenge.correlation_id) else {
                    return;
                };
                let credentials = self.credentials.on_challenge(challenge.encoded_challenge);
                let correlation_id = next_correlation_id();
                attempt.requests.push((correlation_id, link));
                attempt.asked = Some((link, now_ns.saturating_add(self.options.answer_ns())));
                let session_id = challenge.cluster_session_id;
                self.request = Some((
                    link,
                    Request::ChallengeResponse {
                        correlation_id,
                        session_id,
                        credentials,
                    },
                ));
            }
            EgressMessage::AdminResponse(response) => {
                if self.is_own(response.cluster_session_id) {
                    self.events.push_back(ClusterEvent::AdminResponse {
                        correlation_id: response.correlation_id,
                        request_type: response.request_type,
                        code: response.response_code,
                        message: response.message.to_owned(),
                        payload: response.payload.to_vec(),
                    });
                }
            }
            EgressMessage::SessionMessageHeader(_) => {}
        }
    }

    /// Takes the loss of the connection to the leader, or of the stream from it.
    pub fn on_leader_lost(&mut self, now_ns: i64) {
        let (Phase::Connected { .. }, Some(established)) = (&self.phase, self.established) else {
            return;
        };
        self.request = None;
        self.events.push_back(ClusterEvent::LeaderLost {
            leader: established.leader,
        });
        let timeout = self.options.new_leader_ns(&established);
        self.phase = Phase::AwaitingLeader {
            begin_ns: now_ns,
            deadline_ns: now_ns.saturating_add(timeout),
        };
    }

    /// Closes the session for good, for instance because the driver is lost.
    pub fn close(&mut self, reason: ClosedReason) {
        if self.closed_reason().is_some() {
            return;
        }
        self.request = None;
        self.close_links();
        self.events.push_back(ClusterEvent::Closed(reason.clone()));
        self.phase = Phase::Closed(reason);
    }

    /// Takes the time: asks the next member, sends keep-alives, and gives up what takes too long.
    pub fn tick(&mut self, now_ns: i64, next_correlation_id: impl FnOnce() -> i64) {
        match self.phase.clone() {
            Phase::Opening(_) => self.tick_opening(now_ns, next_correlation_id),
            Phase::Connected { link } => {
                if self.request.is_none()
                    && let Some(session_id) = self.strays.pop()
                {
                    self.request = Some((link, Request::CloseStray { session_id }));
                }
                let keep_alive = self.options.keep_alive_ns;
                let is_idle = now_ns.saturating_sub(self.last_sent_ns) >= keep_alive;
                if self.request.is_none() && keep_alive > 0 && is_idle {
                    self.request = Some((link, Request::KeepAlive));
                }
            }
            Phase::AwaitingLeader {
                begin_ns,
                deadline_ns,
            } => {
                if now_ns >= deadline_ns {
                    self.give_up(now_ns, deadline_ns.saturating_sub(begin_ns));
                }
            }
            Phase::Joining { link, deadline_ns } => {
                if self.is_connected(link) {
                    // Links the session to the new stream.
                    self.request = Some((link, Request::KeepAlive));
                    self.phase = Phase::Connected { link };
                } else if now_ns >= deadline_ns {
                    self.give_up(now_ns, self.options.message_timeout_ns);
                }
            }
            Phase::Closed(_) => {}
        }
    }

    fn tick_opening(&mut self, now_ns: i64, next_correlation_id: impl FnOnce() -> i64) {
        let has_link = self.links.iter().any(|link| link.is_connected);
        let has_egress = self.response_channel.is_some();
        let answer_ns = self.options.answer_ns();
        let Phase::Opening(attempt) = &mut self.phase else {
            return;
        };
        if now_ns >= attempt.deadline_ns {
            let after = attempt.deadline_ns.saturating_sub(attempt.begin_ns);
            let reason = ClosedReason::Timeout {
                after: Duration::from_nanos(after.unsigned_abs()),
                waiting_for: attempt.waiting_for(has_egress, has_link),
            };
            self.close(reason);
            return;
        }
        let links = &self.links;
        let connected = |id| links.iter().any(|link| link.id == id && link.is_connected);
        if let Some((asked, until)) = attempt.asked {
            if now_ns < until && connected(asked) {
                return;
            }
            attempt.asked = None;
            self.request = None;
        }
        if !has_egress || now_ns < attempt.not_before_ns {
            return;
        }
        let preferred = attempt.preferred.and_then(|(leader, until)| {
            let of_leader = |link: &&Link| {
                let member = link.member.as_ref();
                member.is_some_and(|member| member.member_id == leader)
            };
            let link = links.iter().find(of_leader)?;
            (link.is_connected || now_ns < until).then_some((link.id, link.is_connected))
        });
        let next = match preferred {
            // The leader is awaited.
            Some((_, false)) => return,
            Some((link, true)) => Some(link),
            None => {
                let count = links.len();
                let order = (0..count).map(|at| (attempt.turn + at) % count);
                let next = order.into_iter().find(|at| links[*at].is_connected);
                next.map(|at| {
                    attempt.turn = at + 1;
                    links[at].id
                })
            }
        };
        attempt.preferred = None;
        let Some(link) = next else {
            return;
        };
        let correlation_id = next_correlation_id();
        if attempt.requests.len() >= REQUEST_LIMIT {
            attempt.requests.remove(0);
        }
        attempt.requests.push((correlation_id, link));
        attempt.asked = Some((link, now_ns.saturating_add(answer_ns)));
        let credentials = self.credentials.credentials();
        self.request = Some((
            link,
            Request::Connect {
                correlation_id,
                credentials,
            },
        ));
    }

    /// Opens a new session, or closes for good.
    fn give_up(&mut self, now_ns: i64, after_ns: i64) {
        if self.options.reconnect_timeout_ns <= 0 {
            self.close(ClosedReason::NoLeader {
                after: Duration::from_nanos(after_ns.unsigned_abs()),
            });
            return;
        }
        self.open_again(now_ns);
    }

    fn open_again(&mut self, now_ns: i64) {
        self.request = None;
        self.phase = Phase::Opening(Attempt::new(now_ns, self.options.reconnect_timeout_ns));
        // New streams, as for a new leader.
        self.close_links();
        self.open_links();
    }

    fn on_session_event(&mut self, event: &SessionEvent<'_>, now_ns: i64) {
        let link = match &self.phase {
            Phase::Opening(attempt) => attempt.link_of(event.correlation_id),
            _ => None,
        };
        if let Some(link) = link {
            self.on_answer(event, link, now_ns);
        } else if self.is_own(event.cluster_session_id) {
            match event.code {
                // A new leader repeats it, because the former one may have died before it was sent.
                EventCode::OK => self.note_leader(event),
                EventCode::CLOSED => self.on_closed(event.detail, now_ns),
                _ => {}
            }
        } else if event.code == EventCode::OK && self.old_requests.contains(&event.correlation_id) {
            self.strays.push(event.cluster_session_id);
        }
    }

    fn note_leader(&mut self, event: &SessionEvent<'_>) {
        if let Some(established) = &mut self.established
            && event.leadership_term_id >= established.term
            && let Some(timeout) = event.leader_heartbeat_timeout_ns
        {
            established.heartbeat_timeout_ns = timeout;
        }
    }

    fn on_closed(&mut self, detail: &str, now_ns: i64) {
        let is_lost = detail != "SERVICE_ACTION" && self.options.reconnect_timeout_ns > 0;
        if is_lost && !matches!(self.phase, Phase::Closed(_)) {
            self.open_again(now_ns);
        } else {
            self.close(ClosedReason::Cluster {
                detail: detail.to_owned(),
            });
        }
    }

    /// Takes the answer to a request of the attempt.
    fn on_answer(&mut self, event: &SessionEvent<'_>, link: LinkId, now_ns: i64) {
        let Phase::Opening(attempt) = &mut self.phase else {
            return;
        };
        let detail = event.detail.to_owned();
        match event.code {
            EventCode::OK => self.open(event, link, now_ns),
            EventCode::REDIRECT => {
                let asked = self
                    .links
                    .iter()
                    .find(|it| it.id == link)
                    .and_then(|it| it.member.as_ref().map(|member| member.member_id));
                let leader = event.leader_member_id;
                attempt.ask_again(now_ns, PAUSE_NS);
                self.request = None;
                if asked == Some(leader) || leader < 0 {
                    return;
                }
                if let Ok(members) = parse_endpoints(event.detail) {
                    let until = now_ns.saturating_add(self.options.answer_ns());
                    attempt.not_before_ns = now_ns;
                    attempt.preferred = Some((leader, until));
                    self.members = members;
                    self.open_links();
                }
            }
            EventCode::AuthenticationRejected => {
                self.close(ClosedReason::AuthenticationRejected { detail });
            }
            EventCode::ERROR if self.established.is_none() => {
                self.close(ClosedReason::Refused { detail });
            }
            // The cluster may still hold the lost session against the limit; or the election has closed the new one.
            EventCode::ERROR | EventCode::CLOSED => {
                attempt.refusal = Some(detail);
                attempt.ask_again(now_ns, PAUSE_NS);
                self.request = None;
            }
            _ => {}
        }
    }

    fn open(&mut self, event: &SessionEvent<'_>, link: LinkId, now_ns: i64) {
        let heartbeat = event.leader_heartbeat_timeout_ns;
        let new = Established {
            session_id: event.cluster_session_id,
            term: event.leadership_term_id,
            leader: event.leader_member_id,
            heartbeat_timeout_ns: heartbeat.unwrap_or(DEFAULT_HEARTBEAT_NS),
        };
        let (session_id, leader) = (new.session_id, new.leader);
        let event = match self.established.replace(new) {
            None => ClusterEvent::Connected { session_id, leader },
            Some(old) => ClusterEvent::NewSession {
                old: old.session_id,
                session_id,
                leader,
                maybe_lost: self.sent,
            },
        };
        self.events.push_back(event);
        if let Phase::Opening(attempt) = &self.phase {
            self.old_requests = attempt.requests.iter().map(|(id, _)| *id).collect();
        }
        self.request = None;
        self.last_sent_ns = now_ns;
        self.phase = Phase::Connected { link };
        self.keep_link(link);
    }

    fn on_new_leader(&mut self, event: &NewLeaderEvent<'_>, now_ns: i64) {
        let is_closed = matches!(self.phase, Phase::Closed(_));
        if is_closed || !self.is_own(event.cluster_session_id) {
            return;
        }
        let Some(established) = &mut self.established else {
            return;
        };
        if event.leadership_term_id < established.term {
            return;
        }
        let Ok(members) = parse_endpoints(event.ingress_endpoints) else {
            return;
        };
        established.term = event.leadership_term_id;
        established.leader = event.leader_member_id;
        // Clients of one endpoint, as over IPC or multicast, stay on their channel.
        if !self.options.endpoints.is_empty() {
            self.members = members;
        }
        let leader = event.leader_member_id;
        self.events.push_back(ClusterEvent::NewLeader {
            leader,
            term: event.leadership_term_id,
            maybe_lost: self.sent,
        });
        self.request = None;
        if let Phase::Opening(attempt) = &self.phase {
            self.old_requests = attempt.requests.iter().map(|(id, _)| *id).collect();
        }
        // A new stream: the leader has not seen what the old one carried while it did not lead.
        self.close_links();
        let member = self.members.iter().find(|it| it.member_id == leader);
        let member = member.cloned();
        if member.is_none() && !self.members.is_empty() {
            return self.give_up(now_ns, 0);
        }
        let link = self.open_link(member);
        self.phase = Phase::Joining {
            link,
            deadline_ns: now_ns.saturating_add(self.options.message_timeout_ns),
        };
    }

    fn is_own(&self, session_id: i64) -> bool {
        self.established
            .is_some_and(|established| established.session_id == session_id)
    }

    fn is_connected(&self, link: LinkId) -> bool {
        self.links.iter().any(|it| it.id == link && it.is_connected)
    }

    /// Opens a connection to each member, unless there is one, and closes the others.
    fn open_links(&mut self) {
        let wanted: Vec<Option<IngressEndpoint>> = match &*self.members {
            [] => vec![None],
            members => members.iter().cloned().map(Some).collect(),
        };
        let commands = &mut self.commands;
        self.links.retain(|link| {
            let is_wanted = wanted.contains(&link.member);
            if !is_wanted {
                commands.push_back(LinkCommand::Close { link: link.id });
            }
            is_wanted
        });
        for member in wanted {
            if !self.links.iter().any(|link| link.member == member) {
                self.open_link(member);
            }
        }
    }

    fn open_link(&mut self, member: Option<IngressEndpoint>) -> LinkId {
        let id = LinkId(self.next_link);
        self.next_link += 1;
        self.commands.push_back(LinkCommand::Open {
            link: id,
            endpoint: member.as_ref().map(|member| member.endpoint.clone()),
        });
        self.links.push(Link {
            id,
            member,
            is_connected: false,
        });
        id
    }

    fn keep_link(&mut self, kept: LinkId) {
        let commands = &mut self.commands;
        self.links.retain(|link| {
            let is_kept = link.id == kept;
            if !is_kept {
                commands.push_back(LinkCommand::Close { link: link.id });
            }
            is_kept
        });
    }

    fn close_links(&mut self) {
        for link in self.links.drain(..) {
            self.commands
                .push_back(LinkCommand::Close { link: link.id });
        }
    }
}

impl SessionOptions {
    fn answer_ns(&self) -> i64 {
        MAX_ANSWER_NS.min(self.message_timeout_ns / 3)
    }

    fn new_leader_ns(&self, established: &Established) -> i64 {
        if self.new_leader_timeout_ns > 0 {
            return self.new_leader_timeout_ns;
        }
        let heartbeat = established.heartbeat_timeout_ns.max(0);
        let timeout = heartbeat.saturating_mul(NEW_LEADER_TIMEOUTS);
        timeout.max(self.message_timeout_ns)
    }
}
