// SPDX-License-Identifier: Apache-2.0
//! Requests of clients.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use taran::{
    Action, ChannelUri, Client, ControlledFragmentAssembler, ImageHandlers, ImageView, Media,
    OfferError, Subscription, UriError,
};

use taran_protocol::uri::MAX_URI_LENGTH;

use super::entries::message_header;
use super::{ModuleAgent, ModuleError};
use crate::consensus::{Nanos, Role, State};
use crate::module::config::ClusterConfig;
use crate::module::egress::append;
use crate::module::repeated::Repeated;
use crate::module::toggle;
use crate::protocol::{
    AdminRequest, AdminRequestType, AdminResponse, AdminResponseCode, EgressMessage,
    IngressMessage, SessionConnectRequest, SessionMessageHeader, split,
};
use crate::service::Service;
use crate::state::{CLUSTER_PROTOCOL_ID, Leadership, SessionIo as _};

/// Ingress subscriptions, with the images that are gone.
pub(super) struct Ingress {
    stream_id: i32,
    subscriptions: Vec<(Subscription, ControlledFragmentAssembler)>,
    requested: Vec<Requested>,
    gone: Receiver<i64>,
    tell_gone: Sender<i64>,
}

/// A subscription that the driver has not added yet.
struct Requested {
    channel: String,
    request: Repeated<Subscription>,
}

impl Ingress {
    fn new(stream_id: i32) -> Self {
        let (tell_gone, gone) = channel();
        Self {
            stream_id,
            subscriptions: Vec::new(),
            requested: Vec::new(),
            gone,
            tell_gone,
        }
    }

    /// Returns an image that is gone.
    pub(super) fn next_gone(&self) -> Option<i64> {
        self.gone.try_recv().ok()
    }

    /// Adds a channel, for which [`complete`](Self::complete) asks the driver.
    fn add(&mut self, channel: String) {
        let request = Repeated::new();
        self.requested.push(Requested { channel, request });
    }

    /// Asks the driver for subscriptions, again after a pause for those whose socket, of an ingress before, is still being closed, and
    /// takes those that it has added. Returns a text for each that it refused.
    fn complete(&mut self, client: &Client, now: Nanos) -> Vec<String> {
        let (stream_id, tell_gone) = (self.stream_id, &self.tell_gone);
        let subscribe = |channel: &str| {
            let sender = tell_gone.clone();
            let handlers = ImageHandlers::new().on_unavailable(move |image| {
                // The agent may have left this ingress already.
                let _ = sender.send(image.correlation_id());
            });
            client.async_add_subscription_with(channel, stream_id, handlers)
        };
        let mut refused = Vec::new();
        let subscriptions = &mut self.subscriptions;
        self.requested.retain_mut(|Requested { channel, request }| {
            match request.poll(now, || subscribe(channel)) {
                None => return true,
                Some(Ok(subscription)) => {
                    subscriptions.push((subscription, ControlledFragmentAssembler::new()));
                }
                Some(Err(error)) => {
                    refused.push(format!("cannot subscribe to ingress {channel}: {error}"));
                }
            }
            false
        });
        refused
    }
}

/// Returns the channel on which a member takes requests; none for a follower whose clients use multicast, as it would answer
/// requests that reach the leader, too.
fn udp_channel(config: &ClusterConfig, is_leader: bool) -> Result<Option<String>, UriError> {
    let uri = ChannelUri::parse(&config.ingress_channel)?;
    let endpoint = uri.get(taran::Param::Endpoint);
    if endpoint.is_some_and(is_multicast) && !is_leader {
        return Ok(None);
    }
    let uri = match endpoint {
        _ if uri.media() != Media::Udp => uri.clone(),
        Some(_) => uri.clone(),
        None => uri.with("endpoint", &config.own().ingress)?,
    };
    let uri = uri.with("rejoin", "false")?.with("reliable", "true")?;
    Ok(Some(uri.as_str().to_owned()))
}

/// Returns the channel on which a client is answered: that of its request, with the parameters of
/// `aeron.cluster.egress.channel` (`docs/spec/cluster.md` §1.5).
///
/// # Errors
/// The reason, for the client, why its channel cannot have these parameters.
fn response_channel<'a>(
    config: &ClusterConfig,
    requested: &'a str,
) -> Result<Cow<'a, str>, String> {
    let (Some(template), Ok(mut uri)) = (&config.egress_channel, ChannelUri::parse(requested))
    else {
        return Ok(Cow::Borrowed(requested));
    };
    if uri.media() == Media::Ipc {
        return Ok(if config.ingress_ipc_allowed {
            Cow::Borrowed(requested)
        } else {
            Cow::Owned(template.clone())
        });
    }
    // The configuration has checked the template.
    let template = ChannelUri::parse(template);
    for (key, value) in template.iter().flat_map(ChannelUri::parameters) {
        match uri.with(key, value) {
            Ok(with) => uri = with,
            // Without the text of the error, which quotes the channel.
            Err(_) => {
                return Err(format!(
                    "the response channel cannot have {key}={value} of aeron.cluster.egress.channel as well: with it, a channel is \
                     at most {MAX_URI_LENGTH} bytes long"
                ));
            }
        }
    }
    Ok(Cow::Owned(uri.as_str().to_owned()))
}

