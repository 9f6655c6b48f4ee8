// SPDX-License-Identifier: Apache-2.0
//! Messages between the conductor and the layers of secured sockets.

use std::net::SocketAddr;

use taran_secure::derive::{Fingerprint, KeyId};
use taran_secure::keeper::{Output, Port};
use taran_secure::provider::DefaultProvider;
use taran_secure::seal::{OpenKey, SealKey};

/// Provider of all cryptographic primitives of a driver.
pub(super) type P = DefaultProvider;

/// Session id and stream id.
pub(super) type Stream = (i32, i32);

/// Message of the conductor to the layer of a port.
#[derive(Debug)]
pub(super) enum KeyUpdate {
    /// Send a datagram of a handshake or a link.
    Send {
        /// To where.
        to: SocketAddr,
        /// Datagram.
        bytes: Vec<u8>,
    },
    /// Seal a stream with this key.
    SealStream {
        /// Stream.
        stream: Stream,
        /// Epoch of the key.
        epoch: u32,
        /// Jumps of the wall clock before the key was drawn.
        jumps: u64,
        /// Key.
        key: Box<SealKey<P>>,
    },
    /// Seal nothing more for a stream.
    DropStream(Stream),
    /// Seal feedback over a link with this key.
    SealBack {
        /// Link.
        link: u64,
        /// Address of the sender.
        to: SocketAddr,
        /// Jumps of the wall clock before the key was drawn.
        jumps: u64,
        /// Key.
        key: Box<SealKey<P>>,
    },
    /// Open a stream with this key.
    OpenStream {
        /// Link that granted it.
        link: u64,
        /// Stream.
        stream: Stream,
        /// Key.
        key: Box<OpenKey<P>>,
    },
    /// Open feedback with this key.
    OpenBack {
        /// Link.
        link: u64,
        /// Receiver id that its frames have to carry.
        receiver_id: i64,
        /// Proved address of the receiver.
        address: Option<SocketAddr>,
        /// Key.
        key: Box<OpenKey<P>>,
    },
    /// Take feedback for a stream over a link.
    Grant {
        /// Link.
        link: u64,
        /// Stream.
        stream: Stream,
    },
    /// Take no more feedback for a stream over a link.
    Revoke {
        /// Link.
        link: u64,
        /// Stream.
        stream: Stream,
    },
    /// Send feedback for a stream over a link.
    StreamLink {
        /// Link.
        link: u64,
        /// Stream.
        stream: Stream,
    },
    /// The other end of a link has this proved address.
    Moved {
        /// Link.
        link: u64,
        /// Address.
        address: SocketAddr,
    },
    /// Expect frames of a link.
    Link(u64),
    /// Forget a link.
    Unlink(u64),
    /// Open nothing more with a key.
    Close(KeyId),
    /// Announce another identity of this driver.
    Identity(Fingerprint, u64),
    /// Elicit a SETUP for the receiver at the other end of a link.
    Announce {
        /// Link.
        link: u64,
        /// Stream.
        stream: Stream,
    },
}

impl KeyUpdate {
    /// Returns the message for an output of the keeper, and its port. `jumps` is the number of jumps of the wall clock under
    /// which the keeper draws keys.
    pub(super) fn of(output: Output<P>, jumps: u64) -> Option<(Port, Self)> {
        Some(match output {
            Output::Send { port, to, bytes } => (port, Self::Send { to, bytes }),
            Output::SealStream {
                port,
                session_id,
                stream_id,
                epoch,
                key,
            } => {
                let stream = (session_id, stream_id);
                let update = Self::SealStream {
                    stream,
                    epoch,
                    jumps,
                    key,
                };
                (port, update)
            }
            Output::SealBack {
                port,
                link,
                to,
                key,
            } => {
                let update = Self::SealBack {
                    link,
                    to,
                    jumps,
                    key,
                };
                (port, update)
            }
            Output::OpenStream {
                port,
                link,
                session_id,
                stream_id,
                key,
                ..
            } => {
                let stream = (session_id, stream_id);
                (port, Self::OpenStream { link, stream, key })
            }
            Output::OpenBack {
                port,
                link,
                receiver_id,
                address,
                key,
            } => {
                let update = Self::OpenBack {
                    link,
                    receiver_id,
                    address,
                    key,
                };
                (port, update)
            }
            Output::DropStream {
                port,
                session_id,
                stream_id,
            } => (port, Self::DropStream((session_id, stream_id))),
            Output::Grant(of) => {
                let (link, stream) = (of.link, (of.session_id, of.stream_id));
                (of.port, Self::Grant { link, stream })
            }
            Output::Revoke(of) => {
                let (link, stream) = (of.link, (of.session_id, of.stream_id));
                (of.port, Self::Revoke { link, stream })
            }
            Output::StreamLink(of) => {
                let (link, stream) = (of.link, (of.session_id, of.stream_id));
                (of.port, Self::StreamLink { link, stream })
            }
            Output::Announce(of) => {
                let (link, stream) = (of.link, (of.session_id, of.stream_id));
                (of.port, Self::Announce { link, stream })
            }
            Output::Moved {
                port,
                link,
                address,
            } => (port, Self::Moved { link, address }),
            Output::Link { port, link } => (port, Self::Link(link)),
            Output::Unlink { port, link } => (port, Self::Unlink(link)),
            Output::Close { port, id } => (port, Self::Close(id)),
            Output::Event(_) | Output::Job(_) => return None,
        })
    }
}

/// Message of a layer to the conductor.
#[derive(Debug)]
pub(super) struct PortInput {
    /// Port that it came to.
    pub(super) port: Port,
    /// Content.
    pub(super) input: Input,
}

/// Content of a [`PortInput`].
#[derive(Debug)]
pub(super) enum Input {
    /// A frame of a handshake or link, or an announcement that no key opens.
    Datagram {
        /// From where.
        source: SocketAddr,
        /// Datagram.
        bytes: Box<[u8]>,
    },
    /// A sealed datagram under a key that is not known.
    UnknownKey {
        /// From where.
        source: SocketAddr,
        /// Key.
        id: KeyId,
        /// Length of the datagram.
        length: usize,
    },
    /// The first datagram under a key was opened.
    FirstOpen(KeyId),
    /// The newest authentic feedback of a link came from another address.
    OtherAddress {
        /// Link.
        link: u64,
        /// Address.
        source: SocketAddr,
    },
    /// The agent asks a control address for announcements, or has something for a neighbour.
    SetupRequest {
        /// Control address, or address of the neighbour.
        control: SocketAddr,
    },
    /// A receiver named the session of a response to the requests of a stream.
    ResponseSetup {
        /// Link to the receiver.
        link: u64,
        /// Stream of the requests.
        stream: Stream,
        /// Session of the response.
        session_id: i32,
    },
    /// A datagram was not opened; told once a second.
    FailedOpen {
        /// From where.
        source: SocketAddr,
    },
    /// So many datagrams under a key of a stream were not opened that another epoch is wanted.
    WantsEpoch(KeyId),
    /// The key of a stream has reached a soft limit.
    WantsRotation(Stream),
    /// A plain frame of Aeron arrived.
    Plain {
        /// From where.
        source: SocketAddr,
        /// Type of its first frame.
        frame_type: u16,
    },
}
