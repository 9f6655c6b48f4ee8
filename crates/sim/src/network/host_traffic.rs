// SPDX-License-Identifier: Apache-2.0
//! Counts the traffic of one host by frame type. Frames are parsed here from their bytes as the specification describes
//! them (`docs/spec/wire.md §1`), independently of the code that encodes and decodes them elsewhere, so that driver
//! counters can be compared with an independent count.

use std::collections::BTreeMap;

use super::faults::DatagramCounts;

/// Type of a datagram, from its first frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the frames")]
pub enum FrameKind {
    /// Data and padding frames.
    Data,
    /// Data frame without a body.
    Heartbeat,
    Setup,
    Nak,
    /// Status message.
    Status,
    /// Status message that only requests a SETUP.
    SetupRequest,
    Error,
    RoundTripRequest,
    RoundTripReply,
    ResponseSetup,
    Other,
}

impl FrameKind {
    /// All frame kinds.
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

/// Datagrams and bytes per frame kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts([DatagramCounts; FrameKind::ALL.len()]);

impl FrameCounts {
    /// Returns the counts of one kind.
    #[must_use]
    pub fn of(&self, kind: FrameKind) -> DatagramCounts {
        self.0[kind as usize]
    }

    fn add(&mut self, kind: FrameKind, bytes: usize) {
        self.0[kind as usize].add(bytes);
    }

    /// Returns the difference to an earlier snapshot.
    fn since(&self, earlier: &Self) -> Self {
        Self(std::array::from_fn(|kind| {
            self.0[kind].since(earlier.0[kind])
        }))
    }
}

impl DatagramCounts {
    fn add(&mut self, bytes: usize) {
        self.datagrams += 1;
        self.bytes += bytes as u64;
    }

    fn since(self, earlier: Self) -> Self {
        Self {
            datagrams: self.datagrams - earlier.datagrams,
            bytes: self.bytes - earlier.bytes,
        }
    }
}

/// Traffic that the sockets of one host have sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficCounts {
    /// Accepted from senders, whether delivered or not.
    pub sent: FrameCounts,
    /// Rejected: the send buffer was full, or there was no route.
    pub rejected: FrameCounts,
    /// Accepted data that was sent for the first time.
    pub first_sent: DatagramCounts,
    /// Accepted data that had been sent earlier. Bytes are stream bytes, including the bodies of padding.
    pub retransmitted: DatagramCounts,
    /// Delivered to receivers unchanged.
    pub received: FrameCounts,
    /// Delivered to receivers after damage, or forged.
    pub damaged: DatagramCounts,
    /// NAKs among the damaged datagrams. They may request ranges that start inside a frame.
    pub damaged_naks: u64,
}

impl TrafficCounts {
    /// Returns the difference to an earlier snapshot.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            sent: self.sent.since(&earlier.sent),
            rejected: self.rejected.since(&earlier.rejected),
            first_sent: self.first_sent.since(earlier.first_sent),
            retransmitted: self.retransmitted.since(earlier.retransmitted),
            received: self.received.since(&earlier.received),
            damaged: self.damaged.since(earlier.damaged),
            damaged_naks: self.damaged_naks - earlier.damaged_naks,
        }
    }
}

/// State of one stream as observed from its frames. Positions count from the first term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedStream {
    initial_term_id: i32,
    term_length: i32,
    /// End of the furthest data sent.
    pub sent: Option<i64>,
    /// Furthest position received, from data, a heartbeat or a SETUP.
    pub received: Option<i64>,
    /// Furthest window end received in a status message.
    pub window_end: Option<i64>,
}

impl ObservedStream {
    fn is(&self, initial_term_id: i32, term_length: i32) -> bool {
        (self.initial_term_id, self.term_length) == (initial_term_id, term_length)
    }

    fn position(&self, term_id: i32, offset: i32) -> i64 {
        let terms = match term_id.wrapping_sub(self.initial_term_id) {
            // The end of the last possible term.
            i32::MIN => 1 << 31,
            terms => i64::from(terms),
        };
        terms * i64::from(self.term_length) + i64::from(offset)
    }
}

/// Traffic of one host.
#[derive(Debug, Default)]
pub struct HostTraffic {
    counts: TrafficCounts,
    /// By session and stream id. Of several streams that differ in initial term id, the last one is the one being sent.
    streams: BTreeMap<(i32, i32), Vec<ObservedStream>>,
}

impl HostTraffic {
    /// Returns the counts so far.
    #[must_use]
    pub fn counts(&self) -> &TrafficCounts {
        &self.counts
    }

    /// Returns the observed state of a stream.
    #[must_use]
    pub fn stream(
        &self,
        session: i32,
        stream: i32,
        initial_term_id: i32,
        term_length: i32,
    ) -> Option<&ObservedStream> {
        let mut known = self.streams.get(&(session, stream))?.iter();
        known.find(|known| known.is(initial_term_id, term_length))
    }

