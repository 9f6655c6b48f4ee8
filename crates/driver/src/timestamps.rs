// SPDX-License-Identifier: Apache-2.0
//! Timestamps in messages: nanoseconds since 1970, written into every frame that begins a message and has room for
//! them. Send timestamps are written into the log, receive timestamps into the received datagrams (docs/spec/wire.md
//! §7.1).

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

/// Send timestamps: `channel-snd-ts-offset`.
#[derive(Clone, Debug)]
pub(crate) struct SendTimestamp {
    /// Offset in the message.
    pub(crate) offset: TimestampOffset,
    /// Clock.
    pub(crate) clock: Arc<dyn WallClock>,
}

impl SendTimestamp {
    /// Writes the current time into committed frames that lie contiguously in a term from `begin` to `end`.
    pub(crate) fn write(&self, term: &Region, begin: usize, end: usize) {
        let now_ns = self.clock.epoch_nanos().to_le_bytes();
        let mut at = begin;
        while at + HEADER <= end {
            let mut bytes = [0; HEADER];
            term.read(at, &mut bytes);
            let Some(frame) = FrameInfo::read(&bytes) else {
                return;
            };
            if let Some(offset_in_frame) = frame.timestamp_at(self.offset, end - at) {
                term.write(at + offset_in_frame, &now_ns);
            }
            at += frame.length_in_term;
        }
    }
}

/// Receive timestamps: `media-rcv-ts-offset`, `channel-rcv-ts-offset`.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveTimestamps {
    /// Offset of the kernel's timestamp.
    pub(crate) media: Option<TimestampOffset>,
    /// Offset of the driver's timestamp.
    pub(crate) channel: Option<TimestampOffset>,
    /// Clock of the driver's timestamp.
    pub(crate) clock: Arc<dyn WallClock>,
}

impl ReceiveTimestamps {
    /// Writes timestamps into all datagrams of a batch.
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

/// Writes a timestamp into a datagram that was not validated yet.
fn stamp(datagram: &mut [u8], offset: TimestampOffset, time_ns: i64) {
    let mut rest = datagram;
    while let Some(frame) = FrameInfo::read(rest) {
        let room = rest.len();
        if let Some(offset_in_frame) = frame.timestamp_at(offset, room) {
            rest[offset_in_frame..offset_in_frame + TIMESTAMP]
                .copy_from_slice(&time_ns.to_le_bytes());
        }
        rest = rest.get_mut(frame.length_in_term..).unwrap_or_default();
    }
}

/// Parsed header of a data or padding frame.
struct FrameInfo {
    length: usize,
    length_in_term: usize,
    begins_message: bool,
}

impl FrameInfo {
    /// Returns `None` for anything else, including heartbeats.
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

    /// Returns the offset of the timestamp in the frame, if it fits within `room` bytes.
    fn timestamp_at(&self, offset: TimestampOffset, room: usize) -> Option<usize> {
        let offset_in_frame = match offset {
            TimestampOffset::Reserved => RESERVED_VALUE,
            TimestampOffset::Payload(offset) => HEADER + usize::try_from(offset).ok()?,
        };
        let has_room = offset_in_frame + TIMESTAMP <= self.length.min(room);
        (self.begins_message && has_room).then_some(offset_in_frame)
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
    fn stamp_writes_only_first_frame_of_each_message() {
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
    fn stamp_requires_room_for_all_bytes() {
        for (offset, expected) in [(12, 77), (13, ONES), (-5, ONES), (i32::MAX, ONES)] {
            let mut datagram = frame(0xC0, FrameType::DATA, 20);
            let untouched = datagram.clone();
            stamp(&mut datagram, TimestampOffset::Payload(offset), 77);
            assert_eq!(i64_at(&datagram, 44), expected, "{offset}");
            assert_eq!(datagram == untouched, expected == ONES);
        }
    }

    #[test]
    fn stamp_of_other_bytes_changes_nothing() {
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
    fn send_timestamp_is_written_up_to_end() {
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
    fn receive_timestamps_of_kernel_and_driver_are_written() {
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
