// SPDX-License-Identifier: Apache-2.0
//! Snapshot of a tail: a cheap test for whether a publisher has reserved more space.

use taran_core::memory::{Shared, prefetch_value};
use taran_core::sync::{AtomicI64, Ordering::Relaxed};

use super::LogMetadata;
use crate::position::RawTail;

/// Value of the raw tail when a consumer has read everything. A publisher changes its tail before it writes a frame, so
/// the consumer need not read anything else until the tail changes. Created by
/// [`LogBuffers::snapshot_if_drained`](super::LogBuffers::snapshot_if_drained).
#[derive(Debug)]
pub struct TailSnapshot {
    metadata: Shared<LogMetadata>,
    partition: usize,
    tail: RawTail,
}

impl TailSnapshot {
    pub(super) fn new(metadata: Shared<LogMetadata>, partition: usize, tail: RawTail) -> Self {
        Self {
            metadata,
            partition,
            tail,
        }
    }

    /// Returns true if the tail has not changed since the snapshot.
    #[inline]
    #[must_use]
    pub fn is_current(&self) -> bool {
        // Relaxed: a consumer that sees a change reads the frames with an acquire of its own.
        self.word().load(Relaxed) == self.tail.0
    }

    /// Prefetches the cache line that [`is_current`](Self::is_current) reads.
    #[inline]
    pub fn prefetch(&self) {
        prefetch_value(self.word());
    }

    #[inline]
    fn word(&self) -> &AtomicI64 {
        &self.metadata.tails[self.partition]
    }
}
