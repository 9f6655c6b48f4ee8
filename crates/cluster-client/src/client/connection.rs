// SPDX-License-Identifier: Apache-2.0
//! A session that is polled, over publications and a subscription.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use taran::{
    Action, BufferClaim, ChannelUri, Client, ControlledFragmentAssembler, ExclusivePublication,
    Media, OfferError, Pending, Subscription,
};

use super::context::SharedCredentials;
use super::{ClusterContext, ClusterOfferError, ConnectClusterError};
use crate::protocol::{
    AdminRequest, AdminRequestType, EgressMessage, EventCode, IngressMessage,
    SESSION_HEADER_LENGTH, SessionCloseRequest, SessionMessageHeader, split,
};
use crate::session::{
    ClosedReason, ClusterEvent, ClusterState, Established, IngressEndpoint, LinkCommand, LinkId,
    MemberId, Session, SessionOptions,
};

/// Fragments of the egress stream that one poll processes.
const FRAGMENT_LIMIT: usize = 10;
/// Attempts to send a message, as each may meet the end of a term.
const ATTEMPTS: usize = 3;
/// Pause before a publication is added again that the driver could not add.
const RETRY_NS: i64 = 100_000_000;

/// Origin of an application message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EgressMessageInfo {
    /// Session.
    pub session_id: i64,
    /// Term of the leader that has sent the message.
    pub term: i64,
    /// Time of the cluster when it was sent, in the unit of the cluster's clock.
    pub timestamp: i64,
}

/// A publication to a member.
enum Link {
    Adding(Pending<ExclusivePublication>),
    Ready(Box<ExclusivePublication>),
    Failed { retry_ns: i64 },
}

struct LinkEntry {
    id: LinkId,
    endpoint: Option<String>,
    link: Link,
}

enum Egress {
    Adding(Pending<Subscription>),
    Ready(Box<Subscription>),
    Ended,
}

/// A session with a cluster that never waits.
///
/// [`ClusterContext::connecting`] makes one. It must be polled also when nothing is awaited: polls open the session, send
/// keep-alives, and follow the cluster to a new leader. What [`poll`](Self::poll) does not pass to its handler is in
/// [`state`](Self::state), and in [`next_event`](Self::next_event).
///
/// A message that was sent to a leader that then failed may be lost, or may be applied without an answer. [`ClusterEvent::NewLeader`]
/// tells up to which number; a client that must not lose or repeat messages numbers them, so that the service recognizes repetitions.
pub struct ClusterConnection {
    context: ClusterContext,
    client: Client,
    egress: Egress,
    assembler: ControlledFragmentAssembler,
    session: Session<SharedCredentials>,
    links: Vec<LinkEntry>,
    /// Image of the leader's answers.
    leader_image: Option<i64>,
    buffer: Vec<u8>,
    now_ns: i64,
}

impl fmt::Debug for ClusterConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterConnection")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

impl ClusterConnection {
    pub(super) fn new(
        context: ClusterContext,
        client: &Client,
        endpoints: Vec<IngressEndpoint>,
        now_ns: i64,
    ) -> Result<Self, ConnectClusterError> {
        let mut channel = ChannelUri::parse(&context.egress_channel)?;
        if channel.media() == Media::Udp {
            // An image that comes back would have a gap.
            channel = channel.with("rejoin", "false")?;
        }
        let egress = client.async_add_subscription(channel.as_str(), context.egress_stream_id)?;
        let options = SessionOptions {
            endpoints,
            response_stream_id: context.egress_stream_id,
            client_info: context.client_info(),
            message_timeout_ns: nanos(context.message_timeout),
            keep_alive_ns: nanos(context.keep_alive_interval),
            new_leader_timeout_ns: context.new_leader_timeout.map_or(0, nanos),
            reconnect_timeout_ns: nanos(context.reconnect_timeout),
        };
        Ok(Self {
            session: Session::new(options, context.credentials.clone(), now_ns),
            context,
            client: client.clone(),
            egress: Egress::Adding(egress),
            assembler: ControlledFragmentAssembler::new(),
            links: Vec::new(),
            leader_image: None,
            buffer: Vec::new(),
            now_ns,
        })
    }

    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> ClusterState {
        self.session.state()
    }

