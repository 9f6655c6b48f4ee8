//! What passes the edge of a machine, by what it is. Frames are read here by what the specification says of their bytes
//! (`docs/spec/wire.md §1`), with nothing of the code that makes or takes them: a count of its own.

use std::collections::BTreeMap;

use super::faults::Carried;

/// What a datagram is, by its first frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the frames")]
pub enum Kind {
    /// Data and padding.
    Data,
    /// Data without a body.
    Heartbeat,
    Setup,
    Nak,
    /// Where a receiver is.
    Status,
    /// A status message that asks for a SETUP and says nothing else.
    SetupRequest,
    Error,
    RoundTripRequest,
    RoundTripReply,
    ResponseSetup,
    Other,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Data,
        Self::Heartbeat,
        Self::Setup,
        Self::Nak,
        Self::Status,
        Self::SetupRequest,
        Self::Error,
        Self::RoundTripRequest,
        Self::RoundTripReply,
        Self::ResponseSetup,
        Self::Other,
    ];
}

/// Datagrams and bytes by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen([Carried; Kind::ALL.len()]);

impl Seen {
    /// What was seen of a kind.
    #[must_use]
    pub fn of(&self, kind: Kind) -> Carried {
        self.0[kind as usize]
    }

    fn add(&mut self, kind: Kind, bytes: usize) {
        self.0[kind as usize].add(bytes);
    }

    /// What came since `before`.
    fn since(&self, before: &Self) -> Self {
        Self(std::array::from_fn(|kind| {
            self.0[kind].since(before.0[kind])
        }))
    }
}

impl Carried {
    fn add(&mut self, bytes: usize) {
        self.datagrams += 1;
        self.bytes += bytes as u64;
    }

    fn since(self, before: Self) -> Self {
        Self {
            datagrams: self.datagrams - before.datagrams,
            bytes: self.bytes - before.bytes,
        }
    }
}

/// What a machine's sockets have sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchanged {
    /// Taken from senders, wherever it went.
    pub sent: Seen,
    /// Not taken, for lack of room or of a way.
    pub denied: Seen,
    /// Of what was taken: data that went out for the first time.
    pub first: Carried,
    /// Of what was taken: data that had gone out before. Its bytes are those of the stream, bodies of padding included.
    pub again: Carried,
    /// Handed to receivers as somebody has sent it.
    pub received: Seen,
    /// Handed to receivers otherwise than it was sent, or in somebody else's name.
    pub damaged: Carried,
    /// Of these: NAKs, which may ask for what is in the middle of frames.
    pub misled: u64,
}

impl Exchanged {
    /// What came since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            sent: self.sent.since(&before.sent),
            denied: self.denied.since(&before.denied),
            first: self.first.since(before.first),
            again: self.again.since(before.again),
            received: self.received.since(&before.received),
            damaged: self.damaged.since(before.damaged),
            misled: self.misled - before.misled,
        }
    }
}

/// A stream as its frames tell of it. Positions are counted from the first term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    initial_term_id: i32,
    term_length: i32,
    /// End of the furthest data that went out.
    pub sent: Option<i64>,
    /// Furthest position that came in, in data, a heartbeat or a SETUP.
    pub received: Option<i64>,
    /// Furthest end of a window that came in.
    pub allowed: Option<i64>,
}

impl Told {
    fn is(&self, initial_term_id: i32, term_length: i32) -> bool {
        (self.initial_term_id, self.term_length) == (initial_term_id, term_length)
    }

    fn position(&self, term_id: i32, offset: i32) -> i64 {
        let terms = match term_id.wrapping_sub(self.initial_term_id) {
            // The end of the last term there is.
            i32::MIN => 1 << 31,
            terms => i64::from(terms),
        };
        terms * i64::from(self.term_length) + i64::from(offset)
    }
}

