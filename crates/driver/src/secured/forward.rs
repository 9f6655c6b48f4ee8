// SPDX-License-Identifier: Apache-2.0
//! Layer of the sockets of a send endpoint: seals streams, opens feedback.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::SocketAddr;

use taran_core::queue;
use taran_net::{LowerLayers, NetError, ReceiveBatch, Transmit, TransmitScratch};
use taran_protocol::frame::{
    Frame, FrameHeader, FrameType, FromBytes, IntoBytes, Setup, StatusMessage,
};
use taran_secure::bounds::check_back;
use taran_secure::derive::{Fingerprint, KeyId};
use taran_secure::frame::{
    BACK, HELLO, INIT, PAIR, SEALED_OVERHEAD, SealedHeader, SecureFrame, is_secure,
};
use taran_secure::keeper::Port;
use taran_secure::seal::{OpenKey, SealKey};

use super::keeper_sender::KeeperSender;
use super::messages::{Input, KeyUpdate, P, Stream};
use super::port_layer::{Arrived, SecuredPort};
use super::table::Table;

/// Elicited SETUPs that wait for a free slot.
const ELICITED_MAX: usize = 64;

/// Keys of a send endpoint. Its sockets share them; all belong to the sender.
pub(super) struct SenderPort {
    id: i64,
    updates: queue::Receiver<KeyUpdate>,
    to_keeper: KeeperSender,
    /// Identity and number of this run, for announcements.
    fingerprint: Fingerprint,
    incarnation: u64,
    streams: Table<Stream, SealingStream>,
    keys: Table<u64, BackKey>,
    links: HashMap<u64, ReceiverLink>,
    /// Links whose frames are expected, half-open ones among them.
    expected: HashSet<u64>,
    elicited: VecDeque<(StatusMessage, SocketAddr)>,
}

struct SealingStream {
    key: Box<SealKey<P>>,
    epoch: u32,
    /// Jumps of the wall clock before the key was drawn.
    jumps: u64,
    /// The conductor was asked for another epoch.
    has_asked: bool,
    /// Last SETUP.
    last_setup: Option<SentSetup>,
}

impl SealingStream {
    /// Returns true if the key may seal now, and has room for the datagrams.
    #[inline]
    fn may_seal(&self, transmit: &Transmit<'_>, to_keeper: &KeeperSender) -> bool {
        let count = transmit.datagrams().len() as u64;
        to_keeper.clock().allows(&self.key, self.jumps)
            && self.key.has_room(count, transmit.payload.len())
    }

    /// Asks the conductor once for another epoch if the key is at a soft limit.
    #[inline]
    fn ask_for_rotation(&mut self, id: i64, stream: Stream, to_keeper: &KeeperSender) {
        if self.key.wants_rotation() && !self.has_asked {
            let port = Port::Sender(id.cast_unsigned());
            self.has_asked = to_keeper.post(port, || Input::WantsRotation(stream));
        }
    }
}

/// SETUP that was announced.
#[derive(Clone, Copy)]
struct SentSetup {
    setup: Setup,
    destination: Option<SocketAddr>,
    /// Counter of the key behind it: if it is still the next one, nothing was sealed since, and the SETUP is as good as new.
    next_counter: u64,
}

struct BackKey {
    key: Box<OpenKey<P>>,
    link: u64,
}

/// Receiver at the other end of a link.
#[derive(Default)]
struct ReceiverLink {
    receiver_id: i64,
    /// Proved address, which all its frames are handed on with.
    address: Option<SocketAddr>,
    granted: HashSet<Stream>,
}

