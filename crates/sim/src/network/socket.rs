//! What a host knows of an open transport.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use taran_net::{BufferLengths, BufferLimits, SocketSpec};

use super::host::HostId;

/// Buffer lengths as a Linux machine has them.
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

/// What a datagram takes of a receive buffer beyond its bytes.
const OVERHEAD: usize = 512;

/// An open transport.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) host: HostId,
    /// As asked for, with the port that was given.
    pub(super) bind: SocketAddr,
    /// As seen from outside: a wildcard becomes an address once there is a peer.
    pub(super) local: SocketAddr,
    pub(super) peer: Option<SocketAddr>,
    pub(super) group: Option<IpAddr>,
    /// The address that groups are sent to from.
    pub(super) group_source: Option<IpAddr>,
    pub(super) reuse_address: bool,
    pub(super) lengths: BufferLengths,
    /// Datagrams that found no room.
    pub(super) overflowed: u32,
    queue: VecDeque<Queued>,
    used: usize,
}

/// A datagram that arrived.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) source: SocketAddr,
    pub(super) timestamp_ns: i64,
    pub(super) bytes: Vec<u8>,
    /// It is not what its source has sent.
    pub(super) is_damaged: bool,
}

/// Like Linux: twice what was asked for, up to the limit.
fn granted(asked: usize, max: usize) -> usize {
    max.min(asked.saturating_mul(2))
}

impl Socket {
    pub(super) fn new(host: HostId, bind: SocketAddr, spec: &SocketSpec) -> Self {
        let (default, max) = (LIMITS.default, LIMITS.max);
        let multicast = spec.multicast.as_ref();
        Self {
            host,
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

    /// A longer receive buffer, as far as that goes.
    pub(super) fn grow(&mut self, bytes: usize) {
        let length = granted(bytes, LIMITS.max.receive);
        self.lengths.receive = self.lengths.receive.max(length);
    }

    /// True if a socket asked for at `bind` cannot be had beside this one.
    pub(super) fn conflicts_with(&self, bind: SocketAddr, reuse_address: bool) -> bool {
        let overlap = self.bind.ip() == bind.ip()
            || accepts(self.bind.ip(), bind.ip())
            || accepts(bind.ip(), self.bind.ip());
        self.bind.port() == bind.port() && overlap && !(self.reuse_address && reuse_address)
    }

    /// How well a datagram fits this socket, better ones being greater; `None` if it does not.
    pub(super) fn fit(&self, source: SocketAddr, destination: SocketAddr) -> Option<u32> {
        let addressed = self.bind.port() == destination.port()
            && (self.local.ip() == destination.ip() || accepts(self.local.ip(), destination.ip()));
        let heard = self.peer.is_none_or(|peer| peer == source);
        (addressed && heard).then(|| {
            u32::from(self.peer.is_some()) * 2 + u32::from(!self.bind.ip().is_unspecified())
        })
    }

    /// True if a datagram to a group is for this socket.
    pub(super) fn hears_group(&self, source: SocketAddr, destination: SocketAddr) -> bool {
        self.bind.port() == destination.port()
            && self.group == Some(destination.ip())
            && self.peer.is_none_or(|peer| peer == source)
    }

    /// Queues a datagram; gives it back if the buffer is full.
    pub(super) fn deliver(&mut self, datagram: Queued) -> Result<(), Queued> {
        let charge = datagram.bytes.len() + OVERHEAD;
        if self.used + charge > self.lengths.receive {
            return Err(datagram);
        }
        self.used += charge;
        self.queue.push_back(datagram);
        Ok(())
    }

    /// Hands the oldest datagram to `take` and removes it if that says so.
    pub(super) fn take(&mut self, take: impl FnOnce(&Queued) -> bool) -> Option<Queued> {
        if !take(self.queue.front()?) {
            return None;
        }
        let taken = self.queue.pop_front()?;
        self.used -= taken.bytes.len() + OVERHEAD;
        Some(taken)
    }
}

/// True if `bound` is a wildcard that stands for `address`. That of IPv6 stands for both families.
fn accepts(bound: IpAddr, address: IpAddr) -> bool {
    bound.is_unspecified() && (bound.is_ipv6() || address.is_ipv4())
}
