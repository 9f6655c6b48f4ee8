// SPDX-License-Identifier: Apache-2.0
//! The kernel's UDP sockets (Linux).
//!
//! Reading order: `open` creates a socket from a [`SocketSpec`], `transport` moves
//! batches through it, `segment_limiter` splits a batch into messages for the kernel, `send` and `receive` build the
//! message headers, `call` makes the system calls, `poller` finds and waits for readable sockets. Segmentation (GSO, `UDP_SEGMENT`) and coalescing (GRO, `UDP_GRO`)
//! are used if the kernel supports them; if it does not, or rejects them for a route, the same datagrams are sent one
//! by one.

mod address;
mod call;
mod control;
mod interfaces;
mod open;
mod option;
pub(crate) mod poller;
mod receive;
mod segment_limiter;
mod send;
#[cfg(test)]
mod tests;
mod transport;

use std::net::{Ipv4Addr, SocketAddr};

use crate::{
    AgentRole, BufferLengths, BufferLimits, Interface, NetError, Network, Poller, SocketSpec,
    Transport,
};

/// The machine's own network.
#[derive(Clone, Copy, Debug)]
pub struct SocketNetwork {
    offload: bool,
}

impl SocketNetwork {
    /// Name of this backend.
    pub const BACKEND: &'static str = "sockets";

    /// Uses segmentation and coalescing if the kernel supports them.
    #[must_use]
    pub fn new() -> Self {
        Self { offload: true }
    }

    /// Sends and receives datagrams one by one, regardless of the kernel and the [`SocketSpec`].
    #[must_use]
    pub fn without_offload() -> Self {
        Self { offload: false }
    }
}

impl Default for SocketNetwork {
    fn default() -> Self {
        Self::new()
    }
}

impl Network for SocketNetwork {
    fn backend(&self) -> &'static str {
        Self::BACKEND
    }

    fn open(&mut self, spec: &SocketSpec) -> Result<Box<dyn Transport>, NetError> {
        spec.check_backend(Self::BACKEND)?;
        Ok(Box::new(open::open(spec, self.offload && spec.offload)?))
    }

    fn poller(&mut self, _agent: AgentRole) -> Result<Box<dyn Poller>, NetError> {
        Ok(Box::new(poller::SocketPoller::new()?))
    }

    fn buffer_limits(&mut self) -> Result<BufferLimits, NetError> {
        let bind = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let socket = open::new_socket(bind)?;
        let default = open::buffer_lengths(&socket)?;
        for option in [option::SEND_BUFFER, option::RECEIVE_BUFFER] {
            // A system without a limit may reject the request, which leaves the default.
            let _ = option::set(&socket, option, i32::MAX);
        }
        let max = open::buffer_lengths(&socket)?;
        let max = BufferLengths {
            send: max.send.max(default.send),
            receive: max.receive.max(default.receive),
        };
        Ok(BufferLimits { default, max })
    }

    fn interfaces(&mut self) -> Result<Vec<Interface>, NetError> {
        interfaces::interfaces()
    }
}
