// SPDX-License-Identifier: Apache-2.0
//! Commands from the conductor.

use taran_core::clock::Now;

use super::{SendEndpoint, Sender, SenderPublication};
use crate::boundary::{ConductorEvent, EndpointId, PublicationId, SenderCommand};

impl Sender {
    /// Executes one command, if the events that it may cause can be sent.
    pub(super) fn take_command(&mut self, now: Now) -> usize {
        let Some(command) = self.event_sender.next_command(&mut self.commands) else {
            return 0;
        };
        match command {
            SenderCommand::AddEndpoint(mut endpoint) => {
                endpoint.start(now);
                self.endpoints.push(endpoint);
                self.update_poller();
            }
            SenderCommand::RemoveEndpoint(id) => self.remove_endpoint(id),
            SenderCommand::AddPublication(publication) => {
                match self.endpoint(publication.endpoint()) {
                    Some(endpoint) => endpoint.add(publication, now),
                    None => self
                        .event_sender
                        .send(ConductorEvent::PublicationReleased(publication)),
                }
            }
            SenderCommand::RemovePublication {
                endpoint,
                publication,
            } => {
                if let Some(publication) = self
                    .endpoint(endpoint)
                    .and_then(|found| found.remove(publication))
                {
                    self.event_sender
                        .send(ConductorEvent::PublicationReleased(publication));
                }
            }
            SenderCommand::AddSpy {
                endpoint,
                publication,
                position,
            } => {
                if let Some(publication) = self.publication(endpoint, publication) {
                    publication.add_spy(position);
                }
            }
            SenderCommand::RemoveSpy {
                endpoint,
                publication,
                counter_id,
            } => {
                if let Some(publication) = self.publication(endpoint, publication) {
                    publication.remove_spy(counter_id);
                }
            }
            SenderCommand::AddDestination {
                endpoint,
                destination,
            } => {
                if let Some(endpoint) = self.endpoint(endpoint) {
                    endpoint.transport().add_destination(destination, now);
                }
            }
            SenderCommand::RemoveDestination {
                endpoint,
                destination,
            } => {
                if let Some(endpoint) = self.endpoint(endpoint) {
                    endpoint.transport().remove_destination(destination);
                }
            }
            SenderCommand::ChangeDestination {
                endpoint,
                destination,
                address,
            } => {
                if let Some(found) = self
                    .endpoints
                    .iter_mut()
                    .find(|found| found.id() == endpoint)
                {
                    found.transport().change_destination(
                        destination,
                        address,
                        now,
                        &mut self.reporter,
                    );
                }
            }
        }
        1
    }

    fn remove_endpoint(&mut self, id: EndpointId) {
        let Some(index) = self
            .endpoints
            .iter()
            .position(|endpoint| endpoint.id() == id)
        else {
            return;
        };
        let mut endpoint = self.endpoints.remove(index);
        while let Some(publication) = endpoint.remove_any() {
            self.event_sender
                .send(ConductorEvent::PublicationReleased(publication));
        }
        self.event_sender
            .send(ConductorEvent::SendEndpointReleased(endpoint));
        self.update_poller();
    }

    fn endpoint(&mut self, id: EndpointId) -> Option<&mut SendEndpoint> {
        self.endpoints
            .iter_mut()
            .find(|endpoint| endpoint.id() == id)
            .map(|endpoint| &mut **endpoint)
    }

    fn publication(
        &mut self,
        endpoint: EndpointId,
        id: PublicationId,
    ) -> Option<&mut SenderPublication> {
        self.endpoint(endpoint)?.publication(id)
    }

    /// Passes the sockets that receive control frames to the poller, in the order of `endpoints`.
    fn update_poller(&mut self) {
        let sources = self.endpoints.iter();
        let sources: Vec<_> = sources.map(|endpoint| endpoint.control_source()).collect();
        self.poller.set_sources(&sources);
    }
}
