// SPDX-License-Identifier: Apache-2.0
//! Commands that add and remove destinations of multi-destination subscriptions (docs/spec/shared-memory.md §9.4,
//! docs/spec/wire.md §2.11).

use std::sync::Arc;

use taran_net::AgentRole;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::response::Response;
use taran_protocol::uri::{Channel, ChannelKind, SubscriptionParams, UdpChannel};

use super::super::command_error::CommandError;
use super::super::counters::{Direction, EndpointIdentity};
use super::super::deferred_commands::ResolvedPrerequisites;
use super::super::failure::Failure;
use super::super::network::{ReceiveDestination, ResolvedChannel, status};
use super::super::state::ConductorState;
use super::super::subscriptions::{Source, Subscription};
use super::DestinationCommand;
use crate::boundary::{EndpointId, ReceiveTransportSpec, ReceiverCommand, TransportId};
use crate::receiver::ReceiveTransport;
use crate::secured::policy::{End, destination_security, matched_address};

impl ConductorState {
    pub(super) fn add_receive_destination(
        &mut self,
        command: DestinationCommand<'_>,
        prerequisites: &ResolvedPrerequisites,
    ) -> Result<(), CommandError> {
        let channel = Channel::for_receive_destination(command.channel).map_err(Failure::from)?;
        let endpoint = self.manual_endpoint(command.registration_id)?;
        match &channel {
            Channel::Udp(udp) => {
                self.add_network_destination(command, endpoint, udp, prerequisites)
            }
            Channel::Ipc(_) => Ok(self.add_local_destination(command, channel, Source::Ipc)?),
            Channel::Spy(spied) => {
                let resolved = self.resolve_channel(spied, prerequisites)?;
                let source = self.spy_source(&resolved);
                Ok(self.add_local_destination(command, channel, source)?)
            }
        }
    }

    /// Adds a destination without a socket (IPC or spy): an entry among the subscriptions that carries the registration
    /// id of the subscription it belongs to.
    fn add_local_destination(
        &mut self,
        command: DestinationCommand<'_>,
        channel: Channel,
        source: Source,
    ) -> Result<(), Failure> {
        let defaults = &self.settings.subscription_defaults;
        let params = SubscriptionParams::new(&channel, defaults)?;
        let Some(subscription) = self.subscriptions.find(command.registration_id) else {
            return Err(unknown(command.registration_id));
        };
        let entry = Subscription {
            id: command.correlation_id,
            registration_id: subscription.registration_id,
            client_id: subscription.client_id,
            source,
            stream_id: subscription.stream_id,
            text: Arc::from(command.channel),
            channel,
            params,
            awaits_session: false,
        };
        let answer = Response::OperationSuccess {
            correlation_id: command.correlation_id,
        };
        self.add_local_subscription(entry, &answer)
    }

    /// Removes a destination without a socket. An unknown one is an error (docs/spec/shared-memory.md §9.4).
    fn remove_local_destination(&mut self, command: DestinationCommand<'_>) -> Result<(), Failure> {
        let found = self
            .subscriptions
            .local_destination(command.registration_id, command.channel);
        let Some(id) = found else {
            return Err(Failure::new(
                ErrorCode::UnknownSubscription,
                format!(
                    "unknown destination of subscription {}: channel={}",
                    command.registration_id, command.channel
                ),
            ));
        };
        let Some(source) = self.subscriptions.remove(id) else {
            return Ok(());
        };
        let images = self.local_image_ids(&source);
        self.close_local_subscription(&source);
        self.respond_success(command.correlation_id);
        for image_id in images {
            self.responses.send_unavailable_image(image_id, &source);
        }
        Ok(())
    }

    /// Returns the endpoint of a subscription with `control-mode=manual`.
    fn manual_endpoint(&self, registration_id: i64) -> Result<EndpointId, Failure> {
        let Some(subscription) = self.subscriptions.find(registration_id) else {
            return Err(unknown(registration_id));
        };
        // A subscription that shares the endpoint by tag need not repeat the control mode.
        let is_manual = |id| {
            let endpoint = self.networking.receive_endpoints.get(id);
            endpoint.is_some_and(|e| e.resolved.channel.kind() == ChannelKind::Manual)
        };
        match subscription.source {
            Source::Network(endpoint) if is_manual(endpoint) => Ok(endpoint),
            _ => Err(Failure::invalid_channel(format!(
                "channel does not allow manual control of destinations (control-mode=manual is needed): subscription \
                 {registration_id} channel={}",
                subscription.text
            ))),
        }
    }

