// SPDX-License-Identifier: Apache-2.0
//! Handlers of the conductor's commands.

use taran_core::clock::Now;

use super::{
    PolledTransport, ReceiveContext, ReceiveEndpoint, ReceiveTransport, Receiver, ReceiverImage,
};
use crate::boundary::{ConductorEvent, EndpointId, ImageId, ReceiverCommand, TransportId};

impl Receiver {
    /// Takes one command, if there is room for the events that it may cause.
    pub(super) fn take_command(&mut self, now: Now) -> usize {
        let Some(command) = self.event_sender.next_command(&mut self.commands) else {
            return 0;
        };
        match command {
            ReceiverCommand::AddEndpoint(endpoint) => self.add_endpoint(endpoint, now),
            ReceiverCommand::RemoveEndpoint(id) => self.remove_endpoint(id),
            ReceiverCommand::AddSubscription {
                endpoint,
                stream_id,
                session_id,
            } => {
                self.with_endpoint(endpoint, now, |endpoint, context| {
                    endpoint.add_subscription(stream_id, session_id, context);
                });
            }
            ReceiverCommand::RemoveSubscription {
                endpoint,
                stream_id,
                session_id,
            } => {
                if let Some(endpoint) = self.endpoint(endpoint) {
                    endpoint.remove_subscription(stream_id, session_id);
                }
            }
            ReceiverCommand::AddImage(image) => self.add_image(image, now),
            ReceiverCommand::ImageRefused {
                endpoint,
                session_id,
                stream_id,
            } => {
                if let Some(endpoint) = self.endpoint(endpoint) {
                    endpoint
                        .dispatcher()
                        .on_image_refused(session_id, stream_id);
                }
            }
            ReceiverCommand::AddSubscriber {
                endpoint,
                image,
                subscriber,
            } => {
                if let Some(image) = self.image(endpoint, image) {
                    image.add_subscriber(subscriber);
                }
            }
            ReceiverCommand::RemoveSubscriber {
                endpoint,
                image,
                counter_id,
            } => {
                if let Some(image) = self.image(endpoint, image) {
                    image.remove_subscriber(counter_id);
                }
            }
            ReceiverCommand::RejectImage {
                endpoint,
                image,
                reason,
            } => {
                if let Some(image) = self.image(endpoint, image) {
                    image.reject(reason);
                }
            }
            ReceiverCommand::RemoveImage { endpoint, image } => {
                if let Some(image) = self
                    .endpoint(endpoint)
                    .and_then(|endpoint| endpoint.remove_image(image))
                {
                    self.event_sender.send(ConductorEvent::ImageReleased(image));
                }
            }
            ReceiverCommand::RemoveCoolDown {
                endpoint,
                session_id,
                stream_id,
            } => {
                if let Some(endpoint) = self.endpoint(endpoint) {
                    endpoint
                        .dispatcher()
                        .remove_cool_down(session_id, stream_id);
                }
            }
            ReceiverCommand::RequestSetup {
                endpoint,
                stream_id,
                session_id,
            } => self.with_endpoint(endpoint, now, |endpoint, context| {
                endpoint.elicit_session_setup(stream_id, session_id, context);
            }),
            ReceiverCommand::SetResponseSession {
                endpoint,
                image,
                session_id,
            } => {
                if let Some(image) = self.image(endpoint, image) {
                    image.announce_response(session_id);
                }
            }
            ReceiverCommand::ChangeControl {
                endpoint,
                transport,
                address,
            } => {
                if let Some(endpoint) = self.endpoint(endpoint) {
                    endpoint.change_control(transport, address);
                }
            }
            ReceiverCommand::AddTransport {
                endpoint,
                transport,
            } => self.add_transport(endpoint, transport, now),
            ReceiverCommand::RemoveTransport {
                endpoint,
                transport,
            } => self.remove_transport(endpoint, transport),
        }
        1
    }

    fn add_endpoint(&mut self, endpoint: Box<ReceiveEndpoint>, now: Now) {
        let id = endpoint.id();
        self.endpoints.push(endpoint);
        self.with_endpoint(id, now, ReceiveEndpoint::start);
        self.update_poller();
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
        while let Some(image) = endpoint.remove_any_image() {
            self.event_sender.send(ConductorEvent::ImageReleased(image));
        }
        self.event_sender
            .send(ConductorEvent::ReceiveEndpointReleased(endpoint));
        self.update_poller();
    }

    fn add_transport(&mut self, id: EndpointId, transport: Box<ReceiveTransport>, now: Now) {
        if self.endpoint(id).is_none() {
            self.event_sender
                .send(ConductorEvent::ReceiveTransportReleased(transport));
            return;
        }
        self.with_endpoint(id, now, |endpoint, context| {
            endpoint.add_transport(*transport, context);
        });
        self.update_poller();
    }

    fn remove_transport(&mut self, id: EndpointId, transport: TransportId) {
        let removed = self
            .endpoint(id)
            .and_then(|endpoint| endpoint.remove_transport(transport));
        if let Some(transport) = removed {
            self.event_sender
                .send(ConductorEvent::ReceiveTransportReleased(transport));
            self.update_poller();
        }
    }

    fn add_image(&mut self, image: Box<ReceiverImage>, now: Now) {
        let id = image.endpoint();
        if self.endpoint(id).is_none() {
            self.event_sender.send(ConductorEvent::ImageReleased(image));
            return;
        }
        self.with_endpoint(id, now, |endpoint, context| {
            endpoint.add_image(image, context);
        });
    }

    fn with_endpoint(
        &mut self,
        id: EndpointId,
        now: Now,
        act: impl FnOnce(&mut ReceiveEndpoint, &mut ReceiveContext<'_>),
    ) {
        let mut context = ReceiveContext {
            now,
            counters: &self.counters,
            reporter: &mut self.reporter,
            losses: &mut self.losses,
            events: &mut self.event_sender,
        };
        if let Some(endpoint) = self
            .endpoints
            .iter_mut()
            .find(|endpoint| endpoint.id() == id)
        {
            act(endpoint, &mut context);
        }
    }

    fn endpoint(&mut self, id: EndpointId) -> Option<&mut ReceiveEndpoint> {
        self.endpoints
            .iter_mut()
            .find(|endpoint| endpoint.id() == id)
            .map(|endpoint| &mut **endpoint)
    }

    fn image(&mut self, endpoint: EndpointId, image: ImageId) -> Option<&mut ReceiverImage> {
        self.endpoint(endpoint)?.image(image)
    }

    /// Passes the sockets to the poller.
    fn update_poller(&mut self) {
        let mut sources = Vec::new();
        self.polled.clear();
        for (endpoint, found) in self.endpoints.iter().enumerate() {
            for (slot, transport) in found.transports() {
                sources.push(transport.transport.poll_source());
                self.polled.push(PolledTransport { endpoint, slot });
            }
        }
        self.poller.set_sources(&sources);
    }
}
