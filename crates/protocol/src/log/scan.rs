// SPDX-License-Identifier: Apache-2.0
//! Scan for committed frames that the sender can transmit, cut into datagrams (docs/spec/wire.md §3.4).

use taran_core::memory::Region;
use taran_core::sync::Ordering;

use super::term_reader::TermReader;
use super::{CorruptFrame, LogFrame};
use crate::frame::DATA_HEADER_LENGTH;
use crate::position::align32;

/// Result of a scan at the sender's offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// No frame is committed.
    Empty,
    /// The first frame is longer than the limit: back-pressure, if the limit is the flow control window.
    OverLimit,
    /// One datagram, or a run of datagrams.
    Ready(SegmentRun),
}

/// Contiguous bytes to send as datagrams of `segment` bytes; only the last may be shorter. Suits one GSO send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentRun {
    /// Bytes to send.
    pub length: i32,
    /// Bytes in each datagram except the last.
    pub segment: i32,
    /// Bytes to skip after those sent: the body of a padding frame, of which only the header is sent.
    pub padding: i32,
}

impl SegmentRun {
    /// Returns the number of bytes by which the sender's position advances once everything is sent.
    #[inline]
    #[must_use]
    pub fn advance(&self) -> i32 {
        self.length + self.padding
    }

    /// Returns the number of datagrams.
    #[inline]
    #[must_use]
    pub fn datagrams(&self) -> i32 {
        // `div_ceil` is not stable for signed integers.
        (self.length + self.segment - 1) / self.segment
    }
}

/// Limits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimit {
    /// Maximum bytes in a datagram: the MTU.
    pub datagram: i32,
    /// Bytes that flow control allows. Padding counts with its header only.
    pub window: i32,
    /// Maximum datagrams in a run.
    pub datagrams: i32,
    /// Maximum bytes in a run, at least one datagram: the largest GSO batch that the network accepts.
    pub bytes: i32,
}

/// Returns one datagram: the committed frames from `offset` that fit in `limit` bytes.
///
/// # Errors
/// The first frame is corrupt, or `offset` is not a frame offset.
#[doc(alias = "TermScanner")]
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

/// Returns a run of datagrams of equal length, for a network that segments them itself (GSO). The first datagram, the
/// one that [`scan`] returns, determines the length. The run ends after a shorter datagram, after padding, at the end
/// of the term, or at a limit.
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
            // The next scan starts at the corrupt frame and reports it.
            Ok(Scan::Empty | Scan::OverLimit) | Err(_) => break,
        }
    }
    Ok(Scan::Ready(run))
}

/// Returns the number of datagrams after the one at `offset` that consist of frames as long as its first frame, at most
/// `max`. The caller ensures that `max` datagrams fit the term. Because all lengths are equal, the next offset is known
/// before the length has been loaded, so the loads do not depend on each other.
#[inline]
fn equal_datagrams(term: &Region, offset: i32, segment: i32, max: i32) -> i32 {
    let length = |at: i32| {
        // Acquire: pairs with the release of the length in `commit`.
        term.atomic_i32(at as usize).load(Ordering::Acquire)
    };
    let first = length(offset);
    // Validated again: the publisher can change shared memory between two loads.
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
