// SPDX-License-Identifier: Apache-2.0
//! State of an open transport on the network side.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use taran_net::{AgentRole, BufferLengths, BufferLimits, SocketSpec};

use super::host::HostId;
use crate::process::Lease;

/// Buffer limits of a typical Linux host.
pub(super) const LIMITS: BufferLimits = BufferLimits {
    default: BufferLengths {
        send: 212_992,
        receive: 212_992,
    },
    max: BufferLengths {
        send: 16 * 1_024 * 1_024,
        receive: 16 * 1_024 * 1_024,
    },
};

/// Bytes of receive buffer charged per datagram in addition to its payload.
const OVERHEAD: usize = 512;

/// An open transport.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) host: HostId,
    /// The agent that uses it.
    pub(super) agent: AgentRole,
    /// The process that it belongs to.
    pub(super) lease: Lease,
    /// Requested address, with the assigned port.
    pub(super) bind: SocketAddr,
    /// Address as seen by peers: a wildcard address is replaced once there is a peer.
    pub(super) local: SocketAddr,
    pub(super) peer: Option<SocketAddr>,
    pub(super) group: Option<IpAddr>,
    /// Source address for multicast datagrams.
    pub(super) group_source: Option<IpAddr>,
    pub(super) reuse_address: bool,
    pub(super) lengths: BufferLengths,
    /// Datagrams dropped because the queue was full.
    pub(super) overflowed: u32,
    queue: VecDeque<Queued>,
    used: usize,
}

/// A datagram in the receive queue.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) source: SocketAddr,
    pub(super) timestamp_ns: i64,
    pub(super) bytes: Vec<u8>,
    /// The datagram was damaged or forged.
    pub(super) is_damaged: bool,
}

/// As on Linux: twice the requested size, up to the limit.
fn granted(asked: usize, max: usize) -> usize {
    max.min(asked.saturating_mul(2))
}

impl Socket {
    pub(super) fn new(host: HostId, bind: SocketAddr, spec: &SocketSpec, lease: &Lease) -> Self {
        let (default, max) = (LIMITS.default, LIMITS.max);
        let multicast = spec.multicast.as_ref();
        Self {
            host,
            agent: spec.agent,
            lease: lease.clone(),
            bind,
            local: bind,
            peer: None,
            group: multicast.and_then(|multicast| multicast.join),
            group_source: multicast.map(|multicast| multicast.interface),
            reuse_address: spec.reuse_address,
            lengths: BufferLengths {
                send: spec
                    .send_buffer
                    .map_or(default.send, |asked| granted(asked, max.send)),
                receive: spec
                    .receive_buffer
                    .map_or(default.receive, |asked| granted(asked, max.receive)),
            },
            overflowed: 0,
            queue: VecDeque::new(),
            used: 0,
        }
    }

    /// Enlarges the receive buffer, up to the limit.
    pub(super) fn grow(&mut self, bytes: usize) {
        let length = granted(bytes, LIMITS.max.receive);
        self.lengths.receive = self.lengths.receive.max(length);
    }

    /// Returns true if a socket cannot be bound to `bind` beside this one.
    pub(super) fn conflicts_with(&self, bind: SocketAddr, reuse_address: bool) -> bool {
        let overlap = self.bind.ip() == bind.ip()
            || accepts(self.bind.ip(), bind.ip())
            || accepts(bind.ip(), self.bind.ip());
        self.bind.port() == bind.port() && overlap && !(self.reuse_address && reuse_address)
    }

    /// Returns how specifically this socket matches a datagram (larger is more specific), or `None` if it does not
    /// match.
    pub(super) fn match_score(&self, source: SocketAddr, destination: SocketAddr) -> Option<u32> {
        let addressed = self.bind.port() == destination.port()
            && (self.local.ip() == destination.ip() || accepts(self.local.ip(), destination.ip()));
        let from_peer = self.peer.is_none_or(|peer| peer == source);
        (addressed && from_peer).then(|| {
            u32::from(self.peer.is_some()) * 2 + u32::from(!self.bind.ip().is_unspecified())
        })
    }

    /// Returns true if this socket receives a multicast datagram.
    pub(super) fn receives_group(&self, source: SocketAddr, destination: SocketAddr) -> bool {
        self.bind.port() == destination.port()
            && self.group == Some(destination.ip())
            && self.peer.is_none_or(|peer| peer == source)
    }

    /// Returns true if a datagram waits.
    pub(super) fn has_arrivals(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Queues a datagram; returns it if the buffer is full.
    pub(super) fn deliver(&mut self, datagram: Queued) -> Result<(), Queued> {
        let charge = datagram.bytes.len() + OVERHEAD;
        if self.used + charge > self.lengths.receive {
            return Err(datagram);
        }
        self.used += charge;
        self.queue.push_back(datagram);
        Ok(())
    }

    /// Passes the oldest datagram to `take` and removes it if `take` returns true.
    pub(super) fn take(&mut self, take: impl FnOnce(&Queued) -> bool) -> Option<Queued> {
        if !take(self.queue.front()?) {
            return None;
        }
        let taken = self.queue.pop_front()?;
        self.used -= taken.bytes.len() + OVERHEAD;
        Some(taken)
    }
}

/// Returns true if `bound` is a wildcard that covers `address`. The IPv6 wildcard covers both families.
fn accepts(bound: IpAddr, address: IpAddr) -> bool {
    bound.is_unspecified() && (bound.is_ipv6() || address.is_ipv4())
}
