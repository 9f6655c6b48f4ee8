// SPDX-License-Identifier: Apache-2.0
//! Commands that add and remove destinations of multi-destination publications
//! (docs/spec/uri-and-configuration.md §1.11).

use taran_protocol::error_code::ErrorCode;
use taran_protocol::uri::{Channel, ChannelKind, UdpChannel};

use super::super::command_error::CommandError;
use super::super::deferred_commands::ResolvedPrerequisites;
use super::super::failure::Failure;
use super::super::network::{KnownDestination, resolve_endpoint};
use super::super::state::ConductorState;
use super::DestinationCommand;
use crate::boundary::{EndpointId, PublicationId, SendDestination, SenderCommand};

impl ConductorState {
    pub(super) fn add_send_destination(
        &mut self,
        command: DestinationCommand<'_>,
        prerequisites: &ResolvedPrerequisites,
    ) -> Result<(), CommandError> {
        let (endpoint, destination) = self.destination_of(command, "add")?;
        let Some(requested) = &destination.endpoint else {
            return Err(Failure::generic("a destination needs an endpoint").into());
        };
        if destination.secure.is_some() {
            let is_secured = self.is_secured_sender(endpoint);
            if destination.secure != Some(is_secured) {
                return Err(Failure::generic(format!(
                    "taran.secure={} does not match that of the publication, of which it is a destination: channel={}",
                    !is_secured, command.channel
                ))
                .into());
            }
        }
        // An unresolved name is not an error: it may get an address later.
        let address = resolve_endpoint(&destination, prerequisites)?;
        if let Some(address) = address.filter(|_| !self.is_secured_sender(endpoint)) {
            self.security.check_plain(address, command.channel)?;
        }
        self.networking.send_destinations.add(
            endpoint,
            KnownDestination {
                id: command.correlation_id,
                requested: requested.clone(),
                address,
            },
        );
        self.secure_destinations(endpoint);
        self.networking.sender.send(SenderCommand::AddDestination {
            endpoint,
            destination: SendDestination {
                id: command.correlation_id,
                address,
                is_named: self.re_resolution_timeout(Some(requested)).is_some(),
            },
        });
        self.respond_success(command.correlation_id);
        Ok(())
    }

    /// Removes the newest destination with this endpoint text, or else with this address. An unknown one is not an
    /// error.
    pub(super) fn remove_send_destination(
        &mut self,
        command: DestinationCommand<'_>,
        prerequisites: &ResolvedPrerequisites,
    ) -> Result<(), CommandError> {
        let (endpoint, destination) = self.destination_of(command, "remove")?;
        let text = destination
            .endpoint
            .as_ref()
            .map_or("", |e| e.text.as_str());
        let known = &self.networking.send_destinations;
        let found = match known.find_by_text(endpoint, text) {
            Some(id) => Some(id),
            None => resolve_endpoint(&destination, prerequisites)?
                .and_then(|address| known.find_by_address(endpoint, address)),
        };
        if let Some(id) = found {
            self.drop_send_destination(endpoint, id);
        }
        self.respond_success(command.correlation_id);
        Ok(())
    }

    pub(super) fn remove_send_destination_by_id(
        &mut self,
        correlation_id: i64,
        registration_id: i64,
        destination_id: i64,
    ) -> Result<(), Failure> {
        let endpoint = self.send_endpoint_of(registration_id, "remove")?;
        let named = format!("destination {destination_id}");
        self.check_manual(endpoint, registration_id, &named)?;
        self.drop_send_destination(endpoint, destination_id);
        self.respond_success(correlation_id);
        Ok(())
    }

    pub(in crate::conductor) fn is_secured_sender(&self, endpoint: EndpointId) -> bool {
        let endpoint = self.networking.send_endpoints.get(endpoint);
        endpoint.is_some_and(|endpoint| endpoint.security.is_secured)
    }

    /// Tells transport security the destinations of an endpoint: their ports name the channel in handshakes.
    pub(in crate::conductor) fn secure_destinations(&mut self, endpoint: EndpointId) {
        let destinations = self.networking.send_destinations.addresses(endpoint);
        if let Some(open) = self.networking.send_endpoints.get(endpoint)
            && open.security.is_secured
        {
            self.security
                .set_destinations(endpoint, &open.resolved, destinations);
        }
    }

    fn drop_send_destination(&mut self, endpoint: EndpointId, destination: i64) {
        if self
            .networking
            .send_destinations
            .remove(endpoint, destination)
        {
            self.networking
                .sender
                .send(SenderCommand::RemoveDestination {
                    endpoint,
                    destination,
                });
            self.secure_destinations(endpoint);
        }
    }

    /// Returns the endpoint of a destination command, and the destination.
    fn destination_of(
        &self,
        command: DestinationCommand<'_>,
        verb: &str,
    ) -> Result<(EndpointId, UdpChannel), Failure> {
        let endpoint = self.send_endpoint_of(command.registration_id, verb)?;
        let destination = parse_destination(command.channel)?;
        self.check_manual(endpoint, command.registration_id, command.channel)?;
        Ok((endpoint, destination))
    }

    /// Returns the send endpoint of a network publication.
    fn send_endpoint_of(&self, registration_id: i64, verb: &str) -> Result<EndpointId, Failure> {
        let id = PublicationId(registration_id);
        match self.networking.publications.get(id) {
            Some(publication) => Ok(publication.endpoint),
            None => Err(Failure::new(
                ErrorCode::UnknownPublication,
                format!(
                    "unknown {verb} destination: unknown publication, no network publication has registration id \
                     {registration_id}"
                ),
            )),
        }
    }

    /// Checks that the destinations of the endpoint are controlled by commands.
    fn check_manual(
        &self,
        endpoint: EndpointId,
        registration_id: i64,
        named: &str,
    ) -> Result<(), Failure> {
        let endpoint = self.networking.send_endpoints.get(endpoint);
        match endpoint.map(|endpoint| &endpoint.resolved) {
            Some(resolved) if resolved.channel.kind() != ChannelKind::Manual => {
                Err(Failure::generic(format!(
                    "channel does not allow manual control of destinations, control-mode=manual is needed: {named} \
                     publication={registration_id} channel={}",
                    resolved.text()
                )))
            }
            _ => Ok(()),
        }
    }
}

fn parse_destination(text: &str) -> Result<UdpChannel, Failure> {
    match Channel::for_send_destination(text)? {
        Channel::Udp(destination) => Ok(destination),
        Channel::Ipc(_) | Channel::Spy(_) => Err(Failure::generic(format!(
            "incorrect URI format for destination, it must be an aeron:udp channel: {text}"
        ))),
    }
}
