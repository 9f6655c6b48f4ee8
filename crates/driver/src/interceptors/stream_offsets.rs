// SPDX-License-Identifier: Apache-2.0
//! Offset that loss has reached in each stream.

use std::collections::HashMap;

use taran_protocol::frame::{DataHeader, FrameType, FromBytes};

/// Maximum streams tracked; datagrams of further ones pass. Anyone can send invented ids.
const MAX_STREAMS: usize = 65_536;

/// A term offset for each stream and session, for all sockets of the driver together.
#[derive(Debug, Default)]
pub(super) struct StreamOffsets(HashMap<(i32, i32), i64>);

/// A datagram that starts with a data frame of the affected term.
#[derive(Debug)]
pub(super) struct Packet {
    key: (i32, i32),
    pub(super) begin: i64,
    pub(super) end: i64,
}

impl Packet {
    /// Returns `None` unless the datagram starts with a data frame of the term. Heartbeats are data frames too.
    pub(super) fn read(datagram: &[u8], term_id: i32) -> Option<Self> {
        let (header, _) = DataHeader::ref_from_prefix(datagram).ok()?;
        let is_data = header.header.frame_type() == FrameType::DATA;
        if !is_data || header.term_id.get() != term_id {
            return None;
        }
        let begin = i64::from(header.term_offset.get());
        Some(Self {
            key: (header.stream_id.get(), header.session_id.get()),
            begin,
            end: begin + datagram.len() as i64,
        })
    }
}

impl StreamOffsets {
    /// Returns the offset that loss has reached, initially the begin of the stream's first packet; `None` if too many
    /// streams are tracked.
    pub(super) fn next_offset(&mut self, packet: &Packet) -> Option<i64> {
        if self.0.len() >= MAX_STREAMS && !self.0.contains_key(&packet.key) {
            return None;
        }
        Some(*self.0.entry(packet.key).or_insert(packet.begin))
    }

    /// Records that the packet was dropped: loss continues behind it.
    pub(super) fn record_loss(&mut self, packet: &Packet) {
        self.0.insert(packet.key, packet.end);
    }
}
