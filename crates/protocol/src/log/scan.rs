//! What the sender may put on the wire (`docs/spec/wire.md §3.4`): committed frames, cut into datagrams.

use taran_core::memory::Region;
use taran_core::sync::Ordering;

use super::term_reader::TermReader;
use super::{CorruptFrame, LogFrame};
use crate::frame::DATA_HEADER_LENGTH;
use crate::position::align32;

/// What lies at the sender's offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// Nothing is committed.
    Empty,
    /// The first frame is longer than the limit: back pressure, if the limit is the window.
    OverLimit,
    /// One datagram, or a run of them.
    Ready(SegmentRun),
}

/// Bytes to send that lie back to back, as datagrams of `segment` bytes of which only the last may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentRun {
    /// Bytes to send.
    pub length: i32,
    /// Bytes in each datagram but the last.
    pub segment: i32,
    /// Bytes that are skipped after those sent: the body of padding, of which only the header is sent.
    pub padding: i32,
}

impl SegmentRun {
    /// How far the sender's position moves once everything is sent.
    #[inline]
    #[must_use]
    pub fn advance(&self) -> i32 {
        self.length + self.padding
    }

    /// How many datagrams it makes.
    #[inline]
    #[must_use]
    pub fn datagrams(&self) -> i32 {
        // Not `div_ceil`, which is not there for signed integers.
        (self.length + self.segment - 1) / self.segment
    }
}

/// Limits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimit {
    /// Bytes in a datagram: the MTU.
    pub datagram: i32,
    /// Bytes that flow control lets through. Padding counts with its header only.
    pub window: i32,
    /// Datagrams in a run.
    pub datagrams: i32,
    /// Bytes in a run, at least those of a datagram: the largest train that the network takes.
    pub bytes: i32,
}

/// One datagram: the committed frames from `offset` on that fit in `limit` bytes.
///
/// # Errors
/// The first frame is corrupt, or the offset is none.
#[inline]
pub fn scan(term: &Region, offset: i32, limit: i32) -> Result<Scan, CorruptFrame> {
    let mut reader = TermReader::new(term, offset, term.len() as i32)?;
    let mut length = 0;
    while length < limit
        && let Some(frame) = reader.next()?
    {
        if frame.is_padding() {
            if length + DATA_HEADER_LENGTH <= limit {
                let padding = frame.aligned_length() - DATA_HEADER_LENGTH;
                let length = length + DATA_HEADER_LENGTH;
                return Ok(Scan::Ready(SegmentRun {
                    length,
                    segment: length,
                    padding,
                }));
            }
        } else if length + frame.aligned_length() <= limit {
            length += frame.aligned_length();
            continue;
        }
        if length == 0 {
            return Ok(Scan::OverLimit);
        }
        break;
    }
    if length == 0 {
        Ok(Scan::Empty)
    } else {
        Ok(Scan::Ready(SegmentRun {
            length,
            segment: length,
            padding: 0,
        }))
    }
}

/// A run of datagrams of equal length, for a network that cuts them itself. The first datagram decides the length: it
/// takes what [`scan`] would take. The run ends with a datagram that is shorter, with padding, at the end of the term,
/// or at a limit.
///
/// # Errors
/// As [`scan`].
#[inline]
pub fn scan_run(term: &Region, offset: i32, limit: &RunLimit) -> Result<Scan, CorruptFrame> {
    let first = scan(term, offset, limit.datagram.min(limit.window))?;
    let Scan::Ready(mut run) = first else {
        return Ok(first);
    };
    let mut datagrams = 1;
    if run.padding == 0 {
        let room = limit
            .bytes
            .min(limit.window)
            .min(term.len() as i32 - offset);
        let max = limit.datagrams.min(room / run.segment) - datagrams;
        let equal = equal_datagrams(term, offset, run.segment, max);
        run.length += equal * run.segment;
        datagrams += equal;
    }
    while run.padding == 0
        && datagrams < limit.datagrams
        && run.segment <= limit.bytes - run.length
        && offset + run.length < term.len() as i32
    {
        let room = run.segment.min(limit.window - run.length);
        match scan(term, offset + run.length, room) {
            Ok(Scan::Ready(next)) => {
                run.length += next.length;
                run.padding = next.padding;
                datagrams += 1;
                if next.length < run.segment {
                    break;
                }
            }
            // A corrupt frame is met again as the first one.
            Ok(Scan::Empty | Scan::OverLimit) | Err(_) => break,
        }
    }
    Ok(Scan::Ready(run))
}

/// How many of the datagrams behind the one at `offset` are full of messages as long as its first one: up to `max`, all
/// of which would lie in the term. That they are the same length need not be waited for: where one ends is known before
/// its length has come from memory.
#[inline]
fn equal_datagrams(term: &Region, offset: i32, segment: i32, max: i32) -> i32 {
    let length = |at: i32| {
        // Acquire: pairs with the release of the length by whoever committed the frame.
        term.atomic_i32(at as usize).load(Ordering::Acquire)
    };
    let first = length(offset);
    // It was checked before, but that is memory of a publisher's.
    if !(DATA_HEADER_LENGTH..=segment).contains(&first) || segment % align32(first) != 0 {
        return 0;
    }
    let aligned = align32(first);
    let is_equal = |at: i32| length(at) == first && !LogFrame::new(term, at, first).is_padding();
    let mut found = 0;
    let mut at = offset + segment;
    while found < max {
        let end = at + segment;
        while at < end && is_equal(at) {
            at += aligned;
        }
        if at < end {
            break;
        }
        found += 1;
    }
    found
}