fn is_multicast(endpoint: &str) -> bool {
    let address = endpoint.parse::<std::net::SocketAddr>();
    address.is_ok_and(|address| address.ip().is_multicast())
}

impl<S: Service> ModuleAgent<S> {
    pub(super) fn connect_ingress(&mut self, is_leader: bool) {
        let mut channels = Vec::new();
        match udp_channel(&self.config, is_leader) {
            Ok(channel) => channels.extend(channel),
            Err(error) => self.error(&error.to_string()),
        }
        if is_leader && self.config.ingress_ipc_allowed {
            channels.push("aeron:ipc".to_owned());
        }
        let mut ingress = Ingress::new(self.config.ingress_stream_id);
        for channel in channels {
            ingress.add(channel);
        }
        for text in ingress.complete(&self.client, self.now.nanos) {
            self.error(&text);
        }
        self.ingress = Some(ingress);
    }

    pub(super) fn poll_ingress(&mut self) -> Result<usize, ModuleError> {
        let is_leader = self.is_leading();
        let is_follower = self.core.role() == Role::Follower && self.core.state() == State::Closed;
        if !(self.takes_entries() || is_follower) {
            return Ok(0);
        }
        let Some(mut ingress) = self.ingress.take() else {
            return Ok(0);
        };
        for text in ingress.complete(&self.client, self.now.nanos) {
            self.error(&text);
        }
        let endpoints = Arc::clone(&self.ingress_endpoints);
        let leadership = self.leadership(&endpoints);
        let mut failure = None;
        let mut fragments = 0;
        let limit = self.config.ingress_fragment_limit;
        for (subscription, assembler) in &mut ingress.subscriptions {
            let handler = |bytes: &[u8], header: &taran::Header<'_>| match self.on_request(
                &leadership,
                is_leader,
                bytes,
                header.image(),
            ) {
                Ok(action) => action,
                Err(error) => {
                    failure = Some(error);
                    Action::Break
                }
            };
            let polled = subscription.controlled_poll(assembler.wrap(handler), limit);
            fragments += polled.map_err(|error| ModuleError::DriverLost(error.to_string()))?;
        }
        self.ingress = Some(ingress);
        failure.map_or(Ok(fragments), Err)
    }

    fn on_request(
        &mut self,
        leadership: &Leadership<'_>,
        is_leader: bool,
        bytes: &[u8],
        ingress: &ImageView,
    ) -> Result<Action, ModuleError> {
        // The frequent request first.
        if let Ok((header, payload)) = split(bytes) {
            return self.on_message(leadership, is_leader, &header, payload);
        }
        let Ok(message) = IngressMessage::decode(bytes) else {
            self.counters.errors.increment();
            return Ok(Action::Continue);
        };
        let image = ingress.correlation_id();
        match message {
            IngressMessage::SessionConnectRequest(request) => {
                let cluster_id = self.config.cluster_id;
                let source = format!(
                    "sourceIdentity={} sessionId={}",
                    ingress.source_identity(),
                    ingress.session_id()
                );
                let channel = match response_channel(&self.config, request.response_channel) {
                    Ok(channel) => channel,
                    Err(reason) => {
                        return self.refuse(leadership, is_leader, &request, image, reason);
                    }
                };
                let request = SessionConnectRequest {
                    response_channel: &channel,
                    ..request
                };
                self.with_sessions(|sessions, io, authenticator| {
                    let handle = sessions.on_connect_request(
                        leadership,
                        is_leader,
                        &request,
                        image,
                        authenticator,
                        io,
                    );
                    if let Some(session) = sessions.session(handle) {
                        let info = &session.client_info;
                        io.add_counter(handle, cluster_id, session.id, info, &source);
                    }
                })?;
            }
            IngressMessage::ChallengeResponse(_) if !is_leader => self.forward(bytes),
            _ if !is_leader => {}
            IngressMessage::SessionKeepAlive(it) => self.replicated.sessions.on_keep_alive(
                leadership,
                it.leadership_term_id,
                it.cluster_session_id,
                image,
            ),
            IngressMessage::SessionCloseRequest(it) => {
                let (term, id) = (it.leadership_term_id, it.cluster_session_id);
                self.with_sessions(|sessions, io, _| {
                    sessions.on_close_request(leadership, term, id, io);
                })?;
            }
            IngressMessage::ChallengeResponse(response) => {
                self.with_sessions(|sessions, _, authenticator| {
                    sessions.on_challenge_response(leadership, &response, authenticator);
                })?;
            }
            IngressMessage::AdminRequest(request) => self.on_admin(leadership, &request)?,
            IngressMessage::SessionMessageHeader(_) => {}
        }
        Ok(Action::Continue)
    }

    /// Tells a client on the channel of its request why it gets no session.
    fn refuse(
        &mut self,
        leadership: &Leadership<'_>,
        is_leader: bool,
        request: &SessionConnectRequest<'_>,
        image: i64,
        reason: String,
    ) -> Result<Action, ModuleError> {
        self.error(&format!("a client is refused: {reason}"));
        self.with_sessions(|sessions, io, _| {
            sessions.on_unservable_request(leadership, is_leader, request, image, reason, io);
        })?;
        Ok(Action::Continue)
    }

    /// Passes a request on to the leader.
    fn forward(&mut self, bytes: &[u8]) {
        if let Some(leader) = self.core.leader() {
            let sent = self.peers.send(leader, bytes, self.now.nanos);
            if let Err(error) = sent {
                self.error(&error.to_string());
            }
        }
    }

    fn on_message(
        &mut self,
        leadership: &Leadership<'_>,
        is_leader: bool,
        received: &SessionMessageHeader,
        payload: &[u8],
    ) -> Result<Action, ModuleError> {
        let id = received.cluster_session_id;
        let sessions = &mut self.replicated.sessions;
        if !is_leader || !sessions.accepts(leadership, received.leadership_term_id, id) {
            return Ok(Action::Continue);
        }
        let Some(publication) = self.log.publication() else {
            return Ok(Action::Abort);
        };
        let header = message_header(leadership.term, id, leadership.timestamp);
        match append(publication, &[&header, payload]) {
            Ok(Some(_)) => {
                sessions.touch(leadership.now, id);
                Ok(Action::Continue)
            }
            Ok(None) => Ok(Action::Abort),
            Err(OfferError::TooLong { .. }) => {
                self.counters.errors.increment();
                Ok(Action::Continue)
            }
            Err(error) => Err(ModuleError::Log(error)),
        }
    }

    fn on_admin(
        &mut self,
        leadership: &Leadership<'_>,
        request: &AdminRequest<'_>,
    ) -> Result<(), ModuleError> {
        let (term, id) = (request.leadership_term_id, request.cluster_session_id);
        let Some(session) = self.replicated.sessions.admin(leadership, term, id) else {
            return Ok(());
        };
        let handle = session.handle;
        let unknown;
        let (response_code, message) = if request.request_type == AdminRequestType::SNAPSHOT {
            let is_authorised = self.hooks.authorisation.is_authorised(
                CLUSTER_PROTOCOL_ID,
                i32::try_from(AdminRequest::TEMPLATE_ID).unwrap_or(0),
                Some(0),
                session.principal,
            );
            let control = &self.counters.toggle;
            if !is_authorised {
                (
                    AdminResponseCode::UnauthorisedAccess,
                    "Execution of the SNAPSHOT request was not authorised",
                )
            } else if control
                .compare_exchange(toggle::NEUTRAL, toggle::SNAPSHOT)
                .is_ok()
            {
                (AdminResponseCode::OK, "")
            } else {
                (
                    AdminResponseCode::ERROR,
                    "Failed to switch ClusterControl to the ToggleState.SNAPSHOT state",
                )
            }
        } else {
            unknown = format!("Unknown request type: {}", request.request_type);
            (AdminResponseCode::ERROR, &*unknown)
        };
        let response = EgressMessage::AdminResponse(AdminResponse {
            cluster_session_id: id,
            correlation_id: request.correlation_id,
            request_type: request.request_type,
            response_code,
            message,
            payload: &[],
        });
        self.with_sessions(|_, io, _| io.send(handle, &response))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_channel_of_a_client_has_the_parameters_of_the_template() {
        let answer = |template, ipc, requested| {
            let config = ClusterConfig::from_properties([
                ("aeron.cluster.members", "0,a:1,a:2,a:3,a:4,a:5"),
                ("aeron.cluster.egress.channel", template),
                ("aeron.cluster.ingress.ipc.allowed", ipc),
            ]);
            response_channel(&config.unwrap(), requested).map(Cow::into_owned)
        };
        let (udp, ipc) = ("aeron:udp?endpoint=b:1|mtu=8k", "aeron:ipc");
        let template = "aeron:udp?mtu=1408|linger=0";
        let answered = |template, ipc, requested| answer(template, ipc, requested).unwrap();
        assert_eq!(answered("", "false", udp), udp);
        assert_eq!(
            answered(template, "false", udp),
            "aeron:udp?endpoint=b:1|mtu=1408|linger=0"
        );
        assert_eq!(answered(template, "false", ipc), template);
        assert_eq!(answered(template, "true", ipc), ipc);
        assert_eq!(answered(template, "false", "nonsense"), "nonsense");
        // 4,090 bytes, which are a channel alone, and none with the parameters.
        let start = "aeron:udp?endpoint=b:1|alias=";
        let long = format!("{start}{}", "x".repeat(4_090 - start.len()));
        assert_eq!(answered("", "false", &long), long);
        assert_eq!(
            answer(template, "false", &long).unwrap_err(),
            "the response channel cannot have mtu=1408 of aeron.cluster.egress.channel as well: with it, a channel is at most \
             4095 bytes long"
        );
    }
}
