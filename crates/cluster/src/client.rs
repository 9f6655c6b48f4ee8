//! Client of a cluster (`docs/spec/cluster.md` §2).

use std::time::{Duration, Instant};

use taran::{
    ChannelUri, Client, CommandError, ExclusivePublication, FragmentAssembler, OfferError,
    PollError, Subscription, UriError,
};
use taran_sbe::runtime::EncodeError;
use thiserror::Error;

use crate::consensus::MemberId;
use crate::protocol::{
    EgressMessage, EventCode, IngressMessage, PROTOCOL_VERSION, SESSION_HEADER_LENGTH,
    SessionCloseRequest, SessionConnectRequest, SessionEvent, SessionKeepAlive,
    SessionMessageHeader, split,
};

/// Time between two looks while the client connects.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Longest wait for the answer of one member before the next one is asked.
const TRY_TIMEOUT: Duration = Duration::from_secs(1);
/// Time without a new leader after which a client gives up, in heartbeat timeouts of the leader.
const NEW_LEADER_TIMEOUTS: u32 = 2;

/// Reason why a client did not connect.
#[derive(Error)]
#[non_exhaustive]
pub enum ConnectClusterError {
    /// The driver has refused what the client needs.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A channel is invalid.
    #[error(transparent)]
    Channel(#[from] UriError),
    /// The list of endpoints cannot be read.
    #[error("the ingress endpoints `{text}` are no list of id=host:port, joined by commas")]
    Endpoints {
        /// The list.
        text: String,
    },
    /// The cluster has refused the session.
    #[error("the cluster refuses the session: {detail}")]
    Refused {
        /// Text of the cluster.
        detail: String,
    },
    /// The credentials are not accepted.
    #[error("the cluster does not accept the credentials: {detail}")]
    AuthenticationRejected {
        /// Text of the cluster.
        detail: String,
    },
    /// No member has answered in time.
    #[error("no leader has answered within {} ms at {endpoints}", timeout.as_millis())]
    Timeout {
        /// Time limit.
        timeout: Duration,
        /// Endpoints that were asked.
        endpoints: String,
    },
    /// The egress subscription is closed.
    #[error(transparent)]
    Poll(#[from] PollError),
    /// The request does not fit into a message.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

taran_core::debug_is_display!(ConnectClusterError);

/// Reason why a message was not sent to the cluster.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClusterOfferError {
    /// The session is closed.
    #[error("the session is closed: {reason}")]
    Closed {
        /// Reason.
        reason: String,
    },
    /// There is no leader now; the client waits for the next one.
    #[error("the leader of the cluster is lost; offer again once there is a new one")]
    AwaitingLeader,
    /// The publication to the leader refused the message.
    #[error(transparent)]
    Offer(#[from] OfferError),
}

taran_core::debug_is_display!(ClusterOfferError);

impl ClusterOfferError {
    /// Returns true if the same offer can succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::AwaitingLeader => true,
            Self::Offer(error) => error.is_retryable(),
            Self::Closed { .. } => false,
        }
    }
}

/// State of a client's connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClusterConnection {
    /// The session is open at the leader.
    Connected,
    /// The leader is lost, and the next one is awaited.
    AwaitingLeader,
    /// The session is closed.
    Closed {
        /// Reason.
        reason: String,
    },
}

/// Settings of a client.
#[derive(Clone, Debug)]
pub struct ClusterContext {
    endpoints: String,
    ingress_channel: String,
    ingress_stream_id: i32,
    egress_channel: String,
    egress_stream_id: i32,
    timeout: Duration,
    credentials: Vec<u8>,
    name: String,
}

impl ClusterContext {
    /// Returns the settings of a client of the members with these ingress endpoints: `0=host:port,1=host:port`.
    #[must_use]
    pub fn new(endpoints: impl Into<String>) -> Self {
        Self {
            endpoints: endpoints.into(),
            ingress_channel: "aeron:udp?term-length=64k".to_owned(),
            ingress_stream_id: 101,
            egress_channel: "aeron:udp?endpoint=localhost:0".to_owned(),
            egress_stream_id: 102,
            timeout: Duration::from_secs(5),
            credentials: Vec::new(),
            name: String::new(),
        }
    }

