// SPDX-License-Identifier: Apache-2.0
//! Unblocking of a publication whose publisher died during an append (docs/spec/shared-memory.md §8.4).

use taran_core::memory::Region;
use taran_core::sync::Ordering;
use zerocopy::FromBytes;

use super::LogBuffers;
use super::frame::write_padding;
use crate::frame::{DATA_HEADER_LENGTH, DataHeader};
use crate::position::{FRAME_ALIGNMENT, align32, is_frame_offset, partition_of_count};

impl LogBuffers {
    /// Pads over an unfinished claim at `blocked_position`, where consumers have been stuck for the unblock timeout, or
    /// completes an unfinished rotation. Returns true if the log was changed.
    ///
    /// Called by the driver only, once the timeout indicates that the publisher is dead.
    #[doc(alias = "LogBufferUnblocker")]
    #[doc(alias = "TermUnblocker")]
    pub fn unblock(&self, blocked_position: i64) -> bool {
        let geometry = self.geometry();
        let offset = geometry.term_offset(blocked_position);
        let blocked_count = (blocked_position >> geometry.bits()) as i32;
        let active_count = self.active_term_count();
        if offset == 0 && active_count == blocked_count.wrapping_sub(1) {
            let tail = self.raw_tail(partition_of_count(active_count));
            // A term that is exactly full is not blocked: the next publisher rotates. A tail beyond the end of the term
            // means that a publisher has overrun it and must rotate; if it died, the other publishers are blocked.
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
                // The claim extended to the end of the term, so the rotation is missing too.
                let to_the_end = offset + length == geometry.term_length();
                if to_the_end {
                    self.rotate(blocked_count, tail.term_id());
                }
                true
            }
        }
    }

    /// Returns the length to pad in a log that its exclusive publisher clears ahead: the started frame, if another
    /// frame was started after it, else everything up to the tail, because stale frames may lie there.
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

    /// Returns true if a frame was started at `position` since the term was last reused.
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

/// Returns the length of the padding that covers the unfinished claim at `offset`, if there is one.
fn blocked_range(term: &Region, offset: i32, tail_offset: i32) -> Option<i32> {
    // Acquire: pairs with the release in `commit`.
    let length = term.atomic_i32(offset as usize).load(Ordering::Acquire);
    if length != 0 {
        // Started and not committed. A length that no publisher writes is left unchanged.
        let claimed = length.checked_neg()?;
        let valid = claimed >= DATA_HEADER_LENGTH && claimed <= term.len() as i32 - offset;
        return valid.then_some(claimed);
    }
    // Claimed and not started: pad up to the next started frame.
    let mut end = offset + FRAME_ALIGNMENT;
    while end < tail_offset && term.atomic_i32(end as usize).load(Ordering::Acquire) == 0 {
        end += FRAME_ALIGNMENT;
    }
    let found_frame = end < tail_offset;
    let reached_end_of_term = end == term.len() as i32 && end == tail_offset;
    // Re-check from the end to the start: a slow publisher starts its frames from first to last, so a frame started
    // during the scan is seen.
    ((found_frame || reached_end_of_term) && is_empty(term, offset, end)).then_some(end - offset)
}

/// Returns true if no frame starts in the range. Checks from its end to its start.
fn is_empty(term: &Region, begin: i32, end: i32) -> bool {
    let mut at = end - FRAME_ALIGNMENT;
    while at >= begin {
        // Acquire: pairs with the release in `commit`. The order of the loads matters (see the callers).
        if term.atomic_i32(at as usize).load(Ordering::Acquire) != 0 {
            return false;
        }
        at -= FRAME_ALIGNMENT;
    }
    true
}