    /// Forgets all streams: the driver that sent and received them is gone.
    pub(super) fn forget_streams(&mut self) {
        self.streams.clear();
    }

    /// Records a send attempt of a socket.
    pub(crate) fn on_send(&mut self, datagram: &[u8], is_accepted: bool) {
        let bytes = DatagramView(datagram);
        let kind = bytes.kind();
        if kind == FrameKind::Setup {
            let (all, at) = self.stream_of_setup(bytes);
            let mut stream = all.remove(at);
            // A stream at another position is a new stream that reuses the session.
            let present = stream.position(bytes.i32_at(24), bytes.i32_at(8));
            stream.sent = stream.sent.filter(|sent| *sent == present);
            all.push(stream);
        }
        if !is_accepted {
            self.counts.rejected.add(kind, datagram.len());
            return;
        }
        self.counts.sent.add(kind, datagram.len());
        if kind != FrameKind::Data {
            return;
        }
        let Some(known) = self.streams.get_mut(&bytes.stream_of_data()) else {
            return;
        };
        let Some(stream) = known.last_mut() else {
            return;
        };
        let from = stream.position(bytes.i32_at(20), bytes.i32_at(8));
        let to = from + bytes.framed_length();
        if stream.sent.is_none_or(|sent| from >= sent) {
            stream.sent = Some(to);
            self.counts.first_sent.add(datagram.len());
        } else {
            self.counts.retransmitted.datagrams += 1;
            self.counts.retransmitted.bytes += (to - from).unsigned_abs();
        }
    }

    /// Records a datagram delivered to a socket.
    pub(crate) fn on_receive(&mut self, datagram: &[u8], is_damaged: bool) {
        if is_damaged {
            self.counts.damaged.add(datagram.len());
        }
        let bytes = DatagramView(datagram);
        let kind = bytes.kind();
        if !is_damaged {
            self.counts.received.add(kind, datagram.len());
        } else if kind == FrameKind::Nak && datagram.len() >= DatagramView::NAK {
            self.counts.damaged_naks += 1;
        }
        // The driver may use stream positions from damaged frames, so these are recorded as well; a consistency check
        // against the larger value is weaker.
        match kind {
            FrameKind::Setup => {
                let (term_id, offset) = (bytes.i32_at(24), bytes.i32_at(8));
                let (all, at) = self.stream_of_setup(bytes);
                let stream = &mut all[at];
                stream.received = stream.received.max(Some(stream.position(term_id, offset)));
            }
            FrameKind::Data | FrameKind::Heartbeat => {
                for stream in self.streams.entry(bytes.stream_of_data()).or_default() {
                    let from = stream.position(bytes.i32_at(20), bytes.i32_at(8));
                    stream.received = stream.received.max(Some(from + bytes.framed_length()));
                }
            }
            FrameKind::Status => {
                let key = (bytes.i32_at(8), bytes.i32_at(12));
                for stream in self.streams.entry(key).or_default() {
                    let at = stream.position(bytes.i32_at(16), bytes.i32_at(20));
                    stream.window_end = stream
                        .window_end
                        .max(Some(at + i64::from(bytes.i32_at(24))));
                }
            }
            _ => {}
        }
    }

    /// Returns the streams of the session that a SETUP describes and the index of the described one, which is created
    /// if absent.
    fn stream_of_setup(&mut self, setup: DatagramView<'_>) -> (&mut Vec<ObservedStream>, usize) {
        let key = (setup.i32_at(12), setup.i32_at(16));
        let (initial_term_id, term_length) = (setup.i32_at(20), setup.i32_at(28));
        let all = self.streams.entry(key).or_default();
        let is_described = |stream: &ObservedStream| stream.is(initial_term_id, term_length);
        let at = all.iter().position(is_described).unwrap_or_else(|| {
            let stream = ObservedStream {
                initial_term_id,
                term_length,
                sent: None,
                received: None,
                window_end: None,
            };
            all.insert(0, stream);
            0
        });
        (all, at)
    }
}

/// Field access to a datagram. Bytes beyond its end read as zero.
#[derive(Clone, Copy)]
struct DatagramView<'d>(&'d [u8]);