    /// Sets the channel on which the cluster answers. Default: a free port of localhost.
    #[must_use]
    pub fn egress_channel(mut self, channel: impl Into<String>) -> Self {
        self.egress_channel = channel.into();
        self
    }

    /// Sets the time limit for a connection. Default: 5 s.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the credentials. Default: none.
    #[must_use]
    pub fn credentials(mut self, credentials: impl Into<Vec<u8>>) -> Self {
        self.credentials = credentials.into();
        self
    }

    /// Sets the name of the client, which the cluster shows.
    #[must_use]
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Connects to the cluster. Asks one member after the other until the leader answers.
    ///
    /// # Errors
    /// See [`ConnectClusterError`].
    pub fn connect(&self, client: &Client) -> Result<ClusterClient, ConnectClusterError> {
        Connecting::start(self, client)?.run()
    }
}

fn endpoints(text: &str) -> Result<Vec<(MemberId, String)>, ConnectClusterError> {
    let members = text.split(',').map(|member| {
        let (id, endpoint) = member.split_once('=')?;
        Some((id.trim().parse().ok()?, endpoint.to_owned()))
    });
    let members: Option<Vec<_>> = members.collect();
    members
        .filter(|members| !members.is_empty())
        .ok_or_else(|| ConnectClusterError::Endpoints {
            text: text.to_owned(),
        })
}

struct Connecting<'a> {
    context: &'a ClusterContext,
    client: Client,
    egress: Subscription,
    response_channel: String,
    members: Vec<(MemberId, String)>,
    deadline: Instant,
}

enum Answer {
    Ok(Session),
    Redirect(MemberId, String),
    Challenged,
    Failed(ConnectClusterError),
}

#[derive(Clone, Copy, Debug)]
struct Session {
    id: i64,
    term: i64,
    leader: MemberId,
    heartbeat_timeout: Duration,
}

impl<'a> Connecting<'a> {
    fn start(context: &'a ClusterContext, client: &Client) -> Result<Self, ConnectClusterError> {
        let members = endpoints(&context.endpoints)?;
        let deadline = Instant::now() + context.timeout;
        let uri = ChannelUri::parse(&context.egress_channel)?.with("rejoin", "false")?;
        let egress = client.add_subscription(uri.as_str(), context.egress_stream_id)?;
        let response_channel = loop {
            if let Some(channel) = egress.try_resolve_channel_endpoint_port() {
                break channel;
            }
            if Instant::now() >= deadline {
                return Err(timed_out(context));
            }
            std::thread::sleep(POLL_INTERVAL);
        };
        Ok(Self {
            context,
            client: client.clone(),
            egress,
            response_channel,
            members,
            deadline,
        })
    }

    fn run(mut self) -> Result<ClusterClient, ConnectClusterError> {
        let limit = TRY_TIMEOUT.min(self.context.timeout / 3);
        let mut turn = 0;
        let mut next: Option<(MemberId, String)> = None;
        while Instant::now() < self.deadline {
            let (id, endpoint) = next.take().unwrap_or_else(|| {
                turn += 1;
                self.members[(turn - 1) % self.members.len()].clone()
            });
            let publication = self.publish(&endpoint)?;
            let until = self.deadline.min(Instant::now() + limit);
            match self.ask(publication, until)? {
                None => {}
                Some((Answer::Ok(session), publication)) => {
                    return Ok(ClusterClient::new(self, session, publication));
                }
                Some((Answer::Redirect(leader, detail), _)) => {
                    self.members = endpoints(&detail)?;
                    let found = self.members.iter().find(|(id, _)| *id == leader).cloned();
                    // A member that knows no leader is asked again later.
                    next = found.filter(|(leader, _)| *leader != id);
                    std::thread::sleep(POLL_INTERVAL);
                }
                Some((Answer::Challenged, _)) => {
                    return Err(ConnectClusterError::AuthenticationRejected {
                        detail: "it sends a challenge, which this client cannot answer".to_owned(),
                    });
                }
                Some((Answer::Failed(error), _)) => return Err(error),
            }
        }
        Err(timed_out(self.context))
    }

