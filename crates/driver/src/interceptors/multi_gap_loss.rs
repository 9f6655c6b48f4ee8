// SPDX-License-Identifier: Apache-2.0
//! `multi-gap-loss`: drops many gaps of equal length at regular distances in one term, each once.

use taran_net::DatagramFilter;

use super::arguments::Arguments;
use super::stream_offsets::{Packet, StreamOffsets};
use crate::context::Conflict;

/// Drops datagrams that touch a gap. Gaps lie at the multiples of the distance, except zero.
#[derive(Debug)]
pub(super) struct MultiGapLoss {
    term_id: i32,
    /// A power of two.
    distance: i64,
    length: i64,
    /// Datagrams that begin beyond this offset pass.
    last: i64,
    offsets: StreamOffsets,
}

impl MultiGapLoss {
    pub(super) fn build(arguments: &Arguments) -> Result<Box<dyn DatagramFilter>, Conflict> {
        arguments.allow_only(&["term-id", "gap-radix", "gap-length", "total-gaps"])?;
        let term_id: Option<i32> = arguments.parse("term-id", "an integer")?;
        let needed = "a number of bytes from 1 to 1073741824";
        let radix = arguments.parse_with("gap-radix", needed, |text| {
            let radix = text.parse::<u32>().ok();
            radix.filter(|radix| (1..=1 << 30).contains(radix))
        })?;
        let Some(radix) = radix else {
            return Err(arguments.conflict(format_args!("needs gap-radix, {needed}")));
        };
        let length: Option<u32> = arguments.parse("gap-length", "a number of bytes")?;
        let gaps: Option<u32> = arguments.parse("total-gaps", "a number of gaps")?;
        let length = i64::from(length.unwrap_or(0));
        Ok(Box::new(Self {
            term_id: term_id.unwrap_or(0),
            distance: i64::from(radix.next_power_of_two()),
            length,
            last: i64::from(gaps.unwrap_or(0)) * i64::from(radix) + length,
            offsets: StreamOffsets::default(),
        }))
    }

    fn touches_gap(&self, packet: &Packet) -> bool {
        let before = packet.begin & !(self.distance - 1);
        let is_in_previous =
            before > 0 && (packet.begin == before || packet.begin < before + self.length);
        let next = before + self.distance;
        is_in_previous || packet.end > next
    }
}

impl DatagramFilter for MultiGapLoss {
    fn admits(&mut self, datagram: &[u8]) -> bool {
        let Some(packet) = Packet::read(datagram, self.term_id) else {
            return true;
        };
        if packet.begin > self.last {
            return true;
        }
        let Some(next_offset) = self.offsets.next_offset(&packet) else {
            return true;
        };
        let is_lost = next_offset <= packet.begin && self.touches_gap(&packet);
        if is_lost {
            self.offsets.record_loss(&packet);
        }
        !is_lost
    }
}