/// The edge of one machine.
#[derive(Debug, Default)]
pub struct Edge {
    exchanged: Exchanged,
    /// By session and stream; of those with other first terms the last is that which goes out at present.
    streams: BTreeMap<(i32, i32), Vec<Told>>,
}

impl Edge {
    /// What passed so far.
    #[must_use]
    pub fn exchanged(&self) -> &Exchanged {
        &self.exchanged
    }

    /// What the frames of a stream have told.
    #[must_use]
    pub fn told(
        &self,
        session: i32,
        stream: i32,
        initial_term_id: i32,
        term_length: i32,
    ) -> Option<&Told> {
        let mut told = self.streams.get(&(session, stream))?.iter();
        told.find(|told| told.is(initial_term_id, term_length))
    }

    /// Whoever sent and received here is gone.
    pub(super) fn forget_streams(&mut self) {
        self.streams.clear();
    }

    /// A socket was asked to send this.
    pub(crate) fn leaves(&mut self, datagram: &[u8], is_taken: bool) {
        let bytes = Bytes(datagram);
        let kind = bytes.kind();
        if kind == Kind::Setup {
            let (all, at) = self.about(bytes);
            let mut told = all.remove(at);
            // One that is elsewhere begins anew: it takes up a session of before.
            let present = told.position(bytes.i32_at(24), bytes.i32_at(8));
            told.sent = told.sent.filter(|sent| *sent == present);
            all.push(told);
        }
        if !is_taken {
            self.exchanged.denied.add(kind, datagram.len());
            return;
        }
        self.exchanged.sent.add(kind, datagram.len());
        if kind != Kind::Data {
            return;
        }
        let Some(told) = self.streams.get_mut(&bytes.stream_of_data()) else {
            return;
        };
        let Some(told) = told.last_mut() else { return };
        let from = told.position(bytes.i32_at(20), bytes.i32_at(8));
        let to = from + bytes.framed();
        if told.sent.is_none_or(|sent| from >= sent) {
            told.sent = Some(to);
            self.exchanged.first.add(datagram.len());
        } else {
            self.exchanged.again.datagrams += 1;
            self.exchanged.again.bytes += (to - from).unsigned_abs();
        }
    }

    /// A socket was handed this.
    pub(crate) fn enters(&mut self, datagram: &[u8], is_damaged: bool) {
        if is_damaged {
            self.exchanged.damaged.add(datagram.len());
        }
        let bytes = Bytes(datagram);
        let kind = bytes.kind();
        if !is_damaged {
            self.exchanged.received.add(kind, datagram.len());
        } else if kind == Kind::Nak && datagram.len() >= Bytes::NAK {
            self.exchanged.misled += 1;
        }
        // Of what was damaged it may still be believed where a stream is: what is held against it may be less then.
        match kind {
            Kind::Setup => {
                let (term_id, offset) = (bytes.i32_at(24), bytes.i32_at(8));
                let (all, at) = self.about(bytes);
                let told = &mut all[at];
                told.received = told.received.max(Some(told.position(term_id, offset)));
            }
            Kind::Data | Kind::Heartbeat => {
                for told in self.streams.entry(bytes.stream_of_data()).or_default() {
                    let from = told.position(bytes.i32_at(20), bytes.i32_at(8));
                    told.received = told.received.max(Some(from + bytes.framed()));
                }
            }
            Kind::Status => {
                let key = (bytes.i32_at(8), bytes.i32_at(12));
                for told in self.streams.entry(key).or_default() {
                    let at = told.position(bytes.i32_at(16), bytes.i32_at(20));
                    told.allowed = told.allowed.max(Some(at + i64::from(bytes.i32_at(24))));
                }
            }
            _ => {}
        }
    }

