//! Making used terms ready to be used again (`docs/spec/shared-memory.md §7.8`).

use taran_core::sync::Ordering;

use super::LogBuffers;
use crate::position::FRAME_ALIGNMENT;

impl LogBuffers {
    /// Zeroes the log from one position towards another, but not beyond the end of the first one's term: one call is one
    /// step. Returns how far the log is clean now, which is `from` if there is nothing to do. `to` is rounded down to a
    /// frame offset.
    ///
    /// What is cleaned lies behind all readers, by more than publishers may be ahead. The caller raises the publisher
    /// limit after it, with release, so that a publisher which acquires the limit finds zeros.
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
        // The first length last: a reader that has fallen so far behind finds a frame or nothing, not half a frame.
        term.zero(offset + 4, length - 4);
        // Release: orders the zeros above before the empty length, for whoever acquires it.
        term.atomic_i32(offset).store(0, Ordering::Release);
        to
    }
}
