//! Timestamps in messages (docs/spec/wire.md §7.1): nanoseconds since 1970, written into every frame that begins a message and has
//! room for them, on the way out into the log, on the way in into what was received.

use std::sync::Arc;

use taran_core::clock::WallClock;
use taran_core::memory::Region;
use taran_net::ReceiveBatch;
use taran_protocol::frame::{DataHeader, FrameType, FromBytes};
use taran_protocol::position::align32;
use taran_protocol::uri::TimestampOffset;

const HEADER: usize = size_of::<DataHeader>();
const RESERVED_VALUE: usize = std::mem::offset_of!(DataHeader, reserved_value);
const TIMESTAMP: usize = size_of::<i64>();

/// Writes the time of sending: `channel-snd-ts-offset`.
#[derive(Clone, Debug)]
pub struct SendTimestamp {
    /// Where to.
    pub offset: TimestampOffset,
    /// Whose time.
    pub clock: Arc<dyn WallClock>,
}

impl SendTimestamp {
    /// Stamps committed frames that lie back to back in a term from `begin` to `end`.
    pub(crate) fn write(&self, term: &Region, begin: usize, end: usize) {
        let now_ns = self.clock.epoch_nanos().to_le_bytes();
        let mut at = begin;
        while at + HEADER <= end {
            let mut bytes = [0; HEADER];
            term.read(at, &mut bytes);
            let Some(frame) = Beginning::read(&bytes) else {
                return;
            };
            if let Some(spot) = frame.spot(self.offset, end - at) {
                term.write(at + spot, &now_ns);
            }
            at += frame.length_in_term;
        }
    }
}

/// Writes the time of receiving: `media-rcv-ts-offset`, `channel-rcv-ts-offset`.
#[derive(Clone, Debug)]
pub struct ReceiveTimestamps {
    /// Where the kernel's time goes.
    pub media: Option<TimestampOffset>,
    /// Where the driver's time goes.
    pub channel: Option<TimestampOffset>,
    /// The driver's time.
    pub clock: Arc<dyn WallClock>,
}

impl ReceiveTimestamps {
    /// Stamps all that has arrived.
    pub(crate) fn write(&self, batch: &mut ReceiveBatch) {
        let now_ns = self.clock.epoch_nanos();
        batch.for_each_mut(|datagram, arrived_ns| {
            if let (Some(offset), Some(arrived_ns)) = (self.media, arrived_ns) {
                stamp(datagram, offset, arrived_ns);
            }
            if let Some(offset) = self.channel {
                stamp(datagram, offset, now_ns);
            }
        });
    }
}

/// Stamps a datagram, of which nothing is known yet.
fn stamp(datagram: &mut [u8], offset: TimestampOffset, time_ns: i64) {
    let mut rest = datagram;
    while let Some(frame) = Beginning::read(rest) {
        let room = rest.len();
        if let Some(spot) = frame.spot(offset, room) {
            rest[spot..spot + TIMESTAMP].copy_from_slice(&time_ns.to_le_bytes());
        }
        rest = rest.get_mut(frame.length_in_term..).unwrap_or_default();
    }
}

/// What the first bytes of a data or padding frame say.
struct Beginning {
    length: usize,
    length_in_term: usize,
    begins_message: bool,
}

