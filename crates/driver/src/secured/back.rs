// SPDX-License-Identifier: Apache-2.0
//! Layer of the socket of a receive transport: opens streams, seals feedback.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::SocketAddr;

use taran_core::queue;
use taran_net::{LowerLayers, NetError, ReceiveBatch, Transmit, TransmitScratch};
use taran_protocol::frame::{FrameHeader, FromBytes, IntoBytes, Setup};
use taran_secure::bounds::check_forward;
use taran_secure::derive::KeyId;
use taran_secure::frame::{
    ANNOUNCE, Announce, COOKIE, PAIR, RESP, SEALED, SEALED_OVERHEAD, SealedHeader, SecureFrame,
    is_secure,
};
use taran_secure::keeper::Port;
use taran_secure::seal::{OpenKey, SealKey};

use super::forward::{Feedback, feedback_stream, key_number};
use super::keeper_sender::KeeperSender;
use super::messages::{Input, KeyUpdate, P, Stream};
use super::port_layer::{Arrived, SecuredPort};
use super::table::Table;
use super::unknown_keys::UnknownKeys;

/// Announcements that are kept for a key that is on its way.
const HELD_MAX: usize = 64;

/// Keys of a receive transport.
pub(super) struct ReceiverPort {
    id: i64,
    updates: queue::Receiver<KeyUpdate>,
    to_keeper: KeeperSender,
    keys: Table<u64, StreamKey>,
    /// Links that carry feedback for a stream, the newest last.
    streams: Table<Stream, Vec<u64>>,
    links: HashMap<u64, SenderLink>,
    /// Links whose frames are expected.
    expected: HashSet<u64>,
    /// Announcements under keys that were not known, with their sources: their key may be on its way from the conductor.
    held: VecDeque<(Box<Announce>, SocketAddr)>,
    /// Opened SETUPs that wait for a free slot.
    setups: VecDeque<(Setup, SocketAddr)>,
    unknown: UnknownKeys,
}

struct StreamKey {
    key: Box<OpenKey<P>>,
    stream: Stream,
    /// A datagram was opened.
    is_used: bool,
    /// The conductor was asked for another epoch.
    has_asked: bool,
}

/// Sender at the other end of a link.
struct SenderLink {
    key: Box<SealKey<P>>,
    to: SocketAddr,
    /// Jumps of the wall clock before the key was drawn.
    jumps: u64,
}

impl std::fmt::Debug for ReceiverPort {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ReceiverPort")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl ReceiverPort {
    pub(super) fn new(
        id: i64,
        updates: queue::Receiver<KeyUpdate>,
        to_keeper: KeeperSender,
        seed: u64,
    ) -> Self {
        Self {
            id,
            updates,
            to_keeper,
            keys: Table::new(seed),
            streams: Table::new(seed.rotate_left(32)),
            links: HashMap::new(),
            expected: HashSet::new(),
            held: VecDeque::new(),
            setups: VecDeque::new(),
            unknown: UnknownKeys::default(),
        }
    }

    fn port(&self) -> Port {
        Port::Receiver(self.id.cast_unsigned())
    }

    /// Leads the feedback of a stream over a link.
    fn lead(&mut self, stream: Stream, link: u64) {
        match self.streams.get_mut(stream) {
            Some(links) => {
                links.retain(|other| *other != link);
                links.push(link);
            }
            None => self.streams.insert(stream, vec![link]),
        }
    }

    /// Opens the announcements that waited for a key.
    fn open_held(&mut self, id: KeyId) {
        let mut waiting = std::mem::take(&mut self.held);
        while let Some((announce, source)) = waiting.pop_front() {
            if announce.key_id == id.0 {
                self.on_setup(&announce, source);
            } else {
                self.held.push_back((announce, source));
            }
        }
    }

    /// Opens the SETUP of an announcement. Returns false if its key is not known.
    fn on_setup(&mut self, announce: &Announce, source: SocketAddr) -> bool {
        let (port, to_keeper) = (self.port(), &self.to_keeper);
        let number = u64::from_le_bytes(announce.key_id);
        let Some(known) = self.keys.get_mut(number) else {
            return false;
        };
        match known.key.open_announce(announce) {
            Ok(setup) if (setup.session_id.get(), setup.stream_id.get()) == known.stream => {
                if !known.is_used {
                    let id = known.key.id();
                    known.is_used = to_keeper.post(port, || Input::FirstOpen(id));
                }
                if self.setups.len() < HELD_MAX {
                    self.setups.push_back((setup, source));
                }
            }
            Ok(_) => {
                to_keeper.counters.out_of_bounds.increment();
            }
            Err(refused) => to_keeper.refuse(port, source, refused),
        }
        true
    }

