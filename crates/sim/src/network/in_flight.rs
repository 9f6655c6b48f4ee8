// SPDX-License-Identifier: Apache-2.0
//! The path of a datagram: sending with faults, arrival in a socket's queue.

use std::cmp::Reverse;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use taran_core::clock::saturating_nanos;
use taran_net::NetError;

use super::faults::{LinkFaults, happens, up_to};
use super::forge::Recorded;
use super::host::HostId;
use super::ports::SocketId;
use super::socket::Queued;
use super::state::{NetworkState, can_address};

/// Maximum payload of UDP over IPv4.
const MAX_DATAGRAM_LENGTH: usize = 65_507;

/// A datagram in flight. Datagrams with the same arrival time arrive in sending order.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InFlight {
    pub(super) arrival: i64,
    sequence: u64,
    from: HostId,
    to: HostId,
    source: SocketAddr,
    destination: SocketAddr,
    bytes: Vec<u8>,
    is_damaged: bool,
}

/// A datagram that is being sent.
struct Outgoing<'p> {
    from: HostId,
    source: SocketAddr,
    destination: SocketAddr,
    payload: &'p [u8],
    is_forged: bool,
}

impl NetworkState {
    /// Accepts a datagram from a socket. Returns false if the send buffer is full.
    pub(super) fn send(
        &mut self,
        id: SocketId,
        destination: Option<SocketAddr>,
        payload: &[u8],
    ) -> Result<bool, NetError> {
        let host = self.socket(id).host;
        let accepted = self.accept(id, destination, payload);
        self.traffic[host.0].on_send(payload, matches!(accepted, Ok(true)));
        accepted
    }

    fn accept(
        &mut self,
        id: SocketId,
        destination: Option<SocketAddr>,
        payload: &[u8],
    ) -> Result<bool, NetError> {
        let socket = self.socket(id);
        let (host, local, group_source) = (socket.host, socket.local, socket.group_source);
        let Some(destination) = destination.or(socket.peer) else {
            return Err(NetError::NoDestination { local });
        };
        let length = payload.len();
        if length > MAX_DATAGRAM_LENGTH {
            return Err(NetError::TooLong {
                local,
                destination,
                length,
                max: MAX_DATAGRAM_LENGTH,
            });
        }
        let has_moved = !local.ip().is_unspecified() && !self.owns(host, local.ip());
        if destination.port() == 0 || has_moved || !can_address(local, destination) {
            let source = io::ErrorKind::InvalidInput.into();
            return Err(NetError::Send {
                local,
                destination,
                length,
                source,
            });
        }
        let mut source = self.source_address(host, local, destination);
        if destination.ip().is_multicast() {
            if let Some(address) = group_source {
                source.set_ip(address);
            }
            let outgoing = Outgoing {
                from: host,
                source,
                destination,
                payload,
                is_forged: false,
            };
            for to in (0..self.hosts.len()).map(HostId) {
                if self
                    .sockets
                    .iter()
                    .flatten()
                    .any(|it| it.host == to && it.receives_group(source, destination))
                {
                    self.transmit(&outgoing, to);
                }
            }
            return Ok(true);
        }
        let Some(to) = self.host_with_address(host, destination.ip()) else {
            self.counts.sent += 1;
            self.counts.unreachable += 1;
            return Ok(true);
        };
        let path = [(host, source.port()), (to, destination.port())];
        let rate = self.faults_of(path).refuse;
        if happens(&mut self.random, rate) {
            self.counts.refused += 1;
            return Ok(false);
        }
        let outgoing = Outgoing {
            from: host,
            source,
            destination,
            payload,
            is_forged: false,
        };
        self.transmit(&outgoing, to);
        Ok(true)
    }

    /// Sends a datagram with an arbitrary source address. Returns false if no host has the destination address.
    pub(super) fn forge(
        &mut self,
        from: HostId,
        source: SocketAddr,
        destination: SocketAddr,
        payload: &[u8],
    ) -> bool {
        let to = self.host_with_address(from, destination.ip());
        if let Some(to) = to {
            let outgoing = Outgoing {
                from,
                source,
                destination,
                payload,
                is_forged: true,
            };
            self.transmit(&outgoing, to);
        }
        to.is_some()
    }

    /// Returns the faults between two ports: those of a port if one has its own, otherwise those of the link.
    fn faults_of(&mut self, path: [(HostId, u16); 2]) -> LinkFaults {
        let own = self.ports.iter().find(|(port, _)| path.contains(port));
        let own = own.map(|(_, faults)| *faults);
        let [(from, _), (to, _)] = path;
        own.or(self.link(from, to).faults).unwrap_or(self.faults)
    }

    fn transmit(&mut self, outgoing: &Outgoing<'_>, to: HostId) {
        let Outgoing {
            from,
            source,
            destination,
            payload,
            is_forged,
        } = *outgoing;
        self.counts.sent += 1;
        self.activity.fetch_add(1, Ordering::Relaxed);
        if self.to_record > 0 && !is_forged {
            self.to_record -= 1;
            self.recorded.push(Recorded {
                source,
                destination,
                bytes: payload.to_vec(),
            });
        }
        let carried = &mut self.link(from, to).counts;
        carried.datagrams += 1;
        carried.bytes += payload.len() as u64;
        let path = [(from, source.port()), (to, destination.port())];
        let faults = self.faults_of(path);
        if self.link(from, to).is_cut {
            self.counts.cut += 1;
            return;
        }
        if happens(&mut self.random, faults.loss) {
            self.counts.lost += 1;
            return;
        }
        let mut copies = 1;
        if happens(&mut self.random, faults.duplicate) {
            self.counts.duplicated += 1;
            copies = 2;
        }
        for _ in 0..copies {
            let arrival = self.arrival(from, to, &faults);
            let mut bytes = self.copy(payload);
            let is_damaged = self.damage(&mut bytes, &faults) || is_forged;
            self.sequence += 1;
            let sequence = self.sequence;
            self.in_flight.push(Reverse(InFlight {
                arrival,
                sequence,
                from,
                to,
                source,
                destination,
                bytes,
                is_damaged,
            }));
        }
    }

