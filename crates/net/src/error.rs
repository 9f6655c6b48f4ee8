//! What can go wrong in a network, with the address or the option that it went wrong for.

use std::io;
use std::net::{IpAddr, SocketAddr};

/// An error of a [`Network`](crate::Network) or a [`Transport`](crate::Transport).
///
/// A full socket buffer, an interrupted call and a refused connection are not errors: they are zero bytes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The system gave no socket.
    #[error("cannot open a UDP socket for {bind}: {source}")]
    Open {
        /// The address it was to be bound to.
        bind: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// A socket option was refused.
    #[error("cannot set {option}={value} on the UDP socket for {bind}: {source}")]
    Option {
        /// The option's name as the system spells it.
        option: &'static str,
        /// The value that was asked for.
        value: i64,
        /// The address that the socket is, or was to be, bound to.
        bind: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The local address cannot be had: in use, or not of this machine.
    #[error("cannot bind a UDP socket to {address}: {source}")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The peer's address was refused.
    #[error("cannot connect the UDP socket at {local} to {peer}: {source}")]
    Connect {
        /// The local address.
        local: SocketAddr,
        /// The peer's address.
        peer: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// A multicast group was not joined.
    #[error("cannot join multicast group {group} on interface {interface}: {source}")]
    Join {
        /// The group.
        group: IpAddr,
        /// The address of the interface it was to be joined on.
        interface: IpAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// A datagram was not sent, for another reason than a full buffer.
    #[error("cannot send {length} bytes from {local} to {destination}: {source}")]
    Send {
        /// The local address.
        local: SocketAddr,
        /// Where the datagram was to go.
        destination: SocketAddr,
        /// Its length.
        length: usize,
        /// The system's reason.
        source: io::Error,
    },
    /// A transmit named no destination, and the transport has no peer.
    #[error("no destination given for a datagram on the unconnected transport at {local}")]
    NoDestination {
        /// The local address.
        local: SocketAddr,
    },
    /// Nothing could be received, for another reason than that nothing was there.
    #[error("cannot receive at {local}: {source}")]
    Receive {
        /// The local address.
        local: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The system did not say which interfaces or limits it has.
    #[error("cannot find out {what}: {source}")]
    Query {
        /// What was asked.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

impl NetError {
    /// The system's reason, where the system was asked.
    #[must_use]
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            Self::Open { source, .. }
            | Self::Option { source, .. }
            | Self::Bind { source, .. }
            | Self::Connect { source, .. }
            | Self::Join { source, .. }
            | Self::Send { source, .. }
            | Self::Receive { source, .. }
            | Self::Query { source, .. } => Some(source),
            Self::NoDestination { .. } => None,
        }
    }

    /// True if a port or an address was asked for that another socket has.
    #[must_use]
    pub fn is_address_in_use(&self) -> bool {
        self.io()
            .is_some_and(|error| error.kind() == io::ErrorKind::AddrInUse)
    }
}
