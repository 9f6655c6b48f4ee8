// SPDX-License-Identifier: Apache-2.0
//! Events from the network agents to the conductor.

use std::net::SocketAddr;

use super::{EndpointId, PublicationId, TransportId};
use crate::receiver::{ReceiveEndpoint, ReceiveTransport, ReceiverImage};
use crate::sender::{SendEndpoint, SenderPublication};

/// An event sent by a network agent to the conductor.
///
/// The `…Released` events answer a remove command and are never lost. They carry the released object, so that the
/// conductor, not the agent, closes sockets and unmaps logs by dropping it. Other events are dropped and counted when
/// the queue is full; those that matter are sent again while their cause persists.
#[derive(Debug)]
pub(crate) enum ConductorEvent {
    /// A SETUP frame requests an image. Answered by `AddImage` or `ImageRefused`; until then the session is ignored.
    CreateImage(CreateImage),
    /// The sender has stopped using this publication and its log.
    PublicationReleased(Box<SenderPublication>),
    /// The sender has stopped using this endpoint.
    SendEndpointReleased(Box<SendEndpoint>),
    /// The receiver has stopped using this image and its log.
    ImageReleased(Box<ReceiverImage>),
    /// The receiver has stopped using this endpoint.
    ReceiveEndpointReleased(Box<ReceiveEndpoint>),
    /// The receiver has stopped using this transport of an endpoint.
    ReceiveTransportReleased(Box<ReceiveTransport>),
    /// A receiver sent an error frame for a publication (docs/spec/wire.md §3.7). The conductor records it and sends it
    /// to the clients.
    PublicationError(PublicationError),
    /// The peer of a send endpoint was silent for five seconds: its name is to be resolved again
    /// (docs/spec/wire.md §2.14).
    ReResolveEndpoint(EndpointId),
    /// A destination given by name was silent for five seconds: its name is to be resolved again.
    ReResolveDestination {
        /// The endpoint.
        endpoint: EndpointId,
        /// Registration id of the destination.
        destination: i64,
    },
    /// A transport with an explicit control address received nothing for five seconds: the name is to be resolved
    /// again.
    ReResolveControl {
        /// The endpoint.
        endpoint: EndpointId,
        /// The transport of the endpoint.
        transport: TransportId,
    },
    /// A RESPONSE_SETUP frame names the session of the response stream (docs/spec/wire.md §2.10). Sent again until the
    /// response stream is received.
    ResponseSetup {
        /// The publication that requested the response channel.
        publication: PublicationId,
        /// The session of the response publication.
        session_id: i32,
    },
    /// A SETUP was ignored because the stream already has `aeron.driver.stream.session.limit` images.
    SessionLimitReached {
        /// The endpoint.
        endpoint: EndpointId,
        /// The session without an image.
        session_id: i32,
        /// The stream.
        stream_id: i32,
    },
}

/// The contents and the origin of a SETUP frame. The receiver has checked the fields (docs/spec/wire.md §1.14 rule 2);
/// the conductor checks the window and the subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CreateImage {
    /// The endpoint it arrived on.
    pub(crate) endpoint: EndpointId,
    /// The transport it arrived on.
    pub(crate) transport: TransportId,
    /// Session id.
    pub(crate) session_id: i32,
    /// Stream id.
    pub(crate) stream_id: i32,
    /// Initial term id.
    pub(crate) initial_term_id: i32,
    /// Term id of the join position.
    pub(crate) active_term_id: i32,
    /// Term offset of the join position, bytes.
    pub(crate) term_offset: i32,
    /// Term length, bytes; a power of two from 64 KiB to 1 GiB.
    pub(crate) term_length: i32,
    /// Sender's MTU, bytes.
    pub(crate) mtu: i32,
    /// Multicast TTL of the sender; 0 when not set.
    pub(crate) ttl: i32,
    /// Multicast TTL of the receiver's own frames; 0 where it does not send to a group.
    pub(crate) own_ttl: u8,
    /// True if the publication has group semantics.
    pub(crate) is_group: bool,
    /// True if the publication requests a response channel (docs/spec/wire.md §2.10).
    pub(crate) wants_response: bool,
    /// Source address of the SETUP; the source identity of the image.
    pub(crate) source: SocketAddr,
    /// Destination of status messages and NAKs.
    pub(crate) control: SocketAddr,
}

/// An error frame that a live receiver sent for a publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublicationError {
    /// The publication.
    pub(crate) publication: PublicationId,
    /// Registration id of the destination that the frame came from; -1 when unknown.
    pub(crate) destination_id: i64,
    /// Session of the publication.
    pub(crate) session_id: i32,
    /// Stream of the publication.
    pub(crate) stream_id: i32,
    /// Receiver id of the endpoint that sent the frame.
    pub(crate) receiver_id: i64,
    /// Its group tag, if the frame has one.
    pub(crate) group_tag: Option<i64>,
    /// Its address.
    pub(crate) source: SocketAddr,
    /// Error code of the frame (13 = image rejected).
    pub(crate) code: i32,
    /// Text of the frame.
    pub(crate) text: Box<str>,
}
