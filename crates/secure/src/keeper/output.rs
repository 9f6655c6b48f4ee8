// SPDX-License-Identifier: Apache-2.0
//! Outputs of the keeper.

use std::net::SocketAddr;

use super::{Job, Port};
use crate::derive::{Fingerprint, KeyId};
use crate::frame::Code;
use crate::provider::{Provider, Suite};
use crate::seal::{OpenKey, SealKey};

/// Reason why keys were rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// The interval has passed.
    Interval,
    /// A soft limit is reached.
    Limit,
    /// A receiver asked for it.
    Wish,
    /// A receiver left.
    Leave,
    /// A peer is trusted no longer, or for less.
    Trust,
    /// Local command, or another identity of this driver.
    Command,
    /// The wall clock jumped: another copy of this machine may have the same keys.
    Clock,
}

/// Reason why a peer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its `publish=` does not cover a stream; none for all streams of the channel.
    Publish(Option<i32>),
    /// Its `subscribe=` does not cover a stream; none for all streams of the channel.
    Subscribe(Option<i32>),
    /// The channel names its peers, and it is not among them.
    NotNamed,
    /// It asked with another channel tag.
    OtherChannel,
    /// It takes none of the allowed suites, or grants another.
    Suite,
    /// It claims the receiver id of another peer.
    ReceiverId,
    /// The stream belongs to another peer.
    Owned,
    /// A limit is reached.
    Limit,
}

/// Event for the log of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A link is up.
    LinkUp {
        /// Where.
        port: Port,
        /// Name of the peer.
        peer: String,
        /// Its address.
        address: SocketAddr,
        /// Suite of its feedback.
        suite: Suite,
    },
    /// A link is over.
    LinkDown {
        /// Where.
        port: Port,
        /// Name of the peer.
        peer: String,
    },
    /// Keys of a stream were rotated.
    KeyRotated {
        /// Where.
        port: Port,
        /// Session id.
        session_id: i32,
        /// Stream id.
        stream_id: i32,
        /// New epoch.
        epoch: u32,
        /// Reason.
        why: Rotation,
    },
    /// A peer with an unknown key.
    PeerUnknown {
        /// Where.
        port: Port,
        /// Its fingerprint, unproved in an announcement.
        fingerprint: Fingerprint,
        /// Its address.
        address: SocketAddr,
    },
    /// A trusted peer is refused.
    PeerRefused {
        /// Where.
        port: Port,
        /// Name of the peer.
        peer: String,
        /// Fingerprint of its key, unproved in an announcement.
        fingerprint: Fingerprint,
        /// Address of the channel that patterns are matched against.
        channel: SocketAddr,
        /// Reason.
        why: Refusal,
    },
    /// A peer refused a request.
    RequestRefused {
        /// Where.
        port: Port,
        /// Name of the peer.
        peer: String,
        /// Code.
        code: Code,
        /// Code and text, everything but printable ASCII escaped.
        text: String,
    },
}

impl Event {
    /// Returns where it happened.
    #[must_use]
    pub const fn port(&self) -> Port {
        match self {
            Self::LinkUp { port, .. }
            | Self::LinkDown { port, .. }
            | Self::KeyRotated { port, .. }
            | Self::PeerUnknown { port, .. }
            | Self::PeerRefused { port, .. }
            | Self::RequestRefused { port, .. } => *port,
        }
    }

    /// Returns true if a link came or went.
    #[must_use]
    pub const fn is_about_link(&self) -> bool {
        matches!(self, Self::LinkUp { .. } | Self::LinkDown { .. })
    }
}

/// Stream of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkStream {
    /// Where.
    pub port: Port,
    /// Link.
    pub link: u64,
    /// Session id.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
}

/// Output of the keeper.
#[derive(Debug)]
pub enum Output<P: Provider> {
    /// Send a datagram.
    Send {
        /// From where.
        port: Port,
        /// To where.
        to: SocketAddr,
        /// Datagram.
        bytes: Vec<u8>,
    },
    /// Seal a stream with this key from now on; the key before is to be dropped.
    SealStream {
        /// Send endpoint.
        port: Port,
        /// Session id.
        session_id: i32,
        /// Stream id.
        stream_id: i32,
        /// Epoch.
        epoch: u32,
        /// Key.
        key: Box<SealKey<P>>,
    },
    /// Seal feedback to a sender with this key from now on.
    SealBack {
        /// Receive transport.
        port: Port,
        /// Link.
        link: u64,
        /// Address of the sender.
        to: SocketAddr,
        /// Key.
        key: Box<SealKey<P>>,
    },
    /// Open a stream with this key.
    OpenStream {
        /// Receive transport.
        port: Port,
        /// Link to the sender.
        link: u64,
        /// Session id.
        session_id: i32,
        /// Stream id.
        stream_id: i32,
        /// Epoch.
        epoch: u32,
        /// Key.
        key: Box<OpenKey<P>>,
    },
    /// Open feedback of a receiver with this key.
    OpenBack {
        /// Send endpoint.
        port: Port,
        /// Link to the receiver.
        link: u64,
        /// Receiver id that its frames have to carry.
        receiver_id: i64,
        /// Address of the receiver; none until it is proved, so that nothing is led to it.
        address: Option<SocketAddr>,
        /// Key.
        key: Box<OpenKey<P>>,
    },
    /// Take feedback for a stream from a receiver, which has been granted its key.
    Grant(LinkStream),
    /// Take no more feedback for a stream from a receiver.
    Revoke(LinkStream),
    /// Send feedback for a stream over this link, too: the sender granted an installed key over it.
    StreamLink(LinkStream),
    /// Take the proved address of the other end of a link.
    Moved {
        /// Where.
        port: Port,
        /// Link.
        link: u64,
        /// Proved address.
        address: SocketAddr,
    },
    /// Expect frames of a link.
    Link {
        /// Where.
        port: Port,
        /// Link.
        link: u64,
    },
    /// Run a computation, and pass its result to [`Keeper::on_job_done`](super::Keeper::on_job_done).
    Job(Job<P>),
    /// Forget a link: it is over.
    Unlink {
        /// Where.
        port: Port,
        /// Link.
        link: u64,
    },
    /// Seal nothing more for a stream: it is over.
    DropStream {
        /// Send endpoint.
        port: Port,
        /// Session id.
        session_id: i32,
        /// Stream id.
        stream_id: i32,
    },
    /// Open nothing more with a key.
    Close {
        /// Where.
        port: Port,
        /// Key.
        id: KeyId,
    },
    /// Let the sender agent send an ANNOUNCE with a sealed SETUP of a stream.
    Announce(LinkStream),
    /// Report an event.
    Event(Event),
}
