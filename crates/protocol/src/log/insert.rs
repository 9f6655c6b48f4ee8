//! What the receiver does with a term (`docs/spec/shared-memory.md §7.9`, `docs/spec/wire.md §5.4-5.5`): place packets, look for gaps, fill them.

use taran_core::memory::Region;
use taran_core::sync::Ordering;

use super::frame::{commit, write_padding};
use super::term_reader::TermReader;
use super::{CorruptFrame, LogBuffers};
use crate::frame::{DATA_HEADER_LENGTH, DataHeader, IntoBytes, ValidatedFrames};
use crate::position::{FRAME_ALIGNMENT, is_frame_offset};

const HEADER: usize = DATA_HEADER_LENGTH as usize;

/// Bytes of a frame that share a line with its length, which is touched last, as readers watch it.
const FIRST_LINE: usize = 64;

/// Places a packet in the term that its term id belongs to. The first copy wins: false if there is something already,
/// or if the packet is a heartbeat or was not walked for a term of this length.
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

/// The same for a packet that was walked where it belongs: all but its first header was received into its place.
#[inline]
pub fn insert_received(term: &Region, header: &DataHeader) -> bool {
    let offset = header.term_offset.get();
    if !is_frame_offset(offset, term.len() as i32) || !is_slot_empty(term, offset) {
        return false;
    }
    publish(term, offset, header);
    true
}

/// Whether there is no frame. A negative length is none to readers either: it is left of a broken sender's frames, which
/// lay over each other.
#[inline]
fn is_slot_empty(term: &Region, offset: i32) -> bool {
    // Acquire: pairs with the release of `publish`, or with that of `fill_gap`, though only this thread writes here.
    term.atomic_i32(offset as usize).load(Ordering::Acquire) <= 0
}

/// Copies a packet of at least one frame into its place, and publishes its first frame last.
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

/// Puts the first header in front of what is in place.
#[inline]
fn publish(term: &Region, offset: i32, header: &DataHeader) {
    term.write(offset as usize + 4, &header.as_bytes()[4..]);
    commit(term, offset, header.header.frame_length.get());
}

/// What is missing in a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// First missing byte.
    pub offset: i32,
    /// Missing bytes, a multiple of 32.
    pub length: i32,
}

/// How far a term is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapScan {
    /// Offset after the last of the frames that contiguous_end each other without a gap.
    pub offset: i32,
    /// The gap there, if something is beyond it or the limit is.
    pub gap: Option<Gap>,
}

/// Walks the frames from `offset` to `limit`, as readers do. Returns where the last one ends that no gap comes before.
///
/// # Errors
/// The first frame is corrupt, or the offset is none.
#[inline]
pub fn contiguous_end(term: &Region, offset: i32, limit: i32) -> Result<i32, CorruptFrame> {
    let mut reader = TermReader::new(term, offset, limit)?;
    while reader.next()?.is_some() {}
    Ok(reader.offset)
}

/// Follows the frames from `offset` to `limit` and finds the first gap (`docs/spec/wire.md §5.5`). `limit` is the high water mark,
/// or the end of the term if that is in a later term.
///
/// # Errors
/// The first frame is corrupt, or the offset is none.
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
    // Acquire is not needed: only this thread places frames, and what is found is walked again before it is used.
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

/// Fills a gap with padding, for streams that do not ask for lost frames again. False if something arrived in it.
#[must_use]
pub fn fill_gap(log: &LogBuffers, term_id: i32, gap: Gap) -> bool {
    let geometry = log.geometry();
    let term = log.term_at(geometry.position(term_id, 0));
    let sound = is_frame_offset(gap.offset, geometry.term_length())
        && gap.length >= DATA_HEADER_LENGTH
        && gap.length % FRAME_ALIGNMENT == 0
        && gap.length <= geometry.term_length() - gap.offset;
    if !sound {
        return false;
    }
    let mut slots = (gap.offset..gap.offset + gap.length).step_by(FRAME_ALIGNMENT as usize);
    if !slots.all(|offset| is_slot_empty(term, offset)) {
        return false;
    }
    write_padding(term, log.ids(), term_id, gap.offset, gap.length);
    true
}