impl std::fmt::Debug for SenderPort {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SenderPort")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Returns the stream of a frame that a sender sends: DATA, PAD, SETUP or RTTM.
#[inline]
fn stream_of(datagram: &[u8]) -> Option<Stream> {
    let (header, _) = FrameHeader::ref_from_prefix(datagram).ok()?;
    let at = if header.frame_type() == FrameType::RTTM {
        8
    } else {
        12
    };
    let id = |at: usize| {
        let bytes = datagram.get(at..at + 4)?;
        Some(i32::from_le_bytes(*bytes.first_chunk()?))
    };
    Some((id(at)?, id(at + 4)?))
}

/// Sends the datagrams of a transmit as `write` seals them. Returns the accepted plain bytes.
fn send_sealed(
    transmit: &Transmit<'_>,
    scratch: &mut TransmitScratch,
    lower: &mut LowerLayers<'_>,
    write: &mut dyn FnMut(usize, &mut [u8]),
    to_keeper: &KeeperSender,
) -> Result<usize, NetError> {
    let layout = transmit.expanded(SEALED_OVERHEAD);
    let sent = lower.send_with(layout, scratch, write)?;
    let accepted = if sent == layout.length {
        transmit.payload.len()
    } else {
        transmit.accepted(sent, SEALED_OVERHEAD)
    };
    to_keeper.counters.bytes_sealed.add(accepted as i64);
    Ok(accepted)
}

fn is_setup(datagram: &[u8]) -> bool {
    FrameHeader::ref_from_prefix(datagram)
        .is_ok_and(|(header, _)| header.frame_type() == FrameType::SETUP)
}

impl SenderPort {
    pub(super) fn new(
        id: i64,
        updates: queue::Receiver<KeyUpdate>,
        to_keeper: KeeperSender,
        identity: (Fingerprint, u64),
        seed: u64,
    ) -> Self {
        Self {
            id,
            updates,
            to_keeper,
            fingerprint: identity.0,
            incarnation: identity.1,
            streams: Table::new(seed),
            keys: Table::new(seed.rotate_left(32)),
            links: HashMap::new(),
            expected: HashSet::new(),
            elicited: VecDeque::new(),
        }
    }

    fn port(&self) -> Port {
        Port::Sender(self.id.cast_unsigned())
    }

    /// Makes the request for a SETUP that a receiver without security would have sent: the receiver has the key of the
    /// stream now. Only the sender may seal the SETUP.
    fn elicit(&mut self, link: u64, stream: Stream) {
        let Some(receiver) = self.links.get(&link) else {
            return;
        };
        let Some(address) = receiver.address else {
            return;
        };
        if self.elicited.len() < ELICITED_MAX {
            let request = StatusMessage {
                header: StatusMessage::header(StatusMessage::SEND_SETUP),
                session_id: stream.0.into(),
                stream_id: stream.1.into(),
                consumption_term_id: 0.into(),
                consumption_term_offset: 0.into(),
                receiver_window: 0.into(),
                receiver_id: receiver.receiver_id.into(),
            };
            self.elicited.push_back((request, address));
        }
    }

    /// Announces the last SETUP of a stream once more, for a receiver that has just got the key and opens nothing of before: the
    /// sender would wait for its interval. Only if nothing was sealed since, so that the position in it is that of the stream.
    fn announce_again(&mut self, link: u64, stream: Stream, lower: &mut LowerLayers<'_>) {
        let address = self.links.get(&link).and_then(|link| link.address);
        let last = self.streams.get_mut(stream).and_then(|sealing| {
            let next_counter = sealing.key.next_counter();
            sealing
                .last_setup
                .filter(|last| last.next_counter == next_counter)
        });
        let (Some(address), Some(last)) = (address, last) else {
            return;
        };
        let destination = match last.destination {
            // A group has a socket for data, and this may be the other one.
            Some(group) if group.ip().is_multicast() => return,
            Some(_) => Some(address),
            None if lower.peer() == Some(address) => None,
            None => return,
        };
        let transmit = Transmit {
            destination,
            payload: last.setup.as_bytes(),
            segment_size: size_of::<Setup>(),
        };
        // If it is lost, the elicited SETUP comes behind.
        let _ = self.announce(&transmit, lower);
    }