    /// Opens a datagram of a stream into the next free slot.
    #[inline]
    fn open(&mut self, arrived: Arrived<'_>, batch: &mut ReceiveBatch) {
        let Arrived {
            datagram,
            source,
            timestamp_ns,
        } = arrived;
        let (port, to_keeper) = (self.port(), &self.to_keeper);
        let header = SealedHeader::ref_from_prefix(datagram)
            .ok()
            .map(|(header, _)| header)
            .filter(|_| datagram.len() >= SEALED_OVERHEAD);
        let Some(header) = header else {
            to_keeper.counters.failed_opens.increment();
            return;
        };
        let Some(known) = self.keys.get_mut(u64::from_le_bytes(header.key_id)) else {
            to_keeper.counters.unknown_keys.increment();
            let id = KeyId(header.key_id);
            let input = || Input::UnknownKey {
                source,
                id,
                length: datagram.len(),
            };
            // The start of a stream waits for the request of its key. Further datagrams under that key do not.
            if self.unknown.is_first(id, to_keeper.clock()) {
                to_keeper.post_awaited(port, input);
            } else {
                to_keeper.post(port, input);
            }
            return;
        };
        let length = datagram.len() - SEALED_OVERHEAD;
        let (session_id, stream_id) = known.stream;
        let mut is_authentic = false;
        batch.push_coalesced_with(source, timestamp_ns, length, |out| {
            if let Err(refused) = known.key.open(datagram, out) {
                to_keeper.refuse(port, source, refused);
                if known.key.wants_rotation() && !known.has_asked {
                    let id = known.key.id();
                    known.has_asked = to_keeper.post(port, || Input::WantsEpoch(id));
                }
                return false;
            }
            is_authentic = true;
            let is_within = check_forward(out, session_id, stream_id).is_ok();
            if !is_within {
                to_keeper.counters.out_of_bounds.increment();
            }
            is_within
        });
        if is_authentic && !known.is_used {
            let id = known.key.id();
            known.is_used = to_keeper.post(port, || Input::FirstOpen(id));
        }
    }

    /// Returns the link that carries feedback: the newest of its stream whose key the sender has.
    fn link_of(&mut self, feedback: Feedback, to: Option<SocketAddr>) -> Option<u64> {
        let links = &self.links;
        match feedback {
            Feedback::Stream(stream) | Feedback::Setup(stream) => {
                let of_stream = self.streams.get_mut(stream)?.iter().rev();
                of_stream.copied().find(|link| links.contains_key(link))
            }
            Feedback::AnySetup => links
                .iter()
                .filter(|(_, sender)| Some(sender.to) == to)
                .map(|(link, _)| *link)
                .min(),
        }
    }

    /// Seals and sends one frame of feedback. What no link carries is as if lost: its receiver repeats it.
    fn send_one(
        &mut self,
        datagram: &[u8],
        to: Option<SocketAddr>,
        scratch: &mut TransmitScratch,
        lower: &mut LowerLayers<'_>,
    ) -> Result<bool, NetError> {
        let Some(feedback) = feedback_stream(datagram) else {
            self.to_keeper.counters.refused_sends.increment();
            return Ok(true);
        };
        let link = self.link_of(feedback, to);
        let (port, to_keeper) = (self.port(), &self.to_keeper);
        let Some(sender) = link.and_then(|link| self.links.get_mut(&link)) else {
            match (feedback, to) {
                (Feedback::AnySetup | Feedback::Setup(_), Some(control)) => {
                    to_keeper.post_awaited(port, || Input::SetupRequest { control });
                }
                _ => {
                    to_keeper.counters.refused_sends.increment();
                }
            }
            return Ok(true);
        };
        let may_seal = to_keeper.clock().allows(&sender.key, sender.jumps);
        if !may_seal || !sender.key.has_room(1, datagram.len()) {
            to_keeper.counters.refused_sends.increment();
            return Ok(true);
        }
        // The address of the link, whatever a SETUP seemed to have.
        let layout = Transmit::to(sender.to, datagram).expanded(SEALED_OVERHEAD);
        let key = &mut sender.key;
        let sent = lower.send_with(layout, scratch, &mut |_, out| {
            if key.seal(datagram, out).is_err() {
                // Not reached: there is room. Nothing plain leaves all the same.
                out.fill(0);
            }
        })?;
        to_keeper.counters.bytes_sealed.add(datagram.len() as i64);
        Ok(sent == datagram.len() + SEALED_OVERHEAD)
    }
}

