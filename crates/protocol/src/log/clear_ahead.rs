// SPDX-License-Identifier: Apache-2.0
//! Header-ahead clearing of logs that have a single writer: the receiver for an image, an exclusive appender for its
//! own log.
//!
//! Aeron zeroes whole terms ahead of the writer. Readers only inspect the length at the next frame boundary, so a
//! single writer can instead zero that length before it publishes each frame. Each cache line of a reused term is then
//! brought into its cache once per rotation and not twice (docs/spec/shared-memory.md §7.8).
//!
//! The core of a waiting reader prefetches the cache lines after the one that it polls. A store to one of them has to take it back
//! first, and the stores of the frame wait for that. An exclusive appender of short frames therefore clears the slots of the next
//! [`CLEAR_DISTANCE`] bytes.
//!
//! The appender of our exclusive publications declares this in the log metadata, in a field that official logs leave
//! zero. Official drivers ignore the field and clean these logs as usual; logs of official clients do not set it, so
//! our driver cleans them.

use taran_core::memory::Region;
use taran_core::sync::Ordering;

use super::frame::clear_length;
use super::{LogBuffers, LogKind};
use crate::position::FRAME_ALIGNMENT;

/// Bytes after the tail that an exclusive appender of short frames clears, at most. Models have short terms.
pub const CLEAR_DISTANCE: i32 = if cfg!(loom) { 96 } else { 2048 };

/// Maximum number of bytes zeroed per call of [`LogBuffers::clear_range`]: the longest message, which takes
/// milliseconds.
const CLEAR_MAX: i64 = 16 << 20;

/// Zeroes the length in each slot of a range of frame offsets; the range may be empty.
#[inline(always)]
pub(super) fn clear_slots(term: &Region, from: i32, to: i32) {
    let mut slot = from;
    while slot < to {
        clear_length(term, slot);
        slot += FRAME_ALIGNMENT;
    }
}

impl LogBuffers {
    /// Zeroes the bytes from the end of the slot at `from` to the end of the slot at `to`, at most 16 MiB per call.
    /// Both positions are frame offsets. Returns the position of the last slot zeroed.
    ///
    /// Contract: no reader accesses the range. Readers reach it only through a frame that the caller publishes
    /// afterwards, with release.
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

    /// Returns true if the publisher is exclusive and clears the slot after each frame itself. Such a log needs no
    /// cleaning, and the bytes beyond the tail may be stale.
    #[must_use]
    pub fn clears_ahead(&self) -> bool {
        // Acquire: pairs with the release below. Accesses to the terms are ordered by the tail and the frame lengths.
        self.kind() == LogKind::Exclusive
            && self.metadata().clears_ahead.load(Ordering::Acquire) == 1
    }

    /// Declares, for the publisher, that it clears the slot after a frame before it reserves space for that frame.
    pub(super) fn set_clears_ahead(&self) {
        self.metadata().clears_ahead.store(1, Ordering::Release);
    }

    /// Zeroes the length in the slot at `position`, where readers look for the next frame. `position` may be the
    /// maximum position of the stream.
    #[inline]
    pub fn clear_slot(&self, position: i64) {
        clear_length(
            self.term_at(position),
            self.geometry().term_offset(position),
        );
    }
}