    /// The stream that a SETUP is about: where it is among those of its session.
    fn about(&mut self, setup: Bytes<'_>) -> (&mut Vec<Told>, usize) {
        let key = (setup.i32_at(12), setup.i32_at(16));
        let (initial_term_id, term_length) = (setup.i32_at(20), setup.i32_at(28));
        let all = self.streams.entry(key).or_default();
        let is_it = |told: &Told| told.is(initial_term_id, term_length);
        let at = all.iter().position(is_it).unwrap_or_else(|| {
            let told = Told {
                initial_term_id,
                term_length,
                sent: None,
                received: None,
                allowed: None,
            };
            all.insert(0, told);
            0
        });
        (all, at)
    }
}

/// A datagram. What lies behind its end counts as zero.
#[derive(Clone, Copy)]
struct Bytes<'d>(&'d [u8]);

impl Bytes<'_> {
    const HEADER: usize = 32;
    /// Length of a NAK.
    const NAK: usize = 28;

    fn byte(&self, at: usize) -> u8 {
        self.0.get(at).copied().unwrap_or_default()
    }

    fn i32_at(&self, at: usize) -> i32 {
        i32::from_le_bytes([0, 1, 2, 3].map(|byte| self.byte(at + byte)))
    }

    fn stream_of_data(&self) -> (i32, i32) {
        (self.i32_at(12), self.i32_at(16))
    }

    fn kind(&self) -> Kind {
        let flag = self.byte(5) & 0x80 != 0;
        match u16::from_le_bytes([self.byte(6), self.byte(7)]) {
            1 if self.i32_at(0) == 0 => Kind::Heartbeat,
            0 | 1 => Kind::Data,
            2 => Kind::Nak,
            3 if flag => Kind::SetupRequest,
            3 => Kind::Status,
            4 => Kind::Error,
            5 => Kind::Setup,
            6 if flag => Kind::RoundTripRequest,
            6 => Kind::RoundTripReply,
            11 => Kind::ResponseSetup,
            _ => Kind::Other,
        }
    }

    /// How far the frames of data in it go in the stream. The body of padding is not sent: padding is the last, unless a
    /// frame became padding on the way, which goes as far as before.
    fn framed(&self) -> i64 {
        let (mut at, mut framed) = (0, 0);
        while at + Self::HEADER <= self.0.len() {
            let length = self.i32_at(at);
            if length < Self::HEADER as i32 {
                break;
            }
            let aligned = (length as usize).next_multiple_of(Self::HEADER);
            framed += aligned as i64;
            at += aligned;
        }
        framed
    }
}

#[cfg(test)]
mod tests {
    use taran_protocol::frame::{DataHeader, I32, IntoBytes, Nak, Setup, StatusMessage};

    use super::*;

    const TERM: i32 = 64 * 1024;

    fn setup(initial: i32, active: i32, offset: i32) -> Vec<u8> {
        let setup = Setup {
            header: Setup::header(0),
            term_offset: offset.into(),
            session_id: I32::new(7),
            stream_id: I32::new(8),
            initial_term_id: initial.into(),
            active_term_id: active.into(),
            term_length: TERM.into(),
            mtu: I32::new(1408),
            ttl: I32::new(0),
        };
        setup.as_bytes().to_vec()
    }

    /// Frames of 64 bytes, and padding of 1,000 behind them if that is asked for.
    fn data(term_id: i32, offset: i32, count: usize, is_padded: bool) -> Vec<u8> {
        let mut datagram = Vec::new();
        for _ in 0..count {
            let at = datagram.len();
            let header = DataHeader::heartbeat(0xC0, 7, 8, term_id, offset + at as i32);
            datagram.extend(header.as_bytes());
            datagram[at] = 64;
            datagram.resize(at + 64, 1);
        }
        if is_padded {
            let at = datagram.len();
            let header = DataHeader::heartbeat(0, 7, 8, term_id, offset + at as i32);
            datagram.extend(header.as_bytes());
            datagram[at..at + 4].copy_from_slice(&1_000_i32.to_le_bytes());
            datagram[at + 6] = 0;
        }
        datagram
    }

