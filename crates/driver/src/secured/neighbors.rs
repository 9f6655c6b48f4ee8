// SPDX-License-Identifier: Apache-2.0
//! Layer of the socket of name resolution: seals and opens what neighbours tell each other.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

use taran_core::queue;
use taran_net::{LowerLayers, NetError, ReceiveBatch, Transmit, TransmitScratch};
use taran_protocol::frame::{Frame, FrameHeader, FromBytes};
use taran_secure::frame::{
    ANNOUNCE, BACK, COOKIE, HELLO, INIT, PAIR, RESP, SEALED_OVERHEAD, SealedHeader, SecureFrame,
    is_secure,
};
use taran_secure::keeper::Port;
use taran_secure::seal::{OpenKey, SealKey};

use super::forward::key_number;
use super::keeper_sender::KeeperSender;
use super::messages::{Input, KeyUpdate, P};
use super::port_layer::{Arrived, SecuredPort};
use super::table::Table;

/// Keys of the socket of name resolution.
pub(super) struct ResolverPort {
    updates: queue::Receiver<KeyUpdate>,
    to_keeper: KeeperSender,
    opening: Table<u64, NeighborKey>,
    sealing: HashMap<u64, NeighborLink>,
    /// Links whose frames are expected.
    expected: HashSet<u64>,
}

struct NeighborKey {
    key: Box<OpenKey<P>>,
    link: u64,
    /// Proved address of the neighbour.
    address: Option<SocketAddr>,
}

struct NeighborLink {
    key: Box<SealKey<P>>,
    to: SocketAddr,
    /// Jumps of the wall clock before the key was drawn.
    jumps: u64,
}

impl std::fmt::Debug for ResolverPort {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ResolverPort")
            .finish_non_exhaustive()
    }
}

impl ResolverPort {
    pub(super) fn new(
        updates: queue::Receiver<KeyUpdate>,
        to_keeper: KeeperSender,
        seed: u64,
    ) -> Self {
        Self {
            updates,
            to_keeper,
            opening: Table::new(seed),
            sealing: HashMap::new(),
            expected: HashSet::new(),
        }
    }

    fn open(&mut self, arrived: Arrived<'_>, batch: &mut ReceiveBatch) {
        let to_keeper = &self.to_keeper;
        let Arrived {
            datagram,
            source,
            timestamp_ns,
        } = arrived;
        let header = SealedHeader::ref_from_prefix(datagram)
            .ok()
            .map(|(header, _)| header)
            .filter(|_| datagram.len() >= SEALED_OVERHEAD);
        let Some(header) = header else {
            to_keeper.counters.failed_opens.increment();
            return;
        };
        let Some(known) = self.opening.get_mut(u64::from_le_bytes(header.key_id)) else {
            to_keeper.counters.unknown_keys.increment();
            return;
        };
        let is_newest = known.key.is_newest(header.counter.get());
        let (link, address) = (known.link, known.address);
        let mut is_authentic = false;
        let length = datagram.len() - SEALED_OVERHEAD;
        let from = address.unwrap_or(source);
        batch.push_coalesced_with(from, timestamp_ns, length, |out| {
            if let Err(refused) = known.key.open(datagram, out) {
                to_keeper.refuse(Port::Resolver, source, refused);
                return false;
            }
            is_authentic = true;
            if !matches!(Frame::parse(out), Ok(Frame::Resolution(_))) {
                to_keeper.counters.out_of_bounds.increment();
                return false;
            }
            // Nothing is led to an address that is not proved.
            address.is_some()
        });
        if is_authentic && is_newest && address != Some(source) {
            to_keeper.post(Port::Resolver, || Input::OtherAddress { link, source });
        }
    }
}

impl SecuredPort for ResolverPort {
    fn updates(&mut self) -> &mut queue::Receiver<KeyUpdate> {
        &mut self.updates
    }

    fn to_keeper(&self) -> &KeeperSender {
        &self.to_keeper
    }