    /// Returns true if the session is open and its leader known.
    #[must_use]
    pub const fn is_connected(&self) -> bool {
        self.session.leader().is_some()
    }

    /// Returns why the session is closed; none while it is not.
    #[must_use]
    pub fn closed_reason(&self) -> Option<&ClosedReason> {
        self.session.closed_reason()
    }

    /// Returns the id of the session; none before the first one.
    #[must_use]
    pub fn session_id(&self) -> Option<i64> {
        self.session.established().map(|it| it.session_id)
    }

    /// Returns the last known leader; none before the first session.
    #[must_use]
    pub fn leader(&self) -> Option<MemberId> {
        self.session.established().map(|it| it.leader)
    }

    /// Returns the term of the last known leader; none before the first session.
    #[must_use]
    pub fn term(&self) -> Option<i64> {
        self.session.established().map(|it| it.term)
    }

    /// Returns the number of messages that were sent.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.session.sent()
    }

    /// Returns the client of the driver.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the options.
    #[must_use]
    pub const fn context(&self) -> &ClusterContext {
        &self.context
    }

    /// Returns true if there is an event.
    #[must_use]
    pub fn has_events(&self) -> bool {
        self.session.has_events()
    }

    /// Removes and returns the oldest event.
    pub fn next_event(&mut self) -> Option<ClusterEvent> {
        self.session.next_event()
    }

    /// Passes application messages to `handler`, and does what the session needs. Returns the amount of work done.
    pub fn poll(
        &mut self,
        now_ns: i64,
        mut handler: impl FnMut(&[u8], &EgressMessageInfo),
    ) -> usize {
        self.controlled_poll(now_ns, |message, info| {
            handler(message, info);
            Action::Continue
        })
    }

    /// Like [`poll`](Self::poll), but `handler` controls after each message how the poll goes on. After [`Action::Abort`] the same
    /// message is passed again by a later poll: the cluster is back-pressured meanwhile.
    pub fn controlled_poll(
        &mut self,
        now_ns: i64,
        handler: impl FnMut(&[u8], &EgressMessageInfo) -> Action,
    ) -> usize {
        self.now_ns = now_ns;
        if let Some(reason) = self.client.close_reason() {
            self.fail(format!("the client of the driver is closed: {reason:?}"));
        }
        let mut work = self.poll_egress(handler);
        self.check_image();
        self.poll_links();
        let client = &self.client;
        self.session.tick(now_ns, || client.next_correlation_id());
        work += self.execute();
        work += self.send_request();
        work
    }

    fn fail(&mut self, reason: String) {
        self.session.close(ClosedReason::Failed { reason });
    }

    fn poll_egress(
        &mut self,
        mut handler: impl FnMut(&[u8], &EgressMessageInfo) -> Action,
    ) -> usize {
        if let Egress::Adding(pending) = &mut self.egress {
            match pending.poll() {
                None => return 0,
                Some(Ok(subscription)) => self.egress = Egress::Ready(Box::new(subscription)),
                Some(Err(error)) => {
                    self.egress = Egress::Ended;
                    self.fail(format!(
                        "the egress channel cannot be subscribed to: {error}"
                    ));
                }
            }
        }
        let Self {
            egress,
            assembler,
            session,
            client,
            leader_image,
            now_ns,
            ..
        } = self;
        let Egress::Ready(subscription) = egress else {
            return 0;
        };
        if session.established().is_none()
            && let Some(channel) = subscription.try_resolve_channel_endpoint_port()
        {
            session.on_egress(channel);
        }
        let on_message = |bytes: &[u8], header: &taran::Header<'_>| {
            // The frequent message first.
            if let Ok((message, payload)) = split(bytes) {
                let session_id = message.cluster_session_id;
                let is_own = session
                    .established()
                    .is_some_and(|it| it.session_id == session_id);
                if !is_own {
                    return Action::Continue;
                }
                let info = EgressMessageInfo {
                    session_id,
                    term: message.leadership_term_id,
                    timestamp: message.timestamp,
                };
                return handler(payload, &info);
            }
            // What cannot be decoded is of a newer version, or of another protocol.
            let Ok(message) = EgressMessage::decode(bytes) else {
                return Action::Continue;
            };
            session.on_message(&message, *now_ns, || client.next_correlation_id());
            let of = match &message {
                EgressMessage::SessionEvent(event) if event.code == EventCode::OK => {
                    Some(event.cluster_session_id)
                }
                EgressMessage::NewLeaderEvent(event) => Some(event.cluster_session_id),
                _ => None,
            };
            if of.is_some() && of == session.established().map(|it| it.session_id) {
                *leader_image = Some(header.image().correlation_id());
            }
            Action::Continue
        };
        match subscription.controlled_poll(assembler.wrap(on_message), FRAGMENT_LIMIT) {
            Ok(fragments) => fragments,
            Err(error) => {
                self.fail(error.to_string());
                1
            }
        }
    }

    /// Notices that the stream from the leader has ended.
    fn check_image(&mut self) {
        let (Some(image), Egress::Ready(subscription)) = (self.leader_image, &self.egress) else {
            return;
        };
        let view = subscription.image_by_correlation_id(image);
        if view.is_none_or(|view| view.is_closed()) {
            self.leader_image = None;
            self.session.on_leader_lost(self.now_ns);
        }
    }

    fn poll_links(&mut self) {
        let now_ns = self.now_ns;
        for at in 0..self.links.len() {
            let entry = &mut self.links[at];
            match &mut entry.link {
                Link::Adding(pending) => match pending.poll() {
                    None => {}
                    Some(Ok(publication)) => entry.link = Link::Ready(Box::new(publication)),
                    Some(Err(_)) => {
                        let retry_ns = now_ns.saturating_add(RETRY_NS);
                        entry.link = Link::Failed { retry_ns };
                    }
                },
                Link::Failed { retry_ns } if now_ns >= *retry_ns => {
                    let endpoint = entry.endpoint.clone();
                    self.links[at].link = self.publish(endpoint.as_deref());
                }
                Link::Failed { .. } | Link::Ready(_) => {}
            }
            let entry = &self.links[at];
            let is_connected = match &entry.link {
                Link::Ready(publication) => publication.is_connected(),
                _ => false,
            };
            self.session.set_connected(entry.id, is_connected);
        }
    }

    fn publish(&self, endpoint: Option<&str>) -> Link {
        let failed = Link::Failed {
            retry_ns: self.now_ns.saturating_add(RETRY_NS),
        };
        let uri = ChannelUri::parse(&self.context.ingress_channel).and_then(|uri| match endpoint {
            Some(endpoint) => uri.with("endpoint", endpoint),
            None => Ok(uri),
        });
        let Ok(uri) = uri else {
            return failed;
        };
        self.client
            .async_add_exclusive_publication(uri.as_str(), self.context.ingress_stream_id)
            .map_or(failed, Link::Adding)
    }

    fn execute(&mut self) -> usize {
        let mut work = 0;
        while let Some(command) = self.session.next_command() {
            work += 1;
            match command {
                LinkCommand::Open { link, endpoint } => {
                    let publication = self.publish(endpoint.as_deref());
                    self.links.push(LinkEntry {
                        id: link,
                        endpoint,
                        link: publication,
                    });
                }
                LinkCommand::Close { link } => self.links.retain(|entry| entry.id != link),
            }
        }
        work
    }

    fn publication(links: &mut [LinkEntry], id: LinkId) -> Option<&mut ExclusivePublication> {
        let entry = links.iter_mut().find(|entry| entry.id == id)?;
        match &mut entry.link {
            Link::Ready(publication) => Some(publication),
            _ => None,
        }
    }

    fn send_request(&mut self) -> usize {
        let Some((link, message)) = self.session.request() else {
            return 0;
        };
        let length = encode(&mut self.buffer, &message);
        let Some(publication) = Self::publication(&mut self.links, link) else {
            return 0;
        };
        match offer(publication, &[&self.buffer[..length]]) {
            Ok(_) => {
                self.session.on_sent(self.now_ns);
                1
            }
            Err(error) => {
                // A keep-alive that finds no connection is the first to notice; attempts ask the next member.
                drop(self.on_offer_error(error));
                0
            }
        }
    }

    fn on_offer_error(&mut self, error: OfferError) -> ClusterOfferError {
        match error {
            OfferError::NotConnected | OfferError::Closed => {
                self.session.on_leader_lost(self.now_ns);
                ClusterOfferError::AwaitingLeader
            }
            OfferError::MaxPositionExceeded { .. } | OfferError::DriverLost(_) => {
                self.fail(error.to_string());
                ClusterOfferError::Offer(error)
            }
            error => ClusterOfferError::Offer(error),
        }
    }

    fn leader_link(&self) -> Result<(LinkId, Established), ClusterOfferError> {
        if let Some((link, established)) = self.session.leader() {
            return Ok((link, *established));
        }
        match self.session.closed_reason() {
            Some(reason) => Err(ClusterOfferError::Closed(reason.clone())),
            None => Err(ClusterOfferError::AwaitingLeader),
        }
    }

    /// Sends a message to the cluster. Returns its number, from 1.
    ///
    /// # Errors
    /// The session is closed, there is no leader now, or there is no room now.
    pub fn offer(&mut self, message: &[u8]) -> Result<u64, ClusterOfferError> {
        self.offer_parts(&[message])
    }

    /// Sends a message that consists of at most seven parts, like [`offer`](Self::offer).
    ///
    /// # Errors
    /// As for [`offer`](Self::offer).
    pub fn offer_parts(&mut self, parts: &[&[u8]]) -> Result<u64, ClusterOfferError> {
        let (link, established) = self.leader_link()?;
        let header = header(&established);
        let mut all: [&[u8]; 8] = [&[]; 8];
        let count = parts.len().min(7);
        all[0] = &header;
        all[1..=count].copy_from_slice(&parts[..count]);
        if count < parts.len() {
            // Rare; the parts are joined.
            let joined = parts.concat();
            return self.offer_parts(&[&joined]);
        }
        let Some(publication) = Self::publication(&mut self.links, link) else {
            return Err(ClusterOfferError::AwaitingLeader);
        };
        match offer(publication, &all[..=count]) {
            Ok(_) => Ok(self.session.on_offered(self.now_ns)),
            Err(error) => Err(self.on_offer_error(error)),
        }
    }

    /// Claims space for a message of `length` bytes, into which it is written without a copy. It must fit into one frame.
    ///
    /// # Errors
    /// As for [`offer`](Self::offer).
    pub fn try_claim(&mut self, length: usize) -> Result<ClusterClaim<'_>, ClusterOfferError> {
        let (link, established) = self.leader_link()?;
        let header = header(&established);
        let now_ns = self.now_ns;
        let Self { links, session, .. } = self;
        let Some(publication) = Self::publication(links, link) else {
            return Err(ClusterOfferError::AwaitingLeader);
        };
        match publication.try_claim(SESSION_HEADER_LENGTH + length) {
            Ok(mut frame) => {
                frame[..SESSION_HEADER_LENGTH].copy_from_slice(&header);
                Ok(ClusterClaim {
                    frame,
                    session,
                    now_ns,
                })
            }
            Err(error) => {
                if matches!(error, OfferError::NotConnected | OfferError::Closed) {
                    session.on_leader_lost(now_ns);
                    return Err(ClusterOfferError::AwaitingLeader);
                }
                Err(error.into())
            }
        }
    }

    /// Asks the cluster to take a snapshot. Returns the correlation id of the [`ClusterEvent::AdminResponse`].
    ///
    /// # Errors
    /// As for [`offer`](Self::offer).
    pub fn request_snapshot(&mut self) -> Result<i64, ClusterOfferError> {
        let (link, established) = self.leader_link()?;
        let correlation_id = self.client.next_correlation_id();
        let message = IngressMessage::AdminRequest(AdminRequest {
            leadership_term_id: established.term,
            cluster_session_id: established.session_id,
            correlation_id,
            request_type: AdminRequestType::SNAPSHOT,
            payload: &[],
        });
        let length = encode(&mut self.buffer, &message);
        let Some(publication) = Self::publication(&mut self.links, link) else {
            return Err(ClusterOfferError::AwaitingLeader);
        };
        match offer(publication, &[&self.buffer[..length]]) {
            Ok(_) => Ok(correlation_id),
            Err(error) => Err(self.on_offer_error(error)),
        }
    }

    /// Closes the session. The cluster does not answer.
    pub fn close(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some((link, established)) = self.session.leader() {
            let message = IngressMessage::SessionCloseRequest(SessionCloseRequest {
                leadership_term_id: established.term,
                cluster_session_id: established.session_id,
            });
            let length = encode(&mut self.buffer, &message);
            if let Some(publication) = Self::publication(&mut self.links, link) {
                // Without it, the session ends when its stream does.
                let _ = offer(publication, &[&self.buffer[..length]]);
            }
        }
        self.session.close(ClosedReason::Application);
    }
}

