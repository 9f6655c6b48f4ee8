//! Events from the network agents to the conductor.

use std::net::SocketAddr;

use super::{EndpointId, PublicationId, TransportId};
use crate::receiver::{ReceiveEndpoint, ReceiveTransport, ReceiverImage};
use crate::sender::{SendEndpoint, SenderPublication};

/// What a network agent tells the conductor.
///
/// The `…Released` events answer a remove command and are never lost; dropping the box closes sockets and lets go of
/// the log, which is why it travels to the conductor. The others are dropped, and counted, when the queue is full: what
/// matters among them is repeated by its cause.
#[derive(Debug)]
pub enum ConductorEvent {
    /// A SETUP asks for an image. Answer with `AddImage` or `ImageRefused`; until then the session is ignored.
    CreateImage(CreateImage),
    /// The sender no longer uses this publication or its log.
    PublicationReleased(Box<SenderPublication>),
    /// The sender no longer uses this endpoint.
    SendEndpointReleased(Box<SendEndpoint>),
    /// The receiver no longer uses this image or its log.
    ImageReleased(Box<ReceiverImage>),
    /// The receiver no longer uses this endpoint.
    ReceiveEndpointReleased(Box<ReceiveEndpoint>),
    /// The receiver no longer uses this transport of an endpoint.
    ReceiveTransportReleased {
        /// The endpoint.
        endpoint: EndpointId,
        /// What was one of its transports.
        transport: Box<ReceiveTransport>,
    },
    /// A receiver sent an error frame for a publication (docs/spec/wire.md §3.7). To be recorded and told to the clients.
    PublicationError(PublicationError),
    /// Nothing was heard from the peer of a send endpoint for five seconds: resolve its name again (docs/spec/wire.md §2.14).
    SendEndpointUnheard(EndpointId),
    /// Nothing was heard for five seconds from a destination that was given by name: resolve it again.
    DestinationUnheard {
        /// The endpoint.
        endpoint: EndpointId,
        /// Registration id of the destination.
        destination: i64,
    },
    /// Nothing was heard on a transport with an explicit control address for five seconds: resolve it again.
    ReceiveTransportUnheard {
        /// The endpoint.
        endpoint: EndpointId,
        /// Which of its transports.
        transport: TransportId,
    },
    /// The receiver of a publication answers it under this session (docs/spec/wire.md §2.10). Repeated until the answers are
    /// received.
    ResponseSetup {
        /// The publication, which asked for a response.
        publication: PublicationId,
        /// The session of the answers.
        session_id: i32,
    },
    /// A stream has as many images as `aeron.driver.stream.session.limit` allows and a SETUP asks for one more.
    SessionLimitReached {
        /// The endpoint.
        endpoint: EndpointId,
        /// The session that was turned away.
        session_id: i32,
        /// The stream.
        stream_id: i32,
    },
}

/// The facts of a SETUP frame and of where it came from. The fields passed docs/spec/wire.md §1.14 rule 2; window checks and
/// everything about subscriptions are the conductor's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateImage {
    /// The endpoint it arrived on.
    pub endpoint: EndpointId,
    /// The transport it arrived on.
    pub transport: TransportId,
    /// Session of the stream.
    pub session_id: i32,
    /// Stream.
    pub stream_id: i32,
    /// First term of the stream.
    pub initial_term_id: i32,
    /// Term of the join position.
    pub active_term_id: i32,
    /// Offset of the join position in it, bytes.
    pub term_offset: i32,
    /// Bytes; a power of two in 64 KiB ..= 1 GiB.
    pub term_length: i32,
    /// Sender's MTU, bytes.
    pub mtu: i32,
    /// Sender's multicast TTL, 0 when not set.
    pub ttl: i32,
    /// The TTL of what the receiver answers; 0 where it does not answer to a group.
    pub own_ttl: u8,
    /// The publication has group semantics.
    pub is_group: bool,
    /// The publication asks for a response channel (docs/spec/wire.md §2.10).
    pub wants_response: bool,
    /// Where the SETUP came from: the image's source identity.
    pub source: SocketAddr,
    /// Where status messages and NAKs go.
    pub control: SocketAddr,
}

/// An error frame that a live receiver sent for a publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicationError {
    /// The publication.
    pub publication: PublicationId,
    /// Registration id of the destination it came from; -1 when not known.
    pub destination_id: i64,
    /// Session of the publication.
    pub session_id: i32,
    /// Stream of the publication.
    pub stream_id: i32,
    /// The receive endpoint that complains.
    pub receiver_id: i64,
    /// Its group tag, when the frame had one.
    pub group_tag: Option<i64>,
    /// Its address.
    pub source: SocketAddr,
    /// Error code of the frame (13 = image rejected).
    pub code: i32,
    /// Text of the frame.
    pub text: Box<str>,
}
