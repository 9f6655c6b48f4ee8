//! Where the datagrams of a send endpoint go.

use std::net::SocketAddr;

use taran_core::counters::Counter;

/// Where a send endpoint's datagrams go (docs/spec/wire.md §2.5, §2.9).
#[derive(Clone, Debug)]
pub enum Destination {
    /// The one peer the socket is connected to.
    Connected,
    /// One peer, named on each send, for a socket that is not connected.
    Address(SocketAddr),
    /// As many as commands add; their number is in this counter, `mdc-num-dest`.
    Manual(Counter),
    /// The receivers that announce themselves; their number is in this counter, `mdc-num-dest`.
    Dynamic(Counter),
    /// Each publication has a peer of its own, which it learns from who asks for its SETUP (`control-mode=response`).
    Learned,
}

/// A destination that a command adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendDestination {
    /// Registration id of the command.
    pub id: i64,
    /// Where it is; `None` as long as its name has no address.
    pub address: Option<SocketAddr>,
    /// It was given by name, so that it may move: to be asked for again when it is silent.
    pub is_named: bool,
}