    fn publish(&self, endpoint: &str) -> Result<ExclusivePublication, ConnectClusterError> {
        let uri = ChannelUri::parse(&self.context.ingress_channel)?.with("endpoint", endpoint)?;
        let stream = self.context.ingress_stream_id;
        Ok(self
            .client
            .add_exclusive_publication(uri.as_str(), stream)?)
    }

    /// Asks one member. Returns none if it does not answer in time.
    fn ask(
        &mut self,
        mut publication: ExclusivePublication,
        until: Instant,
    ) -> Result<Option<(Answer, ExclusivePublication)>, ConnectClusterError> {
        let correlation_id = self.client.next_correlation_id();
        let info = format!(
            "name={} version={} commit=taran",
            self.context.name,
            env!("CARGO_PKG_VERSION")
        );
        let request = IngressMessage::SessionConnectRequest(SessionConnectRequest {
            correlation_id,
            response_stream_id: self.context.egress_stream_id,
            version: Some(PROTOCOL_VERSION),
            response_channel: &self.response_channel,
            encoded_credentials: &self.context.credentials,
            client_info: &info,
        });
        let mut buffer = vec![0; 1024 + self.context.credentials.len() + info.len()];
        let length = request.encode(&mut buffer)?;
        let mut is_sent = false;
        while Instant::now() < until {
            if !is_sent {
                is_sent = publication.offer(&buffer[..length]).is_ok();
            }
            let mut answer = None;
            self.egress.poll(
                |bytes, _| {
                    if let Ok(message) = EgressMessage::decode(bytes) {
                        answer = answer
                            .take()
                            .or_else(|| answer_in(&message, correlation_id));
                    }
                },
                // What comes after the answer is left for the application.
                1,
            )?;
            if let Some(answer) = answer {
                return Ok(Some((answer, publication)));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(None)
    }
}

fn timed_out(context: &ClusterContext) -> ConnectClusterError {
    ConnectClusterError::Timeout {
        timeout: context.timeout,
        endpoints: context.endpoints.clone(),
    }
}

fn answer_in(message: &EgressMessage<'_>, correlation_id: i64) -> Option<Answer> {
    match message {
        EgressMessage::Challenge(challenge) if challenge.correlation_id == correlation_id => {
            Some(Answer::Challenged)
        }
        EgressMessage::SessionEvent(event) if event.correlation_id == correlation_id => {
            let detail = event.detail.to_owned();
            Some(match event.code {
                EventCode::OK => Answer::Ok(session_of(event)),
                EventCode::REDIRECT => Answer::Redirect(event.leader_member_id, detail),
                EventCode::AuthenticationRejected => {
                    Answer::Failed(ConnectClusterError::AuthenticationRejected { detail })
                }
                _ => Answer::Failed(ConnectClusterError::Refused { detail }),
            })
        }
        _ => None,
    }
}

fn session_of(event: &SessionEvent<'_>) -> Session {
    let timeout = event.leader_heartbeat_timeout_ns.unwrap_or(10_000_000_000);
    Session {
        id: event.cluster_session_id,
        term: event.leadership_term_id,
        leader: event.leader_member_id,
        heartbeat_timeout: Duration::from_nanos(timeout.unsigned_abs()),
    }
}

/// A session with a cluster. It must be polled, also when nothing is awaited, and sends keep-alives while it is.
pub struct ClusterClient {
    context: ClusterContext,
    client: Client,
    egress: Subscription,
    assembler: FragmentAssembler,
    ingress: Option<ExclusivePublication>,
    session: Session,
    state: ClusterConnection,
    awaiting_since: Instant,
    last_sent: Instant,
}

impl ClusterClient {
    fn new(connecting: Connecting<'_>, session: Session, ingress: ExclusivePublication) -> Self {
        let now = Instant::now();
        Self {
            context: connecting.context.clone(),
            client: connecting.client,
            egress: connecting.egress,
            assembler: FragmentAssembler::new(),
            ingress: Some(ingress),
            session,
            state: ClusterConnection::Connected,
            awaiting_since: now,
            last_sent: now,
        }
    }

    /// Returns the id of the session.
    #[must_use]
    pub const fn session_id(&self) -> i64 {
        self.session.id
    }

    /// Returns the leader.
    #[must_use]
    pub const fn leader(&self) -> MemberId {
        self.session.leader
    }

    /// Returns the state of the connection.
    #[must_use]
    pub const fn state(&self) -> &ClusterConnection {
        &self.state
    }

    /// Sends a message to the cluster. What was sent to a leader that then failed may be lost, or applied without an answer:
    /// clients that cannot have that number their messages.
    ///
    /// # Errors
    /// The session is closed, there is no leader, or there is no room now.
    pub fn offer(&mut self, message: &[u8]) -> Result<(), ClusterOfferError> {
        let header = SessionMessageHeader {
            leadership_term_id: self.session.term,
            cluster_session_id: self.session.id,
            timestamp: 0,
        };
        let mut bytes = [0; SESSION_HEADER_LENGTH];
        // The buffer has the length of the header.
        let _ = header.encode(&mut bytes);
        self.send(&[&bytes, message])
    }

    fn send(&mut self, parts: &[&[u8]]) -> Result<(), ClusterOfferError> {
        if let ClusterConnection::Closed { reason } = &self.state {
            let reason = reason.clone();
            return Err(ClusterOfferError::Closed { reason });
        }
        let Some(ingress) = &mut self.ingress else {
            return Err(ClusterOfferError::AwaitingLeader);
        };
        ingress.offer_parts(parts)?;
        self.last_sent = Instant::now();
        Ok(())
    }

    fn send_message(&mut self, message: &IngressMessage<'_>) -> Result<(), ClusterOfferError> {
        let mut buffer = [0; 64];
        let length = message.encode(&mut buffer).unwrap_or(0);
        self.send(&[&buffer[..length]])
    }

    /// Receives messages: calls `handler` with each one of this session. Follows the cluster to a new leader, and keeps the
    /// session alive. Returns the number of messages.
    ///
    /// # Errors
    /// The driver is lost.
    pub fn poll(&mut self, mut handler: impl FnMut(&[u8])) -> Result<usize, PollError> {
        let Self {
            egress,
            assembler,
            session,
            ..
        } = self;
        let mut count = 0;
        let mut closed = None;
        let mut leader = None;
        let id = session.id;
        egress.poll(
            assembler.wrap(|bytes: &[u8], _: &taran::Header<'_>| {
                if let Ok((header, payload)) = split(bytes) {
                    if header.cluster_session_id == id {
                        count += 1;
                        handler(payload);
                    }
                    return;
                }
                match EgressMessage::decode(bytes) {
                    Ok(EgressMessage::SessionEvent(event)) if event.cluster_session_id == id => {
                        match event.code {
                            EventCode::OK => *session = session_of(&event),
                            EventCode::CLOSED => closed = Some(event.detail.to_owned()),
                            _ => {}
                        }
                    }
                    Ok(EgressMessage::NewLeaderEvent(event)) if event.cluster_session_id == id => {
                        session.term = event.leadership_term_id;
                        session.leader = event.leader_member_id;
                        leader = Some(event.ingress_endpoints.to_owned());
                    }
                    _ => {}
                }
            }),
            10,
        )?;
        if let Some(endpoints) = leader {
            self.follow(&endpoints);
        }
        if let Some(reason) = closed {
            self.close_with(reason);
        }
        self.watch();
        Ok(count)
    }

    fn close_with(&mut self, reason: String) {
        self.ingress = None;
        self.state = ClusterConnection::Closed { reason };
    }

    fn follow(&mut self, text: &str) {
        let members = endpoints(text).unwrap_or_default();
        let leader = self.session.leader;
        let endpoint = members.into_iter().find(|(id, _)| *id == leader);
        let publication = endpoint.and_then(|(_, endpoint)| {
            let uri = ChannelUri::parse(&self.context.ingress_channel).ok()?;
            let uri = uri.with("endpoint", &endpoint).ok()?;
            let stream = self.context.ingress_stream_id;
            self.client
                .add_exclusive_publication(uri.as_str(), stream)
                .ok()
        });
        self.context.endpoints = text.to_owned();
        match publication {
            Some(publication) => {
                self.ingress = Some(publication);
                self.state = ClusterConnection::Connected;
                self.awaiting_since = Instant::now();
                // Makes the leader know the image of this session.
                let earlier = self.last_sent.checked_sub(Duration::from_secs(1));
                self.last_sent = earlier.unwrap_or(self.last_sent);
            }
            None => self.close_with(format!("no publication to the leader {leader}")),
        }
    }

    /// Notices the loss of the leader, and sends keep-alives.
    fn watch(&mut self) {
        let now = Instant::now();
        match self.state {
            ClusterConnection::Connected => {
                let is_lost = self.egress.image_views().is_empty();
                if is_lost && now - self.awaiting_since > Duration::from_secs(1) {
                    self.ingress = None;
                    self.state = ClusterConnection::AwaitingLeader;
                    self.awaiting_since = now;
                } else if now - self.last_sent >= Duration::from_secs(1) {
                    let message = IngressMessage::SessionKeepAlive(SessionKeepAlive {
                        leadership_term_id: self.session.term,
                        cluster_session_id: self.session.id,
                    });
                    // Back pressure: the next poll tries again.
                    let _ = self.send_message(&message);
                }
                if !is_lost {
                    self.awaiting_since = now;
                }
            }
            ClusterConnection::AwaitingLeader => {
                let limit =
                    self.session.heartbeat_timeout * NEW_LEADER_TIMEOUTS + Duration::from_secs(5);
                if now - self.awaiting_since > limit {
                    self.close_with(format!("no new leader within {} ms", limit.as_millis()));
                }
            }
            ClusterConnection::Closed { .. } => {}
        }
    }

    /// Closes the session.
    pub fn close(mut self) {
        let message = IngressMessage::SessionCloseRequest(SessionCloseRequest {
            leadership_term_id: self.session.term,
            cluster_session_id: self.session.id,
        });
        // Without it, the session ends by its timeout.
        let _ = (0..3).any(|_| self.send_message(&message).is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_pairs_of_id_and_endpoint() {
        let members = endpoints("0=a:1,2=[::1]:3").unwrap();
        assert_eq!(members, [(0, "a:1".to_owned()), (2, "[::1]:3".to_owned())]);
        for text in ["", "a:1", "x=a:1", "0=a:1,"] {
            assert!(endpoints(text).is_err(), "{text}");
        }
    }

    #[test]
    fn answer_is_found_by_its_correlation_id() {
        let event = |code| {
            EgressMessage::SessionEvent(SessionEvent {
                cluster_session_id: 3,
                correlation_id: 41,
                leadership_term_id: 7,
                leader_member_id: 2,
                code,
                version: Some(PROTOCOL_VERSION),
                leader_heartbeat_timeout_ns: None,
                detail: "0=a:1",
            })
        };
        assert!(answer_in(&event(EventCode::OK), 40).is_none());
        assert!(matches!(
            answer_in(&event(EventCode::OK), 41),
            Some(Answer::Ok(Session {
                id: 3,
                term: 7,
                leader: 2,
                ..
            }))
        ));
        assert!(matches!(
            answer_in(&event(EventCode::REDIRECT), 41),
            Some(Answer::Redirect(2, text)) if text == "0=a:1"
        ));
        assert!(matches!(
            answer_in(&event(EventCode::ERROR), 41),
            Some(Answer::Failed(ConnectClusterError::Refused { .. }))
        ));
    }
}