impl Drop for ClusterConnection {
    fn drop(&mut self) {
        self.end();
    }
}

fn header(established: &Established) -> [u8; SESSION_HEADER_LENGTH] {
    let header = SessionMessageHeader {
        leadership_term_id: established.term,
        cluster_session_id: established.session_id,
        timestamp: 0,
    };
    let mut bytes = [0; SESSION_HEADER_LENGTH];
    // The buffer has the length of the header.
    let _ = header.encode(&mut bytes);
    bytes
}

/// Encodes into a buffer that grows as long as the message does not fit.
fn encode(buffer: &mut Vec<u8>, message: &IngressMessage<'_>) -> usize {
    loop {
        if let Ok(length) = message.encode(buffer) {
            return length;
        }
        let length = buffer.len().max(128) * 2;
        buffer.resize(length, 0);
    }
}

fn offer(publication: &mut ExclusivePublication, parts: &[&[u8]]) -> Result<i64, OfferError> {
    let mut outcome = publication.offer_parts(parts);
    for _ in 1..ATTEMPTS {
        if outcome != Err(OfferError::AdminAction) {
            break;
        }
        outcome = publication.offer_parts(parts);
    }
    outcome
}

/// Space for a message to the cluster. Dropping it without [`commit`](Self::commit) gives the space up.
#[derive(Debug)]
pub struct ClusterClaim<'a> {
    frame: BufferClaim<'a>,
    session: &'a mut Session<SharedCredentials>,
    now_ns: i64,
}

impl ClusterClaim<'_> {
    /// Sends the message. Returns its number, from 1.
    pub fn commit(self) -> u64 {
        self.frame.commit();
        self.session.on_offered(self.now_ns)
    }

    /// Gives the space up.
    pub fn abort(self) {
        self.frame.abort();
    }
}

impl Deref for ClusterClaim<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.frame[SESSION_HEADER_LENGTH..]
    }
}

impl DerefMut for ClusterClaim<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.frame[SESSION_HEADER_LENGTH..]
    }
}
