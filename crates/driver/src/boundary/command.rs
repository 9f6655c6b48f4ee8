// SPDX-License-Identifier: Apache-2.0
//! Commands from the conductor to the network agents.

use std::net::SocketAddr;

use taran_core::counters::Counter;

use super::{EndpointId, ImageId, PublicationId, SendDestination, SubscriberPosition, TransportId};
use crate::receiver::{ReceiveEndpoint, ReceiveTransport, ReceiverImage};
use crate::sender::{SendEndpoint, SenderPublication};

/// Commands to the sender. One is taken per poll, in order; a command that names an unknown object is ignored.
#[derive(Debug)]
pub(crate) enum SenderCommand {
    /// Adds an endpoint. Sent before any publication on it.
    AddEndpoint(Box<SendEndpoint>),
    /// Removes an endpoint; answered by [`super::ConductorEvent::SendEndpointReleased`]. Publications still on it are
    /// released first.
    RemoveEndpoint(EndpointId),
    /// Adds a publication to the endpoint named in its spec.
    AddPublication(Box<SenderPublication>),
    /// Removes a publication; answered by [`super::ConductorEvent::PublicationReleased`].
    RemovePublication {
        /// The endpoint it was added to.
        endpoint: EndpointId,
        /// The publication.
        publication: PublicationId,
    },
    /// Adds a spy to a publication. The spy's position advances the sender when spies simulate a connection (`ssc`).
    AddSpy {
        /// The endpoint of the publication.
        endpoint: EndpointId,
        /// The publication the spy reads.
        publication: PublicationId,
        /// The spy's `sub-pos`.
        position: Counter,
    },
    /// Removes a spy.
    RemoveSpy {
        /// The endpoint of the publication.
        endpoint: EndpointId,
        /// The publication the spy read.
        publication: PublicationId,
        /// Counter id of its `sub-pos`.
        counter_id: i32,
    },
    /// Adds a destination to an endpoint with `control-mode=manual`.
    AddDestination {
        /// The endpoint.
        endpoint: EndpointId,
        /// The destination.
        destination: SendDestination,
    },
    /// Removes a destination.
    RemoveDestination {
        /// The endpoint.
        endpoint: EndpointId,
        /// Registration id of the destination.
        destination: i64,
    },
    /// Changes the address of the endpoint, or of one of its destinations, after re-resolution.
    ChangeDestination {
        /// The endpoint.
        endpoint: EndpointId,
        /// Registration id of the destination; `None` for the single peer of an endpoint without destinations.
        destination: Option<i64>,
        /// The new address.
        address: SocketAddr,
    },
}

/// Commands to the receiver. One is taken per poll, in order; a command that names an unknown object is ignored.
#[derive(Debug)]
pub(crate) enum ReceiverCommand {
    /// Adds an endpoint. Sent before any subscription on it.
    AddEndpoint(Box<ReceiveEndpoint>),
    /// Removes an endpoint; answered by [`super::ConductorEvent::ReceiveEndpointReleased`]. Images still on it are
    /// released first.
    RemoveEndpoint(EndpointId),
    /// Adds interest in a stream. The receiver keeps a set; the conductor counts references.
    AddSubscription {
        /// The endpoint.
        endpoint: EndpointId,
        /// The stream.
        stream_id: i32,
        /// The session, or `None` for every session.
        session_id: Option<i32>,
    },
    /// Removes interest in a stream, or in one session of it, when the last subscription ends. Images without
    /// subscription accept no more data and send status messages with EOS (docs/spec/wire.md §5.1).
    RemoveSubscription {
        /// The endpoint.
        endpoint: EndpointId,
        /// The stream.
        stream_id: i32,
        /// The session given with `AddSubscription`.
        session_id: Option<i32>,
    },
    /// Adds an image: the positive answer to [`super::ConductorEvent::CreateImage`].
    AddImage(Box<ReceiverImage>),
    /// No image was created: the negative answer to [`super::ConductorEvent::CreateImage`]. The next SETUP requests one
    /// again.
    ImageRefused {
        /// The endpoint.
        endpoint: EndpointId,
        /// The requested session.
        session_id: i32,
        /// The requested stream.
        stream_id: i32,
    },
    /// Adds a subscriber to an image.
    AddSubscriber {
        /// The endpoint of the image.
        endpoint: EndpointId,
        /// The image.
        image: ImageId,
        /// Its position counter, already set to the join position.
        subscriber: SubscriberPosition,
    },
    /// Removes a subscriber from an image, also when an untethered one starts to rest.
    RemoveSubscriber {
        /// The endpoint of the image.
        endpoint: EndpointId,
        /// The image.
        image: ImageId,
        /// Counter id of its `sub-pos`.
        counter_id: i32,
    },
    /// Elicits a SETUP for a response stream at the explicit control addresses.
    RequestSetup {
        /// The endpoint.
        endpoint: EndpointId,
        /// The stream.
        stream_id: i32,
        /// Its session.
        session_id: i32,
    },
    /// Sets or clears the session id that the image sends in RESPONSE_SETUP frames (docs/spec/wire.md §2.10).
    SetResponseSession {
        /// The endpoint of the image.
        endpoint: EndpointId,
        /// The image.
        image: ImageId,
        /// The session of the response publication; `None` stops the frames.
        session_id: Option<i32>,
    },
    /// Sends error frames instead of status messages until the image times out (docs/spec/wire.md §5.6).
    RejectImage {
        /// The endpoint of the image.
        endpoint: EndpointId,
        /// The image.
        image: ImageId,
        /// The reason sent to the publisher; ASCII, truncated to 1023 bytes.
        reason: Box<str>,
    },
    /// Removes an image that reached LINGER; answered by [`super::ConductorEvent::ImageReleased`].
    RemoveImage {
        /// The endpoint of the image.
        endpoint: EndpointId,
        /// The image.
        image: ImageId,
    },
    /// Ends the cool-down of a session that timed out, so that it may be set up again (docs/spec/wire.md §5.10).
    RemoveCoolDown {
        /// The endpoint.
        endpoint: EndpointId,
        /// The session.
        session_id: i32,
        /// The stream.
        stream_id: i32,
    },
    /// Changes an explicit control address after re-resolution.
    ChangeControl {
        /// The endpoint.
        endpoint: EndpointId,
        /// The transport of the endpoint.
        transport: TransportId,
        /// The new address for status messages, both setup-eliciting ones and those of images.
        address: SocketAddr,
    },
    /// Adds the socket of a new destination to the endpoint.
    AddTransport {
        /// The endpoint.
        endpoint: EndpointId,
        /// The socket.
        transport: Box<ReceiveTransport>,
    },
    /// Removes the socket of a destination; answered by [`super::ConductorEvent::ReceiveTransportReleased`].
    RemoveTransport {
        /// The endpoint.
        endpoint: EndpointId,
        /// The transport of the endpoint.
        transport: TransportId,
    },
}