impl Beginning {
    /// Nothing for anything else, heartbeats included.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (header, _) = DataHeader::ref_from_prefix(bytes).ok()?;
        let frame_type = header.header.frame_type();
        let length = header.header.frame_length.get();
        let is_frame = (HEADER as i32..=i32::MAX - 31).contains(&length)
            && matches!(frame_type, FrameType::DATA | FrameType::PAD);
        is_frame.then(|| Self {
            length: length as usize,
            length_in_term: align32(length) as usize,
            begins_message: frame_type == FrameType::DATA
                && header.header.flags & DataHeader::BEGIN != 0,
        })
    }

    /// Where in the frame the timestamp goes, if it has room for it within `room` bytes.
    fn spot(&self, offset: TimestampOffset, room: usize) -> Option<usize> {
        let spot = match offset {
            TimestampOffset::Reserved => RESERVED_VALUE,
            TimestampOffset::Payload(offset) => HEADER + usize::try_from(offset).ok()?,
        };
        let has_room = spot + TIMESTAMP <= self.length.min(room);
        (self.begins_message && has_room).then_some(spot)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use taran_core::clock::{ManualClock, Now};
    use taran_protocol::frame::IntoBytes;

    use super::*;

    const NOW_NS: i64 = 1_700_000_000_000_000_000;

    fn clock() -> Arc<dyn WallClock> {
        Arc::new(ManualClock::new(Now {
            nanos: 5,
            epoch_millis: NOW_NS / 1_000_000,
        }))
    }

    /// A frame as it lies in a log, its payload all ones.
    fn frame(flags: u8, frame_type: FrameType, payload: usize) -> Vec<u8> {
        let mut header = DataHeader::heartbeat(flags, 1, 2, 3, 0);
        header.header.frame_length = ((HEADER + payload) as i32).into();
        header.header.frame_type = frame_type.0.into();
        let mut bytes = header.as_bytes().to_vec();
        bytes.resize(HEADER + payload, 1);
        bytes.resize(bytes.len().next_multiple_of(32), 0);
        bytes
    }

    fn i64_at(bytes: &[u8], at: usize) -> i64 {
        i64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
    }

    const ONES: i64 = 0x0101_0101_0101_0101;

    #[test]
    fn every_frame_that_begins_a_message_is_stamped_and_no_other() {
        let mut datagram = [
            frame(0xC0, FrameType::DATA, 20),
            frame(0x80, FrameType::DATA, 20),
            frame(0x40, FrameType::DATA, 20),
            frame(0xC0, FrameType::PAD, 0),
        ]
        .concat();
        stamp(&mut datagram, TimestampOffset::Payload(4), 77);
        stamp(&mut datagram, TimestampOffset::Reserved, 99);
        let payloads = [0, 64, 128].map(|at| i64_at(&datagram, at + 36));
        assert_eq!(payloads, [77, 77, ONES]);
        let reserved = [0, 64, 128, 192].map(|at| i64_at(&datagram, at + 24));
        assert_eq!(reserved, [99, 99, 0, 0]);
    }

    #[test]
    fn a_timestamp_fits_the_payload_to_the_byte() {
        for (offset, expected) in [(12, 77), (13, ONES), (-5, ONES), (i32::MAX, ONES)] {
            let mut datagram = frame(0xC0, FrameType::DATA, 20);
            let untouched = datagram.clone();
            stamp(&mut datagram, TimestampOffset::Payload(offset), 77);
            assert_eq!(i64_at(&datagram, 44), expected, "{offset}");
            assert_eq!(datagram == untouched, expected == ONES);
        }
    }

    #[test]
    fn what_is_no_data_is_left_alone() {
        let heartbeat = DataHeader::heartbeat(0xC0, 1, 2, 3, 64);
        let mut setup = frame(0xC0, FrameType::SETUP, 8);
        let mut longer_than_it_is = frame(0xC0, FrameType::DATA, 20);
        longer_than_it_is[..4].copy_from_slice(&i32::MAX.to_le_bytes());
        let mut negative = frame(0xC0, FrameType::DATA, 20);
        negative[..4].copy_from_slice(&(-64i32).to_le_bytes());
        for datagram in [
            &mut heartbeat.as_bytes().to_vec(),
            &mut setup,
            &mut longer_than_it_is,
            &mut negative,
            &mut vec![1; 31],
            &mut Vec::new(),
        ] {
            let untouched = datagram.clone();
            stamp(datagram, TimestampOffset::Reserved, 99);
            stamp(datagram, TimestampOffset::Payload(0), 99);
            assert_eq!(*datagram, untouched);
        }
    }

    #[test]
    fn frames_in_a_term_are_stamped_up_to_the_end_of_what_is_sent() {
        let term = Region::anonymous(65_536).unwrap();
        for at in [0, 64, 128] {
            term.write(at, &frame(0xC0, FrameType::DATA, 16));
        }
        let timestamp = SendTimestamp {
            offset: TimestampOffset::Payload(8),
            clock: clock(),
        };
        timestamp.write(&term, 0, 128);
        let stamps = [0, 64, 128].map(|at| i64_at(term.bytes(at, 64), 40));
        assert_eq!(stamps, [NOW_NS, NOW_NS, ONES]);
    }

    #[test]
    fn arrivals_are_stamped_with_the_kernels_time_and_with_the_drivers() {
        let mut batch = ReceiveBatch::new(2);
        let source = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        for arrived_ns in [Some(55), None] {
            batch.push(source, arrived_ns, &frame(0xC0, FrameType::DATA, 16));
        }
        let timestamps = ReceiveTimestamps {
            media: Some(TimestampOffset::Reserved),
            channel: Some(TimestampOffset::Payload(0)),
            clock: clock(),
        };
        timestamps.write(&mut batch);
        let seen: Vec<_> = batch
            .datagrams()
            .map(|d| (i64_at(d.payload, 24), i64_at(d.payload, 32)))
            .collect();
        assert_eq!(seen, [(55, NOW_NS), (0, NOW_NS)]);
    }
}