impl SecuredPort for ReceiverPort {
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
                self.links.insert(link, SenderLink { key, to, jumps });
            }
            KeyUpdate::OpenStream { link, stream, key } => {
                let id = key.id();
                self.lead(stream, link);
                self.keys.insert(
                    key_number(id),
                    StreamKey {
                        key,
                        stream,
                        is_used: false,
                        has_asked: false,
                    },
                );
                self.open_held(id);
            }
            KeyUpdate::StreamLink { link, stream } => self.lead(stream, link),
            KeyUpdate::Moved { link, address } => {
                if let Some(sender) = self.links.get_mut(&link) {
                    sender.to = address;
                }
            }
            KeyUpdate::Link(link) => {
                self.expected.insert(link);
            }
            KeyUpdate::Unlink(link) => {
                self.expected.remove(&link);
                self.links.remove(&link);
                for links in self.streams.values_mut() {
                    links.retain(|other| *other != link);
                }
            }
            KeyUpdate::Close(id) => {
                if let Some(closed) = self.keys.remove(key_number(id))
                    && !self
                        .keys
                        .values_mut()
                        .any(|key| key.stream == closed.stream)
                {
                    self.streams.remove(closed.stream);
                }
            }
            // Those are for send endpoints.
            KeyUpdate::SealStream { .. }
            | KeyUpdate::DropStream(_)
            | KeyUpdate::OpenBack { .. }
            | KeyUpdate::Grant { .. }
            | KeyUpdate::Revoke { .. }
            | KeyUpdate::Identity(..)
            | KeyUpdate::Announce { .. } => {}
        }
    }

    fn send(
        &mut self,
        transmit: &Transmit<'_>,
        scratch: &mut TransmitScratch,
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        let to = transmit.destination.or_else(|| lower.peer());
        let mut accepted = 0;
        for datagram in transmit.datagrams() {
            match self.send_one(datagram, to, scratch, lower) {
                Ok(true) => accepted += datagram.len(),
                Err(error) if accepted == 0 => return Err(error),
                Ok(false) | Err(_) => break,
            }
        }
        Ok(accepted)
    }

    #[inline]
    fn on_datagram(&mut self, arrived: Arrived<'_>, batch: &mut ReceiveBatch) {
        let Arrived {
            datagram, source, ..
        } = arrived;
        let port = self.port();
        let Ok((header, _)) = FrameHeader::ref_from_prefix(datagram) else {
            // Cut off on the way: not even a plain frame.
            self.to_keeper.counters.failed_opens.increment();
            return;
        };
        match header.frame_type() {
            SEALED => self.open(arrived, batch),
            ANNOUNCE => {
                let Ok(SecureFrame::Announce(announce)) = SecureFrame::parse(datagram) else {
                    self.to_keeper.counters.out_of_bounds.increment();
                    return;
                };
                if announce.has_setup() {
                    if self.on_setup(announce, source) {
                        return;
                    }
                    if self.held.len() >= HELD_MAX {
                        self.held.pop_front();
                    }
                    self.held.push_back((Box::new(*announce), source));
                }
                self.to_keeper.post_handshake(port, source, datagram);
            }
            RESP | COOKIE | PAIR => match SecureFrame::parse(datagram) {
                Ok(SecureFrame::Pair(frames)) => {
                    let is_expected = |link| self.expected.contains(&link);
                    self.to_keeper.post_pair(port, arrived, frames, is_expected);
                }
                Ok(_) => self.to_keeper.post_handshake(port, source, datagram),
                Err(_) => {
                    self.to_keeper.counters.out_of_bounds.increment();
                }
            },
            other if is_secure(other) => {
                self.to_keeper.counters.out_of_bounds.increment();
            }
            other => self.to_keeper.refuse_plain(port, source, other),
        }
    }

    fn deliver(&mut self, batch: &mut ReceiveBatch) {
        while let Some((setup, source)) = self.setups.front() {
            if !batch.push(*source, None, setup.as_bytes()) {
                return;
            }
            self.setups.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Waker;

    use taran_core::agent::register_wait;
    use zerocopy::FromZeros;

    use super::super::keeper_sender::tests::{Waits, sender};
    use super::*;

    /// Two streams without keys whose datagrams alternate end one wait each, and leave the limit of wake-ups to handshakes.
    #[test]
    fn open_ends_a_wait_of_the_conductor_once_for_each_unknown_key() {
        let ended = Arc::<Waits>::default();
        let _wait = register_wait(Waker::from(Arc::clone(&ended)));
        let (to_keeper, [mut inputs, _], waker) = sender();
        let (_updates, updates) = queue::spsc(1);
        let mut port = ReceiverPort::new(1, updates, to_keeper, 1);
        let mut batch = ReceiveBatch::new(1);
        let two_streams = [1, 2].into_iter().cycle().take(5_000);
        for (index, key_id) in two_streams.enumerate() {
            let mut header = SealedHeader::new_zeroed();
            header.key_id = [key_id; 8];
            let mut datagram = [0; SEALED_OVERHEAD + 32];
            datagram[..size_of::<SealedHeader>()].copy_from_slice(header.as_bytes());
            let arrived = Arrived {
                datagram: &datagram,
                source: ([10, 0, 0, 1], 40_000).into(),
                timestamp_ns: None,
            };
            port.open(arrived, &mut batch);
            assert_eq!(ended.count(), (index + 1).min(2), "datagram {index}");
            waker.begin_poll();
            let posted = inputs.try_recv().map(|message| message.input);
            assert!(matches!(posted, Some(Input::UnknownKey { id, .. }) if id.0 == [key_id; 8]));
        }
    }
}
