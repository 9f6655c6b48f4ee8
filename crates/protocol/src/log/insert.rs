// SPDX-License-Identifier: Apache-2.0
//! Receiver operations on a term: insert packets, find gaps, fill gaps (docs/spec/shared-memory.md §7.9,
//! docs/spec/wire.md §5.4-5.5).

use taran_core::memory::Region;
use taran_core::sync::Ordering;

use super::frame::{commit, write_padding};
use super::term_reader::TermReader;
use super::{CorruptFrame, LogBuffers};
use crate::frame::{DATA_HEADER_LENGTH, DataHeader, IntoBytes, ValidatedFrames};
use crate::position::{FRAME_ALIGNMENT, is_frame_offset};

const HEADER: usize = DATA_HEADER_LENGTH as usize;

/// Bytes of a frame in the cache line of its length. That line is written last, because readers poll it.
const FIRST_LINE: usize = 64;

/// Inserts a packet into its term. Returns false if a frame is already there (the first copy wins), or if the packet is
/// a heartbeat or was not validated for a term of this length.
#[doc(alias = "TermRebuilder")]
#[inline]
pub fn insert(term: &Region, packet: &ValidatedFrames<'_>) -> bool {
    let room = term.len().saturating_sub(packet.term_offset() as usize);
    if packet.length_in_term() == 0
        || packet.wire_length() > room
        || !is_slot_empty(term, packet.term_offset())
    {
        return false;
    }
    write_packet(term, packet);
    true
}

/// Inserts a packet that was received directly into the term and validated there: publishes its first header, the only
/// part not yet in place. Returns false as [`insert`] does.
#[inline]
pub fn insert_received(term: &Region, header: &DataHeader) -> bool {
    let offset = header.term_offset.get();
    if !is_frame_offset(offset, term.len() as i32) || !is_slot_empty(term, offset) {
        return false;
    }
    publish(term, offset, header);
    true
}

/// Returns true if the slot holds no frame. Like readers, treats a negative length as none: overlapping frames of a
/// faulty sender can leave one.
#[inline]
fn is_slot_empty(term: &Region, offset: i32) -> bool {
    // Acquire: pairs with the release in `publish` and `fill_gap`, though only this thread writes here.
    term.atomic_i32(offset as usize).load(Ordering::Acquire) <= 0
}

/// Copies a packet of at least one frame into the term and publishes its first frame last.
#[inline]
pub(super) fn write_packet(term: &Region, packet: &ValidatedFrames<'_>) {
    let at = packet.term_offset() as usize;
    if let Some((first, rest)) = packet.body().split_at_checked(FIRST_LINE - HEADER) {
        term.write(at + FIRST_LINE, rest);
        term.write(at + HEADER, first);
    } else {
        term.write(at + HEADER, packet.body());
    }
    publish(term, packet.term_offset(), packet.header());
}

/// Writes and publishes the first header of a packet whose other bytes are in place.
#[inline]
fn publish(term: &Region, offset: i32, header: &DataHeader) {
    term.write(offset as usize + 4, &header.as_bytes()[4..]);
    commit(term, offset, header.header.frame_length.get());
}

/// Missing range of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// First missing byte.
    pub offset: i32,
    /// Missing bytes, a multiple of 32.
    pub length: i32,
}

/// Result of a gap scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapScan {
    /// End of the contiguous frames.
    pub offset: i32,
    /// The gap at `offset`, if a later frame or the limit lies beyond it.
    pub gap: Option<Gap>,
}

/// Returns the end of the contiguous committed frames from `offset`, up to `limit`.
///
/// # Errors
/// The first frame is corrupt, or `offset` is not a frame offset.
#[inline]
pub fn contiguous_end(term: &Region, offset: i32, limit: i32) -> Result<i32, CorruptFrame> {
    let mut reader = TermReader::new(term, offset, limit)?;
    while reader.next()?.is_some() {}
    Ok(reader.offset)
}

/// Finds the first gap from `offset` to `limit`. `limit` is the high-water mark, or the end of the term if the mark
/// lies in a later term (docs/spec/wire.md §5.5).
///
/// # Errors
/// The first frame is corrupt, or `offset` is not a frame offset.
#[doc(alias = "TermGapScanner")]
#[inline]
pub fn find_gap(term: &Region, offset: i32, limit: i32) -> Result<GapScan, CorruptFrame> {
    let limit = limit.min(term.len() as i32);
    let begin = contiguous_end(term, offset, limit)?;
    if begin >= limit {
        return Ok(GapScan {
            offset: begin,
            gap: None,
        });
    }
    let mut end = begin + FRAME_ALIGNMENT;
    // Relaxed: only this thread inserts frames, and the frames found are read again with acquire before they are used.
    while end < limit && term.atomic_i32(end as usize).load(Ordering::Relaxed) <= 0 {
        end += FRAME_ALIGNMENT;
    }
    let gap = Gap {
        offset: begin,
        length: end.min(limit) - begin,
    };
    Ok(GapScan {
        offset: begin,
        gap: Some(gap),
    })
}

/// Fills a gap with padding, for unreliable streams. Returns false if a frame has arrived in it.
#[doc(alias = "TermGapFiller")]
#[must_use]
pub fn fill_gap(log: &LogBuffers, term_id: i32, gap: Gap) -> bool {
    let geometry = log.geometry();
    let term = log.term_at(geometry.position(term_id, 0));
    let valid = is_frame_offset(gap.offset, geometry.term_length())
        && gap.length >= DATA_HEADER_LENGTH
        && gap.length % FRAME_ALIGNMENT == 0
        && gap.length <= geometry.term_length() - gap.offset;
    if !valid {
        return false;
    }
    let mut slots = (gap.offset..gap.offset + gap.length).step_by(FRAME_ALIGNMENT as usize);
    if !slots.all(|offset| is_slot_empty(term, offset)) {
        return false;
    }
    write_padding(term, log.ids(), term_id, gap.offset, gap.length);
    true
}