    /// Sends a SETUP as an announcement. Returns the accepted bytes: all or none.
    fn announce(
        &mut self,
        transmit: &Transmit<'_>,
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        let stream = Setup::ref_from_bytes(transmit.payload)
            .ok()
            .and_then(|setup| Some((setup, stream_of(transmit.payload)?)));
        let sealed = stream.and_then(|(setup, stream)| {
            let (fingerprint, incarnation) = (self.fingerprint, self.incarnation);
            let sealing = self.streams.get_mut(stream)?;
            if !self.to_keeper.clock().allows(&sealing.key, sealing.jumps) {
                return None;
            }
            let epoch = sealing.epoch;
            let announce = sealing
                .key
                .announce(fingerprint, incarnation, epoch, setup)
                .ok()?;
            sealing.last_setup = Some(SentSetup {
                setup: *setup,
                destination: transmit.destination,
                next_counter: sealing.key.next_counter(),
            });
            Some(announce)
        });
        let Some(announce) = sealed else {
            self.to_keeper.counters.refused_sends.increment();
            return Ok(0);
        };
        let bytes = announce.as_bytes();
        let sent = lower.send(&[Transmit {
            destination: transmit.destination,
            payload: bytes,
            segment_size: bytes.len(),
        }])?;
        Ok(if sent == bytes.len() {
            transmit.payload.len()
        } else {
            0
        })
    }

    /// Seals and sends datagrams of equal length. Returns the accepted plain bytes.
    fn seal(
        &mut self,
        transmit: &Transmit<'_>,
        scratch: &mut TransmitScratch,
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        let first = stream_of(transmit.payload);
        let is_of_first = |datagram| stream_of(datagram) == first;
        let Some(stream) = first.filter(|_| transmit.datagrams().all(is_of_first)) else {
            return self.seal_mixed(transmit, scratch, lower);
        };
        let Self {
            id,
            streams,
            to_keeper,
            ..
        } = self;
        let sealing = streams
            .get_mut(stream)
            .filter(|sealing| sealing.may_seal(transmit, to_keeper));
        let Some(sealing) = sealing else {
            to_keeper.counters.refused_sends.increment();
            return Ok(0);
        };
        sealing.ask_for_rotation(*id, stream, to_keeper);
        let (plain, stride) = (transmit.payload, transmit.stride());
        let key = &mut sealing.key;
        let mut write = |index: usize, out: &mut [u8]| {
            let datagram = &plain[index * stride..plain.len().min((index + 1) * stride)];
            if key.seal(datagram, out).is_err() {
                // Not reached: there is room. Nothing plain leaves all the same.
                out.fill(0);
            }
        };
        send_sealed(transmit, scratch, lower, &mut write, to_keeper)
    }

    /// Seals and sends datagrams of several streams: those before the first one that has no key.
    fn seal_mixed(
        &mut self,
        transmit: &Transmit<'_>,
        scratch: &mut TransmitScratch,
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        let Self {
            id,
            streams,
            to_keeper,
            ..
        } = self;
        let (plain, stride) = (transmit.payload, transmit.stride());
        let mut sealable = 0;
        for datagram in transmit.datagrams() {
            let sealing = stream_of(datagram).and_then(|stream| {
                let sealing = streams.get_mut(stream)?;
                Some((stream, sealing))
            });
            let may_seal = |sealing: &SealingStream| sealing.may_seal(transmit, to_keeper);
            let Some((stream, sealing)) = sealing.filter(|(_, sealing)| may_seal(sealing)) else {
                break;
            };
            sealing.ask_for_rotation(*id, stream, to_keeper);
            sealable += datagram.len();
        }
        if sealable < plain.len() {
            to_keeper.counters.refused_sends.increment();
        }
        if sealable == 0 {
            return Ok(0);
        }
        let train = Transmit {
            destination: transmit.destination,
            payload: &plain[..sealable],
            segment_size: stride,
        };
        let mut write = |index: usize, out: &mut [u8]| {
            let datagram = &plain[index * stride..sealable.min((index + 1) * stride)];
            let sealing = stream_of(datagram).and_then(|stream| streams.get_mut(stream));
            let sealed = sealing.is_some_and(|sealing| sealing.key.seal(datagram, out).is_ok());
            if !sealed {
                // Not reached: every datagram was checked above. Nothing plain leaves all the same.
                out.fill(0);
            }
        };
        send_sealed(&train, scratch, lower, &mut write, to_keeper)
    }

