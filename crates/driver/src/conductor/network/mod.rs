//! Everything that leaves or enters the machine, seen from the conductor: endpoints, publications, images, and the lines
//! to the agents that do the work.

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
mod watch;

pub(crate) use addresses::{ResolvedChannel, resolve, resolve_endpoint};
pub(crate) use destinations::{KnownDestination, SendDestinations};
pub(crate) use endpoints::{Endpoint, Endpoints, WantedBuffers, status};
pub(crate) use image::{Image, ImageCounters, ImageEvent, ImageParts, ImageTimeouts};
pub(crate) use images::Images;
pub(crate) use publication::{Event as PublicationEvent, NetworkPublication, PublicationCounters};
pub(crate) use publications::NetworkPublications;
pub(crate) use receive_destinations::{ReceiveDestination, ReceiveDestinations};
pub(crate) use sockets::{SenderSockets, Sockets};

use std::sync::Arc;

use taran_core::clock::WallClock;
use taran_net::Transport;

use self::ports::Refused;
use super::line::Line;
use super::responses::Announcement;
use super::setup::ImageQueue;
use super::subscriptions::SpiedStream;
use crate::boundary::{
    EndpointId, ImageId, PublicationId, ReceiverCommand, SenderCommand, TransportId,
};
use crate::congestion::Supplier;

/// The network side of the driver.
#[derive(Debug)]
pub(crate) struct Networking {
    pub(crate) sockets: Sockets,
    pub(crate) sender: Line<SenderCommand>,
    pub(crate) receiver: Line<ReceiverCommand>,
    pub(crate) send_endpoints: Endpoints,
    pub(crate) send_destinations: SendDestinations,
    pub(crate) receive_endpoints: Endpoints,
    pub(crate) receive_destinations: ReceiveDestinations,
    pub(crate) publications: NetworkPublications,
    pub(crate) images: Images,
    /// Images that are not there yet.
    pub(crate) image_queue: ImageQueue,
    /// Publications of answers that their requesters do not receive yet.
    pub(crate) announcements: Vec<Announcement>,
    /// Told in status messages of the next receive endpoint.
    pub(crate) next_receiver_id: i64,
    /// A user's own congestion control.
    pub(crate) congestion_control: Option<Supplier>,
    /// The time that is written into messages.
    pub(crate) wall_clock: Arc<dyn WallClock>,
}

impl Networking {
    /// Moves commands on to agents that had no room for them; true if all are through.
    pub(crate) fn flush_lines(&mut self) -> bool {
        // Both are flushed, whatever the first says.
        let sender = self.sender.flush();
        self.receiver.flush() && sender
    }

    /// Opens the sockets of a publication.
    pub(crate) fn open_sender(
        &mut self,
        resolved: &ResolvedChannel,
    ) -> Result<SenderSockets, Refused> {
        let endpoints = &self.send_endpoints;
        self.sockets
            .open_sender(resolved, || endpoints.ports().collect())
    }

    /// Opens the socket of a subscription.
    pub(crate) fn open_receiver(
        &mut self,
        resolved: &ResolvedChannel,
    ) -> Result<Box<dyn Transport>, Refused> {
        let (endpoints, sources) = (&self.receive_endpoints, &self.receive_destinations);
        let in_use = || endpoints.ports().chain(sources.ports()).collect();
        self.sockets.open_receiver(resolved, in_use)
    }

    /// Opens the socket of one of several sources of a subscription, whose buffers are those of the subscription.
    pub(crate) fn open_source(
        &mut self,
        resolved: &ResolvedChannel,
        wanted: WantedBuffers,
    ) -> Result<Box<dyn Transport>, Refused> {
        let (endpoints, sources) = (&self.receive_endpoints, &self.receive_destinations);
        let in_use = || endpoints.ports().chain(sources.ports()).collect();
        self.sockets.open_source(resolved, wanted, in_use)
    }

    /// The channel of a receive endpoint as text.
    pub(crate) fn receive_channel(&self, id: EndpointId) -> &str {
        self.receive_endpoints
            .get(id)
            .map_or("", |endpoint| endpoint.resolved.text())
    }

    /// The stream of a publication, as spies find it.
    pub(crate) fn spied_stream(&self, publication: &NetworkPublication) -> Option<SpiedStream<'_>> {
        let endpoint = self.send_endpoints.get(publication.endpoint)?;
        Some(SpiedStream {
            canonical: &endpoint.canonical,
            tag: endpoint.resolved.channel.tags.channel,
            stream_id: publication.terms.stream_id,
            session_id: publication.terms.session_id,
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

    /// One user less on a send endpoint; the last one closes it.
    pub(crate) fn leave_send_endpoint(&mut self, id: EndpointId) {
        if self.send_endpoints.remove_reference(id) {
            self.sender.post(SenderCommand::RemoveEndpoint(id));
        }
    }

    /// A send endpoint that was opened for a publication which then could not be made.
    pub(crate) fn abandon_send_endpoint(&mut self, id: EndpointId) {
        if self.send_endpoints.close_if_unused(id) {
            self.sender.post(SenderCommand::RemoveEndpoint(id));
        }
    }

    /// One user less on a receive endpoint; the last one closes it.
    pub(crate) fn leave_receive_endpoint(&mut self, id: EndpointId) {
        if self.receive_endpoints.remove_reference(id) {
            self.receiver.post(ReceiverCommand::RemoveEndpoint(id));
        }
    }

    /// The channel of a socket that is received on: that of a source, or of an endpoint that has none; nothing when it
    /// closes.
    pub(crate) fn receiving_channel(
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

    /// Takes a source from a subscription's endpoint, if it is there.
    pub(crate) fn remove_source(&mut self, endpoint: EndpointId, id: TransportId) -> bool {
        let is_there = self.receive_destinations.leave(endpoint, id);
        if is_there {
            self.receiver.post(ReceiverCommand::RemoveTransport {
                endpoint,
                transport: id,
            });
        }
        is_there
    }

    pub(crate) fn reject_image(&mut self, image_id: ImageId, reason: &str) {
        if let Some(image) = self.images.get(image_id) {
            self.receiver.post(ReceiverCommand::RejectImage {
                endpoint: image.endpoint,
                image: image.id,
                reason: reason.into(),
            });
        }
    }
}
