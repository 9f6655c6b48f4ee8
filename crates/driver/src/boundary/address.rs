//! Where the datagrams of a send endpoint go.

use std::net::SocketAddr;

/// Where a send endpoint's datagrams go (spec/02 §2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The one peer the socket is connected to.
    Connected,
    /// One peer, named on each send, for a socket that is not connected.
    Address(SocketAddr),
}
