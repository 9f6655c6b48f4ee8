// SPDX-License-Identifier: Apache-2.0
//! The simulated transport.

use std::net::SocketAddr;

use taran_net::{
    BufferLengths, Capabilities, NetError, ReceiveBatch, Received, SocketSpec, Transmit, Transport,
};

use super::SimNetwork;
use super::host::BACKEND;
use super::ports::SocketId;
use super::socket::LIMITS;
use crate::process::Lease;

/// Multicast TTL if none was requested.
const DEFAULT_TTL: u8 = 1;

/// An open transport, closed on drop.
#[derive(Debug)]
pub(super) struct SimTransport {
    inbox: Inbox,
    local: SocketAddr,
    peer: Option<SocketAddr>,
    multicast_ttl: u8,
    /// Staging buffer of `receive_parts`.
    staging: ReceiveBatch,
}

impl SimTransport {
    pub(super) fn new(
        network: SimNetwork,
        socket: SocketId,
        spec: &SocketSpec,
        lease: Lease,
    ) -> Self {
        let local = network.lock().socket(socket).local;
        let multicast = spec.multicast.as_ref();
        Self {
            inbox: Inbox {
                network,
                socket,
                lease,
                coalesces: spec.offload,
                timestamps: spec.receive_timestamps,
            },
            local,
            peer: None,
            multicast_ttl: multicast.map_or(0, |multicast| multicast.ttl.unwrap_or(DEFAULT_TTL)),
            staging: ReceiveBatch::new(1),
        }
    }
}

impl SimTransport {
    /// Checks that the process of the transport is alive.
    fn check_receive(&self) -> Result<(), NetError> {
        let checked = self.inbox.lease.check();
        checked.map_err(|source| NetError::Receive {
            local: self.local,
            source,
        })
    }
}

/// Receive side of a transport.
#[derive(Debug)]
struct Inbox {
    network: SimNetwork,
    socket: SocketId,
    /// The right to use the socket. Once it is revoked, the socket is closed and its id may be that of another.
    lease: Lease,
    coalesces: bool,
    timestamps: bool,
}

impl Inbox {
    fn take(&self, batch: &mut ReceiveBatch) {
        batch.clear();
        let mut state = self.network.lock();
        while state.take(self.socket, |datagram| {
            let timestamp = self.timestamps.then_some(datagram.timestamp_ns);
            if self.coalesces {
                batch.push_coalesced(datagram.source, timestamp, &datagram.bytes)
            } else {
                batch.push(datagram.source, timestamp, &datagram.bytes)
            }
        }) {}
    }
}

impl Transport for SimTransport {
    fn send(&mut self, batch: &[Transmit<'_>]) -> Result<usize, NetError> {
        if let (Err(source), Some(first)) = (self.inbox.lease.check(), batch.first()) {
            return Err(NetError::Send {
                local: self.local,
                destination: first.destination.unwrap_or(self.local),
                length: first.payload.len(),
                source,
            });
        }
        let mut state = self.inbox.network.lock();
        let mut accepted = 0;
        for transmit in batch {
            for datagram in transmit.datagrams() {
                match state.send(self.inbox.socket, transmit.destination, datagram) {
                    Ok(true) => accepted += datagram.len(),
                    Err(error) if accepted == 0 => return Err(error),
                    Ok(false) | Err(_) => return Ok(accepted),
                }
            }
        }
        Ok(accepted)
    }

    fn receive(&mut self, batch: &mut ReceiveBatch) -> Result<usize, NetError> {
        self.check_receive()?;
        self.inbox.take(batch);
        Ok(batch.datagram_count())
    }

    fn receive_parts(
        &mut self,
        head: &mut [u8],
        rest: &mut [u8],
    ) -> Result<Option<Received>, NetError> {
        self.check_receive()?;
        self.inbox.take(&mut self.staging);
        let run = self.staging.datagram_runs().next();
        if run.is_some() {
            self.inbox.network.lock().counts.direct_receives += 1;
        }
        Ok(run.map(|run| {
            let (first, behind) = run.payload.split_at(head.len().min(run.payload.len()));
            head[..first.len()].copy_from_slice(first);
            rest[..behind.len()].copy_from_slice(behind);
            Received {
                source: run.source,
                length: run.payload.len(),
                stride: run.stride,
                timestamp_ns: run.timestamp_ns,
            }
        }))
    }

    fn connect(&mut self, peer: SocketAddr) -> Result<(), NetError> {
        self.inbox
            .lease
            .check()
            .map_err(|source| NetError::Connect {
                local: self.local,
                peer,
                source,
            })?;
        self.local = self.inbox.network.lock().connect(self.inbox.socket, peer)?;
        self.peer = Some(peer);
        Ok(())
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    fn local_address(&self) -> SocketAddr {
        self.local
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::PLAIN
            .with_backend(BACKEND)
            .with_max_segments(usize::MAX)
            .with_coalescing(self.inbox.coalesces)
            .with_receive_timestamps(self.inbox.timestamps)
            .with_parts(true)
    }

    fn grow_receive_buffer(&mut self, bytes: usize) -> Result<(), NetError> {
        self.check_receive()?;
        let mut state = self.inbox.network.lock();
        state.socket(self.inbox.socket).grow(bytes);
        Ok(())
    }

    fn buffer_lengths(&self) -> BufferLengths {
        if self.inbox.lease.is_revoked() {
            return LIMITS.default;
        }
        self.inbox.network.lock().socket(self.inbox.socket).lengths
    }

    fn overflowed(&self) -> Option<u32> {
        if self.inbox.lease.is_revoked() {
            return None;
        }
        let mut state = self.inbox.network.lock();
        Some(state.socket(self.inbox.socket).overflowed)
    }

    fn multicast_ttl(&self) -> u8 {
        self.multicast_ttl
    }
}

impl Drop for SimTransport {
    fn drop(&mut self) {
        if !self.inbox.lease.is_revoked() {
            self.inbox.network.lock().close(self.inbox.socket);
        }
    }
}
