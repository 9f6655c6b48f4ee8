// SPDX-License-Identifier: Apache-2.0
//! Conductor's view of the network: endpoints, publications, images, and the command queues of the agents.

mod addresses;
mod destinations;
mod endpoints;
mod image;
mod images;
mod ports;
mod publication;
mod publications;
mod receive_destinations;
mod sockets;
mod wake_conditions;

pub(crate) use addresses::{ResolvedChannel, resolve, resolve_endpoint};
pub(crate) use destinations::{KnownDestination, SendDestinations};
pub(crate) use endpoints::{Endpoint, Endpoints, RequestedBuffers, status};
pub(crate) use image::{Image, ImageCounters, ImageEvent, ImageParts, ImageTimeouts};
pub(crate) use images::Images;
pub(crate) use publication::{Event as PublicationEvent, NetworkPublication, PublicationCounters};
pub(crate) use publications::NetworkPublications;
pub(crate) use receive_destinations::{ReceiveDestination, ReceiveDestinations};
pub(crate) use sockets::{SenderSockets, Sockets};

use std::sync::Arc;

use taran_core::clock::WallClock;
use taran_net::Transport;

use self::ports::OpenError;
use super::command_sender::CommandSender;
use super::image_setup::{ImageBudget, ImageQueue};
use super::response_channels::ResponseSetup;
use super::subscriptions::SpiedStream;
use crate::boundary::{
    EndpointId, ImageId, PublicationId, ReceiverCommand, SenderCommand, TransportId,
};
use crate::congestion::CongestionControlSupplier;

/// Network state of the driver.
#[derive(Debug)]
pub(crate) struct Networking {
    pub(crate) sockets: Sockets,
    pub(crate) sender: CommandSender<SenderCommand>,
    pub(crate) receiver: CommandSender<ReceiverCommand>,
    pub(crate) send_endpoints: Endpoints,
    pub(crate) send_destinations: SendDestinations,
    pub(crate) receive_endpoints: Endpoints,
    pub(crate) receive_destinations: ReceiveDestinations,
    pub(crate) publications: NetworkPublications,
    pub(crate) images: Images,
    /// Images that are not created yet.
    pub(crate) image_queue: ImageQueue,
    pub(crate) image_budget: ImageBudget,
    /// Response publications that are not received yet.
    pub(crate) response_setups: Vec<ResponseSetup>,
    /// Receiver id of the next receive endpoint.
    pub(crate) next_receiver_id: i64,
    /// Congestion control supplied by the embedding application.
    pub(crate) congestion_control: Option<CongestionControlSupplier>,
    /// Clock for timestamps in messages.
    pub(crate) wall_clock: Arc<dyn WallClock>,
}

impl Networking {
    /// Flushes buffered commands to both agents. Returns true if none is left.
    pub(crate) fn flush_commands(&mut self) -> bool {
        // Both are flushed, whatever the result of the first.
        let sender = self.sender.flush();
        self.receiver.flush() && sender
    }

    /// Returns the next time at which a duty cycle has an effect, if nothing comes from outside before. `None` if it is not
    /// known.
    pub(crate) fn next_deadline_ns(&self) -> Option<i64> {
        let has_buffered = self.sender.has_buffered() || self.receiver.has_buffered();
        if has_buffered || self.image_queue.has_requests() {
            return Some(i64::MIN);
        }
        let publications_ns = self.publications.next_deadline_ns()?;
        Some(publications_ns.min(self.images.next_deadline_ns()?))
    }

    /// Opens the sockets of a publication.
    pub(crate) fn open_sender(
        &mut self,
        resolved: &ResolvedChannel,
        registration_id: i64,
    ) -> Result<SenderSockets, OpenError> {
        let endpoints = &self.send_endpoints;
        self.sockets
            .open_sender(resolved, registration_id, || endpoints.ports().collect())
    }

    /// Opens the socket of a subscription.
    pub(crate) fn open_receiver(
        &mut self,
        resolved: &ResolvedChannel,
        registration_id: i64,
    ) -> Result<Box<dyn Transport>, OpenError> {
        let (endpoints, sources) = (&self.receive_endpoints, &self.receive_destinations);
        let in_use = || endpoints.ports().chain(sources.ports()).collect();
        self.sockets
            .open_receiver(resolved, registration_id, in_use)
    }