    fn on_update(&mut self, update: KeyUpdate, lower: &mut LowerLayers<'_>) {
        match update {
            KeyUpdate::Send { to, bytes } => {
                // What is lost is repeated.
                let _ = lower.send(&[Transmit::to(to, &bytes)]);
            }
            KeyUpdate::SealBack {
                link,
                to,
                jumps,
                key,
            } => {
                self.sealing.insert(link, NeighborLink { key, to, jumps });
            }
            KeyUpdate::OpenBack {
                link, address, key, ..
            } => {
                let number = key_number(key.id());
                self.opening
                    .insert(number, NeighborKey { key, link, address });
            }
            KeyUpdate::Moved { link, address } => {
                if let Some(neighbor) = self.sealing.get_mut(&link) {
                    neighbor.to = address;
                }
                for key in self.opening.values_mut().filter(|key| key.link == link) {
                    key.address = Some(address);
                }
            }
            KeyUpdate::Link(link) => {
                self.expected.insert(link);
            }
            KeyUpdate::Unlink(link) => {
                self.expected.remove(&link);
                self.sealing.remove(&link);
            }
            KeyUpdate::Close(id) => {
                self.opening.remove(key_number(id));
            }
            // Those are for streams.
            KeyUpdate::SealStream { .. }
            | KeyUpdate::DropStream(_)
            | KeyUpdate::OpenStream { .. }
            | KeyUpdate::Grant { .. }
            | KeyUpdate::Revoke { .. }
            | KeyUpdate::StreamLink { .. }
            | KeyUpdate::Identity(..)
            | KeyUpdate::Announce { .. } => {}
        }
    }

    /// Seals what is for a neighbour. Without a link it is as if lost, and a handshake begins: it is repeated.
    fn send(
        &mut self,
        transmit: &Transmit<'_>,
        scratch: &mut TransmitScratch,
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        let to_keeper = &self.to_keeper;
        let length = transmit.payload.len();
        let Some(to) = transmit.destination else {
            to_keeper.counters.refused_sends.increment();
            return Ok(length);
        };
        let clock = to_keeper.clock();
        let mut links = self.sealing.values_mut();
        let link = links.find(|link| link.to == to && clock.allows(&link.key, link.jumps));
        let Some(link) = link.filter(|link| link.key.has_room(1, length)) else {
            to_keeper.counters.refused_sends.increment();
            to_keeper.post(Port::Resolver, || Input::SetupRequest { control: to });
            return Ok(length);
        };
        let key = &mut link.key;
        let layout = Transmit::to(to, transmit.payload).expanded(SEALED_OVERHEAD);
        let sent = lower.send_with(layout, scratch, &mut |_, out| {
            if key.seal(transmit.payload, out).is_err() {
                // Not reached: there is room. Nothing plain leaves all the same.
                out.fill(0);
            }
        })?;
        to_keeper.counters.bytes_sealed.add(length as i64);
        Ok(if sent == length + SEALED_OVERHEAD {
            length
        } else {
            0
        })
    }

    fn on_datagram(&mut self, arrived: Arrived<'_>, batch: &mut ReceiveBatch) {
        let Arrived {
            datagram, source, ..
        } = arrived;
        let to_keeper = &self.to_keeper;
        let Ok((header, _)) = FrameHeader::ref_from_prefix(datagram) else {
            // Cut off on the way: not even a plain frame.
            to_keeper.counters.failed_opens.increment();
            return;
        };
        match header.frame_type() {
            BACK => self.open(arrived, batch),
            HELLO | ANNOUNCE | INIT | RESP | COOKIE | PAIR => match SecureFrame::parse(datagram) {
                Ok(SecureFrame::Pair(frames)) => {
                    let is_expected = |link| self.expected.contains(&link);
                    to_keeper.post_pair(Port::Resolver, arrived, frames, is_expected);
                }
                Ok(_) => {
                    to_keeper.post_handshake(Port::Resolver, source, datagram);
                }
                Err(_) => {
                    to_keeper.counters.out_of_bounds.increment();
                }
            },
            other if is_secure(other) => {
                to_keeper.counters.out_of_bounds.increment();
            }
            other => to_keeper.refuse_plain(Port::Resolver, source, other),
        }
    }

    fn deliver(&mut self, _batch: &mut ReceiveBatch) {}
}
