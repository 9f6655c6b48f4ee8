// SPDX-License-Identifier: Apache-2.0
//! Cleaning of used terms before their reuse (docs/spec/shared-memory.md §7.8).

use taran_core::sync::Ordering;

use super::LogBuffers;
use crate::position::FRAME_ALIGNMENT;

impl LogBuffers {
    /// Zeroes the log from `from` to `to`, at most to the end of the term that holds `from`. `to` is rounded down to a
    /// frame offset. Returns the position up to which the log is clean: `from` if there was nothing to do.
    ///
    /// Contract: all readers are beyond the range by more than a publisher may be ahead of them. The caller raises the
    /// publisher limit afterwards, with release, so that a publisher which acquires the limit finds zeros.
    pub fn clean(&self, from: i64, to: i64) -> i64 {
        let geometry = self.geometry();
        let term_end = geometry
            .term_begin(from)
            .saturating_add(i64::from(geometry.term_length()));
        let to = to.min(term_end) & !i64::from(FRAME_ALIGNMENT - 1);
        let from_aligned = from & !i64::from(FRAME_ALIGNMENT - 1);
        if to <= from {
            return from;
        }
        let term = self.term_at(from_aligned);
        let offset = geometry.term_offset(from_aligned) as usize;
        let length = (to - from_aligned) as usize;
        // The first length is zeroed last: a reader that is this far behind finds a whole frame or none.
        term.zero(offset + 4, length - 4);
        // Release: orders the zeros above before the zero length for readers that acquire it.
        term.atomic_i32(offset).store(0, Ordering::Release);
        to
    }
}