impl DatagramView<'_> {
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

    fn kind(&self) -> FrameKind {
        let flag = self.byte(5) & 0x80 != 0;
        match u16::from_le_bytes([self.byte(6), self.byte(7)]) {
            1 if self.i32_at(0) == 0 => FrameKind::Heartbeat,
            0 | 1 => FrameKind::Data,
            2 => FrameKind::Nak,
            3 if flag => FrameKind::SetupRequest,
            3 => FrameKind::Status,
            4 => FrameKind::Error,
            5 => FrameKind::Setup,
            6 if flag => FrameKind::RoundTripRequest,
            6 => FrameKind::RoundTripReply,
            11 => FrameKind::ResponseSetup,
            _ => FrameKind::Other,
        }
    }

    /// Returns the number of stream bytes that the data frames cover. The body of padding is not sent. A padding frame
    /// is the last frame of a datagram, unless damage turned a data frame into padding; that frame keeps its length.
    fn framed_length(&self) -> i64 {
        let (mut at, mut total) = (0, 0);
        while at + Self::HEADER <= self.0.len() {
            let length = self.i32_at(at);
            if length < Self::HEADER as i32 {
                break;
            }
            let aligned = (length as usize).next_multiple_of(Self::HEADER);
            total += aligned as i64;
            at += aligned;
        }
        total
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

    /// Builds data frames of 64 bytes, optionally followed by a padding frame of 1,000 bytes.
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
    fn data_below_the_sent_position_counts_as_retransmitted() {
        let mut traffic = HostTraffic::default();
        traffic.on_send(&setup(-5, -5, 0), false);
        traffic.on_send(&data(-5, 0, 2, true), true);
        traffic.on_send(&data(-5, 0, 1, false), true);
        traffic.on_send(&data(-4, 0, 1, false), false);
        traffic.on_send(&data(-4, 0, 1, false), true);
        let counts = traffic.counts();
        assert_eq!(
            (counts.first_sent.datagrams, counts.first_sent.bytes),
            (2, 160 + 64)
        );
        assert_eq!(
            (counts.retransmitted.datagrams, counts.retransmitted.bytes),
            (1, 64)
        );
        assert_eq!(counts.rejected.of(FrameKind::Setup).datagrams, 1);
        assert_eq!(counts.rejected.of(FrameKind::Data).datagrams, 1);
        let stream = traffic.stream(7, 8, -5, TERM).unwrap();
        assert_eq!(stream.sent, Some(i64::from(TERM) + 64));
        // Another stream of the same session starts at its own position.
        traffic.on_send(&setup(90, 90, 0), true);
        traffic.on_send(&data(90, 0, 1, false), true);
        assert_eq!(traffic.stream(7, 8, 90, TERM).unwrap().sent, Some(64));
        assert_eq!(
            traffic.stream(7, 8, -5, TERM).unwrap().sent,
            Some(i64::from(TERM) + 64)
        );
    }

    #[test]
    fn received_frames_update_stream_position_and_window() {
        let mut traffic = HostTraffic::default();
        traffic.on_receive(&setup(3, 4, 96), false);
        let stream = |traffic: &HostTraffic| *traffic.stream(7, 8, 3, TERM).unwrap();
        assert_eq!(stream(&traffic).received, Some(i64::from(TERM) + 96));
        traffic.on_receive(&data(4, 128, 1, false), false);
        assert_eq!(stream(&traffic).received, Some(i64::from(TERM) + 192));
        let heartbeat = DataHeader::heartbeat(0xC0, 7, 8, 4, 256);
        traffic.on_receive(heartbeat.as_bytes(), false);
        assert_eq!(stream(&traffic).received, Some(i64::from(TERM) + 256));
        let status = |flags: u8| StatusMessage {
            header: StatusMessage::header(flags),
            session_id: I32::new(7),
            stream_id: I32::new(8),
            consumption_term_id: I32::new(3),
            consumption_term_offset: I32::new(64),
            receiver_window: I32::new(1_000),
            receiver_id: 1.into(),
        };
        traffic.on_receive(status(StatusMessage::SEND_SETUP).as_bytes(), false);
        assert_eq!(stream(&traffic).window_end, None);
        traffic.on_receive(status(0).as_bytes(), false);
        assert_eq!(stream(&traffic).window_end, Some(1_064));
        traffic.on_receive(&[1, 2, 3], true);
        let counts = traffic.counts();
        for kind in [
            FrameKind::Setup,
            FrameKind::Data,
            FrameKind::Heartbeat,
            FrameKind::Status,
            FrameKind::SetupRequest,
        ] {
            assert_eq!(counts.received.of(kind).datagrams, 1, "{kind:?}");
        }
        assert_eq!((counts.damaged.datagrams, counts.damaged.bytes), (1, 3));
    }

    #[test]
    fn frame_damaged_into_padding_keeps_its_length() {
        let mut traffic = HostTraffic::default();
        traffic.on_receive(&setup(-5, -5, 0), false);
        let mut datagram = data(-5, 0, 3, false);
        datagram[64 + 6] = 0;
        traffic.on_receive(&datagram, true);
        let stream = traffic.stream(7, 8, -5, TERM).unwrap();
        assert_eq!(stream.received, Some(192));
    }

    #[test]
    fn naks_and_unknown_frames_are_counted() {
        let mut traffic = HostTraffic::default();
        traffic.on_send(Nak::header().as_bytes(), true);
        traffic.on_send(&[9; 40], true);
        assert_eq!(traffic.counts().sent.of(FrameKind::Nak).datagrams, 1);
        assert_eq!(traffic.counts().sent.of(FrameKind::Other).bytes, 40);
    }
}
