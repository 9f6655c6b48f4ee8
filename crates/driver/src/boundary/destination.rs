// SPDX-License-Identifier: Apache-2.0
//! Destinations of the datagrams of a send endpoint.

use std::net::SocketAddr;

use taran_core::counters::Counter;

/// Destinations of a send endpoint (docs/spec/wire.md §2.5, §2.9).
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    /// The single peer that the socket is connected to.
    Connected,
    /// A single peer, passed on each send; the socket is not connected.
    Address(SocketAddr),
    /// Destinations that commands add and remove; the counter `mdc-num-dest` holds their number.
    Manual(Counter),
    /// Receivers that send status messages to the control address; the counter `mdc-num-dest` holds their number.
    Dynamic(Counter),
    /// A peer per publication, learned from the setup-eliciting status message (`control-mode=response`).
    Learned,
}

/// A destination added by a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendDestination {
    /// Registration id: the correlation id of the command.
    pub(crate) id: i64,
    /// The address; `None` while the host name is unresolved.
    pub(crate) address: Option<SocketAddr>,
    /// True if the destination was given by host name, so that the name is resolved again after a silent interval.
    pub(crate) is_named: bool,
}
