//! One end of the wire.

use std::net::SocketAddr;

use taran_net::{
    BufferLengths, Capabilities, NetError, ReceiveBatch, SocketSpec, Transmit, Transport,
};

use super::SimNetwork;
use super::ports::SocketId;

/// The hop limit of groups where none was asked for.
const DEFAULT_TTL: u8 = 1;

/// An open transport, which is closed on drop.
#[derive(Debug)]
pub(super) struct SimTransport {
    network: SimNetwork,
    socket: SocketId,
    local: SocketAddr,
    peer: Option<SocketAddr>,
    coalesces: bool,
    timestamps: bool,
    multicast_ttl: u8,
}

impl SimTransport {
    pub(super) fn new(network: SimNetwork, socket: SocketId, spec: &SocketSpec) -> Self {
        let local = network.lock().socket(socket).local;
        let multicast = spec.multicast.as_ref();
        Self {
            network,
            socket,
            local,
            peer: None,
            coalesces: spec.offload,
            timestamps: spec.receive_timestamps,
            multicast_ttl: multicast.map_or(0, |multicast| multicast.ttl.unwrap_or(DEFAULT_TTL)),
        }
    }
}

impl Transport for SimTransport {
    fn send(&mut self, batch: &[Transmit<'_>]) -> Result<usize, NetError> {
        let mut world = self.network.lock();
        let mut accepted = 0;
        for transmit in batch {
            for datagram in transmit.datagrams() {
                match world.send(self.socket, transmit.destination, datagram) {
                    Ok(true) => accepted += datagram.len(),
                    Err(error) if accepted == 0 => return Err(error),
                    Ok(false) | Err(_) => return Ok(accepted),
                }
            }
        }
        Ok(accepted)
    }

    fn receive(&mut self, batch: &mut ReceiveBatch) -> Result<usize, NetError> {
        batch.clear();
        let mut world = self.network.lock();
        while world.take(self.socket, |datagram| {
            let timestamp = self.timestamps.then_some(datagram.timestamp_ns);
            if self.coalesces {
                batch.push_coalesced(datagram.source, timestamp, &datagram.bytes)
            } else {
                batch.push(datagram.source, timestamp, &datagram.bytes)
            }
        }) {}
        Ok(batch.datagram_count())
    }

    fn connect(&mut self, peer: SocketAddr) -> Result<(), NetError> {
        self.local = self.network.lock().connect(self.socket, peer)?;
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
        Capabilities {
            max_segments: usize::MAX,
            coalesces: self.coalesces,
            receive_timestamps: self.timestamps,
        }
    }

    fn buffer_lengths(&self) -> BufferLengths {
        self.network.lock().socket(self.socket).lengths
    }

    fn multicast_ttl(&self) -> u8 {
        self.multicast_ttl
    }
}

impl Drop for SimTransport {
    fn drop(&mut self) {
        self.network.lock().close(self.socket);
    }
}