    /// Opens feedback into the next free slot.
    fn open(&mut self, arrived: Arrived<'_>, batch: &mut ReceiveBatch) {
        let Arrived {
            datagram,
            source,
            timestamp_ns,
        } = arrived;
        let port = self.port();
        let to_keeper = &self.to_keeper;
        let header = SealedHeader::ref_from_prefix(datagram)
            .ok()
            .map(|(header, _)| header)
            .filter(|_| datagram.len() >= SEALED_OVERHEAD);
        let Some(header) = header else {
            to_keeper.counters.failed_opens.increment();
            return;
        };
        let Some(BackKey { key, link }) = self.keys.get_mut(u64::from_le_bytes(header.key_id))
        else {
            to_keeper.counters.unknown_keys.increment();
            return;
        };
        let Some(receiver) = self.links.get(link) else {
            to_keeper.counters.unknown_keys.increment();
            return;
        };
        let link = *link;
        let is_newest = key.is_newest(header.counter.get());
        let length = datagram.len() - SEALED_OVERHEAD;
        // The address that the link proved is that of the receiver, whatever this datagram pretends.
        let address = receiver.address;
        let mut is_authentic = false;
        let mut response = None;
        let from = address.unwrap_or(source);
        batch.push_coalesced_with(from, timestamp_ns, length, |out| {
            if let Err(refused) = key.open(datagram, out) {
                to_keeper.refuse(port, source, refused);
                return false;
            }
            is_authentic = true;
            let is_granted =
                |session_id, stream_id| receiver.granted.contains(&(session_id, stream_id));
            if check_back(out, receiver.receiver_id, is_granted).is_err() {
                to_keeper.counters.out_of_bounds.increment();
                return false;
            }
            response = response_setup(out);
            // Nothing is led to an address that is not proved.
            address.is_some()
        });
        if let Some((stream, session_id)) = response {
            // The conductor learns whose link the frame came over before the sender tells it of the frame.
            to_keeper.post(port, || Input::ResponseSetup {
                link,
                stream,
                session_id,
            });
        }
        if is_authentic && is_newest && address != Some(source) {
            to_keeper.post(port, || Input::OtherAddress { link, source });
        }
    }
}

impl SecuredPort for SenderPort {
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
            KeyUpdate::SealStream {
                stream,
                epoch,
                jumps,
                key,
            } => {
                let sealing = SealingStream {
                    key,
                    epoch,
                    jumps,
                    has_asked: false,
                    last_setup: None,
                };
                self.streams.insert(stream, sealing);
            }
            KeyUpdate::DropStream(stream) => {
                self.streams.remove(stream);
            }
            KeyUpdate::OpenBack {
                link,
                receiver_id,
                address,
                key,
            } => {
                let receiver = self.links.entry(link).or_default();
                receiver.receiver_id = receiver_id;
                receiver.address = address;
                let id = u64::from_le_bytes(key.id().0);
                self.keys.insert(id, BackKey { key, link });
            }
            KeyUpdate::Grant { link, stream } => {
                self.links.entry(link).or_default().granted.insert(stream);
            }
            KeyUpdate::Revoke { link, stream } => {
                if let Some(receiver) = self.links.get_mut(&link) {
                    receiver.granted.remove(&stream);
                }
            }
            KeyUpdate::Moved { link, address } => {
                if let Some(receiver) = self.links.get_mut(&link) {
                    receiver.address = Some(address);
                }
            }
            KeyUpdate::Link(link) => {
                self.expected.insert(link);
            }
            KeyUpdate::Unlink(link) => {
                self.expected.remove(&link);
                self.links.remove(&link);
            }
            KeyUpdate::Close(id) => {
                self.keys.remove(u64::from_le_bytes(id.0));
            }
            KeyUpdate::Identity(fingerprint, incarnation) => {
                self.fingerprint = fingerprint;
                self.incarnation = incarnation;
            }
            KeyUpdate::Announce { link, stream } => {
                self.announce_again(link, stream, lower);
                self.elicit(link, stream);
            }
            // Those are for receive transports.
            KeyUpdate::SealBack { .. }
            | KeyUpdate::OpenStream { .. }
            | KeyUpdate::StreamLink { .. } => {}
        }
    }

    fn send(
        &mut self,
        transmit: &Transmit<'_>,
        scratch: &mut TransmitScratch,
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        if is_setup(transmit.payload) {
            self.announce(transmit, lower)
        } else {
            self.seal(transmit, scratch, lower)
        }
    }

    fn on_datagram(&mut self, arrived: Arrived<'_>, batch: &mut ReceiveBatch) {
        let Arrived {
            datagram, source, ..
        } = arrived;
        let (port, to_keeper) = (self.port(), &self.to_keeper);
        let Ok((header, _)) = FrameHeader::ref_from_prefix(datagram) else {
            // Cut off on the way: not even a plain frame.
            to_keeper.counters.failed_opens.increment();
            return;
        };
        match header.frame_type() {
            BACK => self.open(arrived, batch),
            HELLO | INIT | PAIR => match SecureFrame::parse(datagram) {
                Ok(SecureFrame::Pair(frames)) => {
                    let is_expected = |link| self.expected.contains(&link);
                    to_keeper.post_pair(port, arrived, frames, is_expected);
                }
                Ok(_) => {
                    to_keeper.post_handshake(port, source, datagram);
                }
                Err(_) => {
                    to_keeper.counters.out_of_bounds.increment();
                }
            },
            other if is_secure(other) => {
                to_keeper.counters.out_of_bounds.increment();
            }
            other => to_keeper.refuse_plain(port, source, other),
        }
    }

    /// Delivers requests for SETUPs on behalf of receivers.
    fn deliver(&mut self, batch: &mut ReceiveBatch) {
        while let Some((request, address)) = self.elicited.front() {
            if !batch.push(*address, None, request.as_bytes()) {
                return;
            }
            self.elicited.pop_front();
        }
    }
}

