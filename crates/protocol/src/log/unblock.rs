//! Freeing a publication whose publisher died in the middle of an append (`docs/spec/shared-memory.md §8.4`).

use taran_core::memory::Region;
use taran_core::sync::Ordering;
use zerocopy::FromBytes;

use super::LogBuffers;
use super::frame::write_padding;
use crate::frame::{DATA_HEADER_LENGTH, DataHeader};
use crate::position::{FRAME_ALIGNMENT, align32, is_frame_offset, partition_of_count};

impl LogBuffers {
    /// Pads over whatever a dead publisher left unfinished at `blocked_position`, where consumers have been stuck for
    /// too long, or does the rotation that it left undone. True if something was done.
    ///
    /// Only the driver calls it, when it has good reason to think that nobody works there any more.
    pub fn unblock(&self, blocked_position: i64) -> bool {
        let geometry = self.geometry();
        let offset = geometry.term_offset(blocked_position);
        let blocked_count = (blocked_position >> geometry.bits()) as i32;
        let active_count = self.active_term_count();
        if offset == 0 && active_count == blocked_count.wrapping_sub(1) {
            let tail = self.raw_tail(partition_of_count(active_count));
            // A term that is just full waits for nobody: whoever comes next turns to the next one. Only who came and died
            // holds the others up.
            let is_overrun = tail.offset() > i64::from(geometry.term_length());
            return is_overrun && self.rotate(active_count, tail.term_id());
        }
        if !is_frame_offset(offset, geometry.term_length()) {
            return false;
        }
        let partition = partition_of_count(blocked_count);
        let tail = self.raw_tail(partition);
        let tail_offset = tail.effective_offset(geometry.term_length());
        let term = self.term(partition);
        let range = if self.clears_ahead() {
            self.exclusive_blocked_range(blocked_position, tail_offset)
        } else {
            blocked_range(term, offset, tail_offset)
        };
        match range {
            None => false,
            Some(length) => {
                write_padding(term, self.ids(), tail.term_id(), offset, length);
                // The rest of the term was claimed by one who did not come to write, nor to rotate.
                let to_the_end = offset + length == geometry.term_length();
                if to_the_end {
                    self.rotate(blocked_count, tail.term_id());
                }
                true
            }
        }
    }

    /// The same where one publisher is alone and keeps the log vacant: what it has begun, if it went on behind that, else
    /// everything up to the tail, where old frames may lie.
    fn exclusive_blocked_range(&self, blocked_position: i64, tail_offset: i32) -> Option<i32> {
        let offset = self.geometry().term_offset(blocked_position);
        let to_tail = tail_offset - offset;
        let first = self.term_at(blocked_position).atomic_i32(offset as usize);
        // Acquire: pairs with the release in `commit`.
        let length = first.load(Ordering::Acquire);
        if length > 0 || to_tail < DATA_HEADER_LENGTH || to_tail % FRAME_ALIGNMENT != 0 {
            return None;
        }
        let begun = length.checked_neg().filter(|&begun| {
            (DATA_HEADER_LENGTH..to_tail).contains(&begun)
                && self.has_frame_header_at(blocked_position + i64::from(align32(begun)))
        });
        Some(begun.unwrap_or(to_tail))
    }

    /// Whether a frame of this round was begun there.
    fn has_frame_header_at(&self, position: i64) -> bool {
        let (geometry, term) = (self.geometry(), self.term_at(position));
        let offset = geometry.term_offset(position);
        if offset > geometry.term_length() - DATA_HEADER_LENGTH {
            return false;
        }
        let begun = term.atomic_i32(offset as usize).load(Ordering::Acquire) != 0;
        let bytes = term.bytes(offset as usize, DATA_HEADER_LENGTH as usize);
        begun
            && DataHeader::ref_from_bytes(bytes).is_ok_and(|header| {
                header.term_offset.get() == offset
                    && header.term_id.get() == geometry.term_id(position)
            })
    }
}

/// Length of the padding that covers what is unfinished at `offset`, if something is.
fn blocked_range(term: &Region, offset: i32, tail_offset: i32) -> Option<i32> {
    // Acquire: pairs with the release in `commit`.
    let length = term.atomic_i32(offset as usize).load(Ordering::Acquire);
    if length != 0 {
        // Begun and not committed. A length that no publisher writes is left alone.
        let claimed = length.checked_neg()?;
        let sound = claimed >= DATA_HEADER_LENGTH && claimed <= term.len() as i32 - offset;
        return sound.then_some(claimed);
    }
    // Claimed and not begun: up to the next frame that was begun.
    let mut end = offset + FRAME_ALIGNMENT;
    while end < tail_offset && term.atomic_i32(end as usize).load(Ordering::Acquire) == 0 {
        end += FRAME_ALIGNMENT;
    }
    let found_frame = end < tail_offset;
    let reached_end_of_term = end == term.len() as i32 && end == tail_offset;
    // Back from there: a publisher that only was slow begins its frames from first to last, so one that has begun
    // meanwhile is seen.
    ((found_frame || reached_end_of_term) && is_empty(term, offset, end)).then_some(end - offset)
}

/// True if no frame starts in a range, looking from its end back to its start.
fn is_empty(term: &Region, begin: i32, end: i32) -> bool {
    let mut at = end - FRAME_ALIGNMENT;
    while at >= begin {
        // Acquire: pairs with the release in `commit`; the order of the looks matters (see the callers).
        if term.atomic_i32(at as usize).load(Ordering::Acquire) != 0 {
            return false;
        }
        at -= FRAME_ALIGNMENT;
    }
    true
}
