//! Commands from the conductor to the network agents.

use std::net::SocketAddr;

use taran_core::counters::Counter;

use super::{EndpointId, ImageId, PublicationId, SendDestination, SubscriberPosition, TransportId};
use crate::receiver::{ReceiveEndpoint, ReceiveTransport, ReceiverImage};
use crate::sender::{SendEndpoint, SenderPublication};

/// Conductor to sender. Taken one per duty cycle, in order; a command about something unknown is ignored.
#[derive(Debug)]
pub enum SenderCommand {
    /// A new endpoint, before any publication on it.
    AddEndpoint(Box<SendEndpoint>),
    /// Take an endpoint out; answered by [`super::ConductorEvent::SendEndpointReleased`]. Publications still on it are
    /// released first.
    RemoveEndpoint(EndpointId),
    /// A new publication; its spec names the endpoint.
    AddPublication(Box<SenderPublication>),
    /// Take a publication out; answered by [`super::ConductorEvent::PublicationReleased`].
    RemovePublication {
        /// The endpoint it was added to.
        endpoint: EndpointId,
        /// Which one.
        publication: PublicationId,
    },
    /// A spy reads the publication. Its position moves the sender when the publication simulates connections for spies.
    AddSpy {
        /// The endpoint of the publication.
        endpoint: EndpointId,
        /// The publication the spy reads.
        publication: PublicationId,
        /// The spy's `sub-pos`.
        position: Counter,
    },
    /// A spy is gone.
    RemoveSpy {
        /// The endpoint of the publication.
        endpoint: EndpointId,
        /// The publication the spy read.
        publication: PublicationId,
        /// Counter id of its `sub-pos`.
        counter_id: i32,
    },
    /// One more destination of an endpoint under manual control.
    AddDestination {
        /// The endpoint.
        endpoint: EndpointId,
        /// The destination.
        destination: SendDestination,
    },
    /// A destination is not wanted any more.
    RemoveDestination {
        /// The endpoint.
        endpoint: EndpointId,
        /// Registration id of the destination.
        destination: i64,
    },
    /// The name behind the endpoint, or behind one of its destinations, resolved to another address.
    ChangeDestination {
        /// The endpoint.
        endpoint: EndpointId,
        /// Registration id of the destination; `None` for the one peer of an endpoint that has no others.
        destination: Option<i64>,
        /// The peer from now on.
        address: SocketAddr,
    },
}

/// Conductor to receiver. Taken one per duty cycle, in order; a command about something unknown is ignored.
#[derive(Debug)]
pub enum ReceiverCommand {
    /// A new endpoint, before any subscription on it.
    AddEndpoint(Box<ReceiveEndpoint>),
    /// Take an endpoint out; answered by [`super::ConductorEvent::ReceiveEndpointReleased`]. Images still on it are
    /// released first.
    RemoveEndpoint(EndpointId),
    /// Somebody wants a stream. Sets, not counts: the conductor counts references.
    AddSubscription {
        /// The endpoint.
        endpoint: EndpointId,
        /// The stream.
        stream_id: i32,
        /// One session only, or every session.
        session_id: Option<i32>,
    },
    /// The last subscription of a stream (or of one session of it) is gone. Images nobody wants any more take no
    /// further data and begin to say goodbye (docs/spec/wire.md §5.1).
    RemoveSubscription {
        /// The endpoint.
        endpoint: EndpointId,
        /// The stream.
        stream_id: i32,
        /// As it was added.
        session_id: Option<i32>,
    },
    /// The answer to [`super::ConductorEvent::CreateImage`].
    AddImage(Box<ReceiverImage>),
    /// The other answer to [`super::ConductorEvent::CreateImage`]: no image; the next SETUP may ask again.
    ImageRefused {
        /// The endpoint.
        endpoint: EndpointId,
        /// Session asked for.
        session_id: i32,
        /// Stream asked for.
        stream_id: i32,
    },
    /// One more subscriber reads the image.
    AddSubscriber {
        /// The endpoint of the image.
        endpoint: EndpointId,
        /// The image.
        image: ImageId,
        /// Its position, already set to the join position.
        subscriber: SubscriberPosition,
    },
    /// A subscriber of the image is gone (or rests, when untethered).
    RemoveSubscriber {
        /// The endpoint of the image.
        endpoint: EndpointId,
        /// The image.
        image: ImageId,
        /// Counter id of its `sub-pos`.
        counter_id: i32,
    },
    /// A receiver of responses waits for a stream: ask for its SETUP at the explicit control addresses.
    RequestSetup {
        /// The endpoint.
        endpoint: EndpointId,
        /// The stream.
        stream_id: i32,
        /// Its session.
        session_id: i32,
    },
    /// Tell the sender of the image under which session its requests are answered (docs/spec/wire.md §2.10), or do so no longer.
    AnnounceResponse {
        /// The endpoint of the image.
        endpoint: EndpointId,
        /// The image.
        image: ImageId,
        /// The session of the response publication.
        session_id: Option<i32>,
    },
    /// Answer with error frames instead of status messages until the image times out (docs/spec/wire.md §5.6).
    RejectImage {
        /// The endpoint of the image.
        endpoint: EndpointId,
        /// The image.
        image: ImageId,
        /// Told to the publisher; ASCII, cut at 1023 bytes.
        reason: Box<str>,
    },
    /// The image reached LINGER: take it out; answered by [`super::ConductorEvent::ImageReleased`].
    RemoveImage {
        /// The endpoint of the image.
        endpoint: EndpointId,
        /// The image.
        image: ImageId,
    },
    /// A session that timed out may come back (docs/spec/wire.md §5.10).
    RemoveCoolDown {
        /// The endpoint.
        endpoint: EndpointId,
        /// The session.
        session_id: i32,
        /// The stream.
        stream_id: i32,
    },
    /// The name behind an explicit control address resolved to another address.
    ChangeControl {
        /// The endpoint.
        endpoint: EndpointId,
        /// Which of its transports.
        transport: TransportId,
        /// Where setup-eliciting status messages, and those of images, go from now on.
        address: SocketAddr,
    },
    /// A destination was added: one more socket that brings streams to the endpoint.
    AddTransport {
        /// The endpoint.
        endpoint: EndpointId,
        /// The socket.
        transport: Box<ReceiveTransport>,
    },
    /// A destination was removed: take its socket out; answered by
    /// [`super::ConductorEvent::ReceiveTransportReleased`].
    RemoveTransport {
        /// The endpoint.
        endpoint: EndpointId,
        /// Which of its transports.
        transport: TransportId,
    },
}