/// Returns the subject of a plain frame that a receive transport may send; none if it may not.
pub(super) fn feedback_stream(datagram: &[u8]) -> Option<Feedback> {
    match Frame::parse(datagram).ok()? {
        Frame::StatusMessage(status) => {
            let stream = (
                status.message.session_id.get(),
                status.message.stream_id.get(),
            );
            Some(match (status.message.asks_for_setup(), stream) {
                (true, (0, 0)) => Feedback::AnySetup,
                (true, _) => Feedback::Setup(stream),
                (false, _) => Feedback::Stream(stream),
            })
        }
        Frame::Nak(nak) => Some(Feedback::Stream((
            nak.session_id.get(),
            nak.stream_id.get(),
        ))),
        Frame::Error(error) => Some(Feedback::Stream((
            error.header.session_id.get(),
            error.header.stream_id.get(),
        ))),
        Frame::Rttm(rttm) => Some(Feedback::Stream((
            rttm.session_id.get(),
            rttm.stream_id.get(),
        ))),
        Frame::ResponseSetup(setup) => Some(Feedback::Stream((
            setup.session_id.get(),
            setup.stream_id.get(),
        ))),
        Frame::Data(_) | Frame::Setup(_) | Frame::Resolution(_) => None,
    }
}

/// Returns stream and response session of a frame that names the session of a response.
fn response_setup(frame: &[u8]) -> Option<(Stream, i32)> {
    match Frame::parse(frame).ok()? {
        Frame::ResponseSetup(setup) => Some((
            (setup.session_id.get(), setup.stream_id.get()),
            setup.response_session_id.get(),
        )),
        _ => None,
    }
}

/// Subject of a frame of feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feedback {
    /// One stream.
    Stream(Stream),
    /// A request for the SETUP of one stream.
    Setup(Stream),
    /// A request for the SETUPs of all streams of a control address.
    AnySetup,
}

/// Returns the identifier of a key as a table key.
pub(super) fn key_number(id: KeyId) -> u64 {
    u64::from_le_bytes(id.0)
}