    /// Returns the arrival time of a datagram that is sent now.
    fn arrival(&mut self, from: HostId, to: HostId, faults: &LinkFaults) -> i64 {
        let now = self.clock.read().nanos;
        let taken =
            saturating_nanos(faults.delay).saturating_add(up_to(&mut self.random, faults.jitter));
        let arrival = now.saturating_add(taken);
        if happens(&mut self.random, faults.reorder) {
            self.counts.reordered += 1;
            return arrival.saturating_add(up_to(&mut self.random, faults.reorder_delay));
        }
        let last = &mut self.link(from, to).last_arrival;
        *last = arrival.max(*last);
        *last
    }

    fn copy(&mut self, payload: &[u8]) -> Vec<u8> {
        let mut bytes = self.free_buffers.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(payload);
        bytes
    }

    /// Returns true if the datagram was damaged.
    fn damage(&mut self, bytes: &mut Vec<u8>, faults: &LinkFaults) -> bool {
        let before = self.counts.corrupted + self.counts.truncated;
        if !bytes.is_empty() && happens(&mut self.random, faults.corrupt) {
            self.counts.corrupted += 1;
            let index = self.random.usize(0..bytes.len());
            bytes[index] ^= 1 << self.random.u32(0..8);
        }
        if !bytes.is_empty() && happens(&mut self.random, faults.truncate) {
            self.counts.truncated += 1;
            bytes.truncate(self.random.usize(0..bytes.len()));
        }
        self.counts.corrupted + self.counts.truncated != before
    }

    /// Moves datagrams whose arrival time has passed into the queues of their sockets.
    pub(super) fn deliver_due(&mut self) {
        let now = self.clock.read();
        while self
            .next_arrival()
            .is_some_and(|arrival| arrival <= now.nanos)
        {
            if let Some(Reverse(datagram)) = self.in_flight.pop() {
                self.activity.fetch_add(1, Ordering::Relaxed);
                self.arrive(datagram, now.epoch_millis * 1_000_000);
            }
        }
    }

    fn arrive(&mut self, datagram: InFlight, timestamp_ns: i64) {
        let InFlight {
            from,
            to,
            source,
            destination,
            bytes,
            is_damaged,
            ..
        } = datagram;
        if self.link(from, to).is_cut {
            self.counts.cut += 1;
            self.free_buffers.push(bytes);
        } else if destination.ip().is_multicast() {
            for index in 0..self.sockets.len() {
                let socket = self.sockets[index].as_ref();
                if socket.is_some_and(|socket| {
                    socket.host == to && socket.receives_group(source, destination)
                }) {
                    let bytes = self.copy(&bytes);
                    self.deliver(
                        index,
                        Queued {
                            source,
                            timestamp_ns,
                            bytes,
                            is_damaged,
                        },
                    );
                }
            }
            self.free_buffers.push(bytes);
        } else if let Some(index) = self.best_match(to, source, destination)
            && self.owns(to, destination.ip())
        {
            self.deliver(
                index,
                Queued {
                    source,
                    timestamp_ns,
                    bytes,
                    is_damaged,
                },
            );
        } else {
            self.counts.unreachable += 1;
            self.free_buffers.push(bytes);
        }
    }

    /// Returns the socket of a host that a datagram is delivered to.
    fn best_match(
        &self,
        host: HostId,
        source: SocketAddr,
        destination: SocketAddr,
    ) -> Option<usize> {
        let sockets = self.sockets.iter().enumerate();
        let here = sockets.filter_map(|(index, socket)| Some((index, socket.as_ref()?)));
        here.filter(|(_, socket)| socket.host == host)
            .filter_map(|(index, socket)| Some((socket.match_score(source, destination)?, index)))
            .max()
            .map(|(_, index)| index)
    }

    fn deliver(&mut self, index: usize, datagram: Queued) {
        let Some(socket) = self.sockets[index].as_mut() else {
            return;
        };
        match socket.deliver(datagram) {
            Ok(()) => self.counts.delivered += 1,
            Err(refused) => {
                socket.overflowed += 1;
                self.counts.overflowed += 1;
                self.free_buffers.push(refused.bytes);
            }
        }
    }

    /// Passes the oldest datagram of a socket to `take`. Returns true if there was one and `take` accepted it.
    pub(super) fn take(&mut self, id: SocketId, take: impl FnOnce(&Queued) -> bool) -> bool {
        let socket = self.socket(id);
        let (host, taken) = (socket.host, socket.take(take));
        let Some(Queued {
            bytes, is_damaged, ..
        }) = taken
        else {
            return false;
        };
        self.activity.fetch_add(1, Ordering::Relaxed);
        self.traffic[host.0].on_receive(&bytes, is_damaged);
        self.free_buffers.push(bytes);
        true
    }
}