    fn add_network_destination(
        &mut self,
        command: DestinationCommand<'_>,
        endpoint_id: EndpointId,
        udp: &UdpChannel,
        prerequisites: &ResolvedPrerequisites,
    ) -> Result<(), CommandError> {
        let mut resolved = self.resolve_channel(udp, prerequisites)?;
        let id = TransportId(command.correlation_id);
        if self.networking.receive_destinations.contains(id) {
            return Err(Failure::generic(format!(
                "registration id {} is in use by another destination",
                id.0
            ))
            .into());
        }
        let Some(endpoint) = self.networking.receive_endpoints.get(endpoint_id) else {
            return Err(Failure::generic("the endpoint of the subscription is gone").into());
        };
        let (buffers, status_id) = (endpoint.buffers, endpoint.status.id());
        let receiver_id = endpoint.receiver_id;
        let security = self.security.decide(&resolved, End::Receiver)?;
        let security = destination_security(&endpoint.security, security, &resolved)?;
        if !security.is_secured {
            self.security
                .check_plain(matched_address(&resolved, End::Receiver), resolved.text())?;
        }
        // A destination without a backend gets that of its subscription.
        if udp.backend.is_none() {
            resolved.backend = endpoint.resolved.backend.clone();
        }
        self.security
            .prepare_receiver(id, &security, resolved.text());
        let opened = self
            .networking
            .open_receive_destination(&resolved, id.0, buffers);
        self.security
            .opened(AgentRole::Receiver, id.0, opened.is_ok());
        let transport = opened.map_err(|error| {
            if error.is_in_use && self.is_destination_closing(&resolved) {
                return Failure::new(
                    ErrorCode::ResourceTemporarilyUnavailable,
                    format!(
                        "destination found in CLOSING state, please retry: channel={}",
                        resolved.text()
                    ),
                );
            }
            error.failure
        })?;
        let bound = transport.local_address();
        let of = EndpointIdentity {
            direction: Direction::Receive,
            registration_id: command.registration_id,
            channel: resolved.text(),
        };
        let local_address = self
            .counters
            .local_address(of, status_id, &bound.to_string())?;
        local_address.set(status::ACTIVE);
        self.security
            .add_receiver(endpoint_id, id, &security, &resolved, (bound, receiver_id));
        let spec = ReceiveTransportSpec {
            id,
            transport,
            control_group: resolved.control_group(),
            explicit_control: resolved.explicit_control(),
            re_resolution_timeout_ns: self.re_resolution_timeout(resolved.channel.control.as_ref()),
            grows: self.networking.sockets.grows(&resolved),
        };
        let transport = ReceiveTransport::new(spec, Arc::from(resolved.text()));
        self.networking
            .receiver
            .send(ReceiverCommand::AddTransport {
                endpoint: endpoint_id,
                transport: Box::new(transport),
            });
        self.networking.receive_destinations.insert(
            id,
            ReceiveDestination::new(endpoint_id, resolved, bound.port(), local_address),
        );
        self.respond_success(command.correlation_id);
        Ok(())
    }

    /// Returns true if an equivalent destination is closing: the receiver keeps its socket while images need it.
    fn is_destination_closing(&self, resolved: &ResolvedChannel) -> bool {
        let is_unused = |endpoint| !self.subscriptions.is_endpoint_used(endpoint);
        let sources = &self.networking.receive_destinations;
        sources.is_closing(resolved, is_unused)
    }

    /// Returns the destination with this channel. Destinations with the same URI are found without resolving host
    /// names, which may be unresolvable by now.
    fn find_destination(
        &mut self,
        endpoint: EndpointId,
        udp: &UdpChannel,
        prerequisites: &ResolvedPrerequisites,
    ) -> Result<Option<TransportId>, CommandError> {
        let known = &self.networking.receive_destinations;
        let same = known.find_by_text(endpoint, udp.uri.as_str());
        if same.is_some() {
            return Ok(same);
        }
        let resolved = self.resolve_channel(udp, prerequisites)?;
        let known = &self.networking.receive_destinations;
        Ok(known.find_equivalent(endpoint, &resolved))
    }

    /// Removes a destination by its channel. An unknown network destination is not an error.
    pub(super) fn remove_receive_destination(
        &mut self,
        command: DestinationCommand<'_>,
        prerequisites: &ResolvedPrerequisites,
    ) -> Result<(), CommandError> {
        let channel = Channel::for_receive_destination(command.channel).map_err(Failure::from)?;
        let endpoint = self.manual_endpoint(command.registration_id)?;
        match &channel {
            Channel::Udp(udp) => {
                let found = self.find_destination(endpoint, udp, prerequisites)?;
                if let Some(id) = found {
                    self.networking.remove_receive_destination(endpoint, id);
                }
            }
            Channel::Ipc(_) | Channel::Spy(_) => return Ok(self.remove_local_destination(command)?),
        }
        self.respond_success(command.correlation_id);
        Ok(())
    }
}

fn unknown(registration_id: i64) -> Failure {
    Failure::new(
        ErrorCode::UnknownSubscription,
        format!("unknown subscription for destination command: registration id {registration_id}"),
    )
}
