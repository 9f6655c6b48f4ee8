//! `fixed-loss`: a range of one term is lost once.

use taran_net::DatagramFilter;

use super::arguments::Arguments;
use super::streams::{Packet, Streams};
use crate::context::Conflict;

/// Loses the datagrams of a term, in each stream from the first one seen, as long as they are in order and begin before
/// the end of the range.
#[derive(Debug)]
pub(super) struct FixedLoss {
    term_id: i32,
    end: i64,
    streams: Streams,
}

impl FixedLoss {
    pub(super) fn build(arguments: &Arguments) -> Result<Box<dyn DatagramFilter>, Conflict> {
        arguments.only(&["term-id", "term-offset", "length"])?;
        let term_id: Option<i32> = arguments.value("term-id", "a whole number")?;
        let offset: Option<i32> = arguments.value("term-offset", "a whole number")?;
        let length: Option<u32> = arguments.value("length", "a number of bytes")?;
        Ok(Box::new(Self {
            term_id: term_id.unwrap_or(0),
            end: i64::from(offset.unwrap_or(0)) + i64::from(length.unwrap_or(0)),
            streams: Streams::default(),
        }))
    }
}

impl DatagramFilter for FixedLoss {
    fn admits(&mut self, datagram: &[u8]) -> bool {
        let Some(packet) = Packet::read(datagram, self.term_id) else {
            return true;
        };
        let Some(reached) = self.streams.reached(&packet) else {
            return true;
        };
        let is_lost = reached < self.end && (packet.begin..packet.end).contains(&reached);
        if is_lost {
            self.streams.lost(&packet);
        }
        !is_lost
    }
}