    /// Opens the socket of a destination of a subscription, with the buffer lengths of the subscription.
    pub(crate) fn open_receive_destination(
        &mut self,
        resolved: &ResolvedChannel,
        registration_id: i64,
        requested: RequestedBuffers,
    ) -> Result<Box<dyn Transport>, OpenError> {
        let (endpoints, sources) = (&self.receive_endpoints, &self.receive_destinations);
        let in_use = || endpoints.ports().chain(sources.ports()).collect();
        self.sockets
            .open_receive_destination(resolved, registration_id, requested, in_use)
    }

    /// Returns the channel URI of a receive endpoint.
    pub(crate) fn receive_channel(&self, id: EndpointId) -> &str {
        self.receive_endpoints
            .get(id)
            .map_or("", |endpoint| endpoint.resolved.text())
    }

    /// Returns the stream of a publication, as matched with spies.
    pub(crate) fn spied_stream(&self, publication: &NetworkPublication) -> Option<SpiedStream<'_>> {
        let endpoint = self.send_endpoints.get(publication.endpoint)?;
        Some(SpiedStream {
            canonical: &endpoint.canonical,
            tag: endpoint.resolved.channel.tags.channel,
            stream_id: publication.config.stream_id,
            session_id: publication.config.session_id,
        })
    }

    pub(crate) fn uses_session(&self, stream_id: i32, session_id: i32) -> bool {
        self.publications.uses_session(stream_id, session_id)
    }

    pub(crate) fn release_publication(&mut self, id: PublicationId) {
        if let Some(publication) = self.publications.get_mut(id) {
            publication.remove_reference();
        }
    }

    /// Removes a reference to a send endpoint; closes it with the last one.
    pub(crate) fn release_send_endpoint(&mut self, id: EndpointId) {
        if self.send_endpoints.remove_reference(id) {
            self.sender.send(SenderCommand::RemoveEndpoint(id));
        }
    }

    /// Closes a send endpoint whose first publication could not be created.
    pub(crate) fn close_unused_send_endpoint(&mut self, id: EndpointId) {
        if self.send_endpoints.close_if_unused(id) {
            self.sender.send(SenderCommand::RemoveEndpoint(id));
        }
    }

    /// Removes a reference to a receive endpoint; closes it with the last one.
    pub(crate) fn release_receive_endpoint(&mut self, id: EndpointId) {
        if self.receive_endpoints.remove_reference(id) {
            self.receiver.send(ReceiverCommand::RemoveEndpoint(id));
        }
    }

    /// Returns the channel of a receive transport: that of its destination, or of an endpoint without destinations;
    /// `None` while it closes.
    pub(crate) fn receive_channel_mut(
        &mut self,
        endpoint: EndpointId,
        transport: TransportId,
    ) -> Option<&mut ResolvedChannel> {
        match self.receive_destinations.get_mut(transport) {
            Some(source) if source.endpoint == endpoint => Some(&mut source.resolved),
            _ => {
                let endpoint = self.receive_endpoints.get_mut(endpoint)?;
                (!endpoint.closing).then_some(&mut endpoint.resolved)
            }
        }
    }

    /// Removes a destination from a subscription's endpoint; returns true if it existed.
    pub(crate) fn remove_receive_destination(
        &mut self,
        endpoint: EndpointId,
        id: TransportId,
    ) -> bool {
        let is_there = self.receive_destinations.begin_closing(endpoint, id);
        if is_there {
            self.receiver.send(ReceiverCommand::RemoveTransport {
                endpoint,
                transport: id,
            });
        }
        is_there
    }

    pub(crate) fn reject_image(&mut self, image_id: ImageId, reason: &str) {
        if let Some(image) = self.images.get(image_id) {
            self.receiver.send(ReceiverCommand::RejectImage {
                endpoint: image.endpoint,
                image: image.id,
                reason: reason.into(),
            });
        }
    }
}
