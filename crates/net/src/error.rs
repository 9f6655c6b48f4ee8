// SPDX-License-Identifier: Apache-2.0
//! Errors of networks and transports, each with the address or option concerned.

use std::io;
use std::net::{IpAddr, SocketAddr};

/// An error of a [`Network`](crate::Network) or a [`Transport`](crate::Transport).
///
/// A full socket buffer, an interrupted call and a refused connection are not errors: the call reports zero bytes.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The system refused to create a socket.
    #[error("cannot open a UDP socket for {bind}: {source}")]
    Open {
        /// The address to bind to.
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
        /// The address that the socket is bound to, or will be bound to.
        bind: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The local address is in use, or is not an address of this machine.
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
    /// Joining a multicast group failed.
    #[error("cannot join multicast group {group} on interface {interface}: {source}")]
    Join {
        /// The group.
        group: IpAddr,
        /// The address of the interface to join on.
        interface: IpAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// A datagram was not sent, for a reason other than a full buffer.
    #[error("cannot send {length} bytes from {local} to {destination}: {source}")]
    Send {
        /// The local address.
        local: SocketAddr,
        /// The destination of the datagram.
        destination: SocketAddr,
        /// Length of the datagram in bytes.
        length: usize,
        /// The system's reason.
        source: io::Error,
    },
    /// A datagram is longer than the transport sends ([`Capabilities::max_datagram`](crate::Capabilities), with what
    /// the layers add).
    #[error(
        "cannot send a datagram of {length} bytes from {local} to {destination}: the longest one is {max} bytes, use a \
         smaller mtu"
    )]
    TooLong {
        /// The local address.
        local: SocketAddr,
        /// The destination of the datagram.
        destination: SocketAddr,
        /// Length of the datagram in bytes, with what the layers added.
        length: usize,
        /// Length of the longest datagram in bytes.
        max: usize,
    },
    /// A transmit named no destination, and the transport has no peer.
    #[error("no destination given for a datagram on the unconnected transport at {local}")]
    NoDestination {
        /// The local address.
        local: SocketAddr,
    },
    /// Receiving failed, for a reason other than an empty buffer.
    #[error("cannot receive at {local}: {source}")]
    Receive {
        /// The local address.
        local: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// A backend cannot be used by this process: it is not part of the build or of the network, or the machine lacks
    /// what it needs.
    #[error("network backend {backend} is not available: {reason}; {remedy}")]
    Unavailable {
        /// Name of the backend.
        backend: Box<str>,
        /// The missing part, right or memory.
        reason: Box<str>,
        /// Remedy that makes the backend available.
        remedy: Box<str>,
    },
    /// A backend cannot take over an interface or device.
    #[error("network backend {backend} cannot attach to {interface}: {source}; {remedy}")]
    Attach {
        /// Name of the backend.
        backend: &'static str,
        /// The interface or device.
        interface: Box<str>,
        /// The system's reason.
        source: io::Error,
        /// Remedy that makes the interface usable, with its holder if that is known.
        remedy: Box<str>,
    },
    /// A query of the system (interfaces, limits, addresses) failed.
    #[error("cannot find out {what}: {source}")]
    Query {
        /// The subject of the query.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

taran_core::debug_is_display!(NetError);

impl NetError {
    /// Returns the system's error, if the error comes from the system.
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
            | Self::Attach { source, .. }
            | Self::Query { source, .. } => Some(source),
            Self::NoDestination { .. } | Self::TooLong { .. } | Self::Unavailable { .. } => None,
        }
    }

    /// Returns true if the requested address or port belongs to another socket.
    #[must_use]
    pub fn is_address_in_use(&self) -> bool {
        self.io()
            .is_some_and(|error| error.kind() == io::ErrorKind::AddrInUse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_backends_name_backend_cause_and_remedy() {
        let unavailable = NetError::Unavailable {
            backend: "xdp".into(),
            reason: "this process lacks CAP_NET_RAW".into(),
            remedy: "setcap cap_net_raw+ep FILE".into(),
        };
        assert_eq!(
            unavailable.to_string(),
            "network backend xdp is not available: this process lacks CAP_NET_RAW; setcap cap_net_raw+ep FILE"
        );
        let attach = NetError::Attach {
            backend: "xdp",
            interface: "eth0".into(),
            source: io::ErrorKind::ResourceBusy.into(),
            remedy: "detach program 42".into(),
        };
        assert_eq!(
            attach.to_string(),
            "network backend xdp cannot attach to eth0: resource busy; detach program 42"
        );
        assert!(unavailable.io().is_none() && attach.io().is_some());
        assert!(!attach.is_address_in_use(), "no other port helps");
    }
}