    #[test]
    fn what_goes_out_again_is_told_from_what_goes_out_first() {
        let mut edge = Edge::default();
        edge.leaves(&setup(-5, -5, 0), false);
        edge.leaves(&data(-5, 0, 2, true), true);
        edge.leaves(&data(-5, 0, 1, false), true);
        edge.leaves(&data(-4, 0, 1, false), false);
        edge.leaves(&data(-4, 0, 1, false), true);
        let seen = edge.exchanged();
        assert_eq!((seen.first.datagrams, seen.first.bytes), (2, 160 + 64));
        assert_eq!((seen.again.datagrams, seen.again.bytes), (1, 64));
        assert_eq!(seen.denied.of(Kind::Setup).datagrams, 1);
        assert_eq!(seen.denied.of(Kind::Data).datagrams, 1);
        let told = edge.told(7, 8, -5, TERM).unwrap();
        assert_eq!(told.sent, Some(i64::from(TERM) + 64));
        // Another stream of the same session begins anew.
        edge.leaves(&setup(90, 90, 0), true);
        edge.leaves(&data(90, 0, 1, false), true);
        assert_eq!(edge.told(7, 8, 90, TERM).unwrap().sent, Some(64));
        assert_eq!(
            edge.told(7, 8, -5, TERM).unwrap().sent,
            Some(i64::from(TERM) + 64)
        );
    }

    #[test]
    fn what_comes_in_says_how_far_a_stream_is_and_may_be() {
        let mut edge = Edge::default();
        edge.enters(&setup(3, 4, 96), false);
        let told = |edge: &Edge| *edge.told(7, 8, 3, TERM).unwrap();
        assert_eq!(told(&edge).received, Some(i64::from(TERM) + 96));
        edge.enters(&data(4, 128, 1, false), false);
        assert_eq!(told(&edge).received, Some(i64::from(TERM) + 192));
        let heartbeat = DataHeader::heartbeat(0xC0, 7, 8, 4, 256);
        edge.enters(heartbeat.as_bytes(), false);
        assert_eq!(told(&edge).received, Some(i64::from(TERM) + 256));
        let status = |flags: u8| StatusMessage {
            header: StatusMessage::header(flags),
            session_id: I32::new(7),
            stream_id: I32::new(8),
            consumption_term_id: I32::new(3),
            consumption_term_offset: I32::new(64),
            receiver_window: I32::new(1_000),
            receiver_id: 1.into(),
        };
        edge.enters(status(StatusMessage::SEND_SETUP).as_bytes(), false);
        assert_eq!(told(&edge).allowed, None);
        edge.enters(status(0).as_bytes(), false);
        assert_eq!(told(&edge).allowed, Some(1_064));
        edge.enters(&[1, 2, 3], true);
        let seen = edge.exchanged();
        for kind in [
            Kind::Setup,
            Kind::Data,
            Kind::Heartbeat,
            Kind::Status,
            Kind::SetupRequest,
        ] {
            assert_eq!(seen.received.of(kind).datagrams, 1, "{kind:?}");
        }
        assert_eq!((seen.damaged.datagrams, seen.damaged.bytes), (1, 3));
    }

    #[test]
    fn a_frame_that_became_padding_goes_as_far_as_before() {
        let mut edge = Edge::default();
        edge.enters(&setup(-5, -5, 0), false);
        let mut datagram = data(-5, 0, 3, false);
        datagram[64 + 6] = 0;
        edge.enters(&datagram, true);
        let told = edge.told(7, 8, -5, TERM).unwrap();
        assert_eq!(told.received, Some(192));
    }

    #[test]
    fn naks_and_what_is_no_frame_are_seen() {
        let mut edge = Edge::default();
        edge.leaves(Nak::header().as_bytes(), true);
        edge.leaves(&[9; 40], true);
        assert_eq!(edge.exchanged().sent.of(Kind::Nak).datagrams, 1);
        assert_eq!(edge.exchanged().sent.of(Kind::Other).bytes, 40);
    }
}
