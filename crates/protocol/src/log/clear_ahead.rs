//! Making room in a log that has one writer: the receiver in that of an image, an exclusive appender in its own.
//!
//! `docs/spec/shared-memory.md §7.8` zeroes whole terms ahead of the writer. Readers look where a frame ends, so it is enough that they find
//! nothing there until the next one is placed: memory is then met once for each byte, not twice.
//!
//! Of publishers only our own exclusive ones do so, and say it in the metadata: an official driver, which does not look
//! there, cleans such a log as any other, and an official client says nothing, so that our driver cleans for it.

use taran_core::sync::Ordering;

use super::frame::clear_length;
use super::{LogBuffers, LogKind};
use crate::position::FRAME_ALIGNMENT;

/// Most bytes that are zeroed in one go: as many as the longest message has, which takes milliseconds.
const CLEAR_MAX: i64 = 16 << 20;

impl LogBuffers {
    /// Zeroes everything behind the slot at `from` up to and including the one at `to`, both frame offsets; where that is
    /// more than 16 MiB, as much as that. Returns the position of the last one.
    ///
    /// Nobody may read there any more, or yet: whoever publishes a frame before them does so with release.
    #[must_use]
    pub fn clear_range(&self, from: i64, to: i64) -> i64 {
        let geometry = self.geometry();
        let last = to.min(from.saturating_add(CLEAR_MAX));
        let end = last + i64::from(FRAME_ALIGNMENT);
        let mut at = from + i64::from(FRAME_ALIGNMENT);
        while at < end {
            let offset = geometry.term_offset(at);
            let length = (end - at).min(i64::from(geometry.term_length() - offset));
            self.term_at(at).zero(offset as usize, length as usize);
            at += length;
        }
        last
    }

    /// Whether its publisher, which is alone, empties the slot behind each frame: then nobody has to clean it, and what
    /// lies beyond the tail may be old.
    #[must_use]
    pub fn clears_ahead(&self) -> bool {
        // Acquire: pairs with the release below, though all that follows is ordered by tail and frame lengths.
        self.kind() == LogKind::Exclusive
            && self.metadata().clears_ahead.load(Ordering::Acquire) == 1
    }

    /// Publisher: it empties the slot behind each frame before it reserves the space for it.
    pub(super) fn set_clears_ahead(&self) {
        self.metadata().clears_ahead.store(1, Ordering::Release);
    }

    /// Empties the slot at a position, where the next frame will be looked for: also behind the last one that there can
    /// be.
    #[inline]
    pub fn clear_slot(&self, position: i64) {
        clear_length(
            self.term_at(position),
            self.geometry().term_offset(position),
        );
    }
}
