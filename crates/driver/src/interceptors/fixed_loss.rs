// SPDX-License-Identifier: Apache-2.0
//! `fixed-loss`: drops a range of one term once.

use taran_net::DatagramFilter;

use super::arguments::Arguments;
use super::stream_offsets::{Packet, StreamOffsets};
use crate::context::Conflict;

/// Drops the datagrams of a term in each stream, from the first one seen, as long as they are in order and begin before
/// the end of the range.
#[derive(Debug)]
pub(super) struct FixedLoss {
    term_id: i32,
    end: i64,
    offsets: StreamOffsets,
}

impl FixedLoss {
    pub(super) fn build(arguments: &Arguments) -> Result<Box<dyn DatagramFilter>, Conflict> {
        arguments.allow_only(&["term-id", "term-offset", "length"])?;
        let term_id: Option<i32> = arguments.parse("term-id", "an integer")?;
        let offset: Option<i32> = arguments.parse("term-offset", "an integer")?;
        let length: Option<u32> = arguments.parse("length", "a number of bytes")?;
        Ok(Box::new(Self {
            term_id: term_id.unwrap_or(0),
            end: i64::from(offset.unwrap_or(0)) + i64::from(length.unwrap_or(0)),
            offsets: StreamOffsets::default(),
        }))
    }
}

impl DatagramFilter for FixedLoss {
    fn admits(&mut self, datagram: &[u8]) -> bool {
        let Some(packet) = Packet::read(datagram, self.term_id) else {
            return true;
        };
        let Some(next_offset) = self.offsets.next_offset(&packet) else {
            return true;
        };
        let is_lost = next_offset < self.end && (packet.begin..packet.end).contains(&next_offset);
        if is_lost {
            self.offsets.record_loss(&packet);
        }
        !is_lost
    }
}
