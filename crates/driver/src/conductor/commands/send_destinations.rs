//! Destinations of publications under manual control: added, removed, removed by id (spec/03 §1.11).

use taran_protocol::command::Command;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::uri::{Channel, ChannelKind, UdpChannel};

use super::super::failure::Failure;
use super::super::network::{KnownDestination, resolve_endpoint};
use super::super::owners::Owners;
use super::super::stop::Stop;
use super::super::waiting::Answers;
use crate::boundary::{EndpointId, PublicationId, SendDestination, SenderCommand};

impl Owners {
    pub(super) fn send_destination(
        &mut self,
        command: &Command<'_>,
        answers: &Answers,
    ) -> Result<(), Stop> {
        match *command {
            Command::AddDestination {
                correlation_id,
                registration_id,
                channel,
                ..
            } => self.add_send_destination(correlation_id, registration_id, channel, answers),
            Command::RemoveDestination {
                correlation_id,
                registration_id,
                channel,
                ..
            } => self.remove_send_destination(correlation_id, registration_id, channel, answers),
            Command::RemoveDestinationById {
                correlation_id,
                registration_id,
                destination_id,
                ..
            } => {
                let named = format!("destination {destination_id}");
                let endpoint = self.manual_endpoint(registration_id, "remove", &named)?;
                self.drop_send_destination(endpoint, destination_id);
                self.succeed(correlation_id);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn add_send_destination(
        &mut self,
        correlation_id: i64,
        registration_id: i64,
        channel: &str,
        answers: &Answers,
    ) -> Result<(), Stop> {
        self.sending_endpoint(registration_id, "add")?;
        let destination = read(channel)?;
        let endpoint = self.manual_endpoint(registration_id, "add", channel)?;
        let Some(asked) = &destination.endpoint else {
            return Err(Failure::generic("a destination needs an endpoint").into());
        };
        // A name without an address is no failure: it may have one later.
        let address = resolve_endpoint(&destination, answers)?;
        self.networking.send_destinations.add(
            endpoint,
            KnownDestination {
                id: correlation_id,
                asked: asked.clone(),
                address,
            },
        );
        self.networking.sender.post(SenderCommand::AddDestination {
            endpoint,
            destination: SendDestination {
                id: correlation_id,
                address,
                is_named: self.unheard_timeout(Some(asked)).is_some(),
            },
        });
        self.succeed(correlation_id);
        Ok(())
    }

    /// Takes the newest destination with this text, or else at this address. That there is none is no failure.
    fn remove_send_destination(
        &mut self,
        correlation_id: i64,
        registration_id: i64,
        channel: &str,
        answers: &Answers,
    ) -> Result<(), Stop> {
        self.sending_endpoint(registration_id, "remove")?;
        let destination = read(channel)?;
        let endpoint = self.manual_endpoint(registration_id, "remove", channel)?;
        let text = destination
            .endpoint
            .as_ref()
            .map_or("", |e| e.text.as_str());
        let known = &self.networking.send_destinations;
        let found = match known.by_text(endpoint, text) {
            Some(id) => Some(id),
            None => resolve_endpoint(&destination, answers)?
                .and_then(|address| known.by_address(endpoint, address)),
        };
        if let Some(id) = found {
            self.drop_send_destination(endpoint, id);
        }
        self.succeed(correlation_id);
        Ok(())
    }

    fn drop_send_destination(&mut self, endpoint: EndpointId, destination: i64) {
        if self
            .networking
            .send_destinations
            .remove(endpoint, destination)
        {
            self.networking
                .sender
                .post(SenderCommand::RemoveDestination {
                    endpoint,
                    destination,
                });
        }
    }

    /// The endpoint of a publication to the network.
    fn sending_endpoint(&self, registration_id: i64, verb: &str) -> Result<EndpointId, Failure> {
        let id = PublicationId(registration_id);
        match self.networking.publications.get(id) {
            Some(publication) => Ok(publication.endpoint),
            None => Err(Failure::new(
                ErrorCode::UnknownPublication,
                format!(
                    "unknown {verb} destination: unknown publication, there is none to the network with registration id \
                     {registration_id}"
                ),
            )),
        }
    }

    /// The same, if its destinations are a matter of commands.
    fn manual_endpoint(
        &self,
        registration_id: i64,
        verb: &str,
        named: &str,
    ) -> Result<EndpointId, Failure> {
        let id = self.sending_endpoint(registration_id, verb)?;
        let channel = self.networking.send_endpoints.get(id).map(|e| &e.resolved);
        match channel {
            Some(resolved) if resolved.channel.kind() != ChannelKind::Manual => {
                Err(Failure::generic(format!(
                    "channel does not allow manual control of destinations, control-mode=manual is needed: {named} \
                     publication={registration_id} channel={}",
                    resolved.text()
                )))
            }
            _ => Ok(id),
        }
    }
}

fn read(text: &str) -> Result<UdpChannel, Failure> {
    match Channel::for_send_destination(text)? {
        Channel::Udp(destination) => Ok(destination),
        Channel::Ipc(_) | Channel::Spy(_) => Err(Failure::generic(format!(
            "incorrect URI format for destination, it must be an aeron:udp channel: {text}"
        ))),
    }
}
