//! A publisher that stands, and how to see cheaply that it went on.

use taran_core::memory::{Shared, prefetch_value};
use taran_core::sync::{AtomicI64, Ordering::Relaxed};

use super::LogMetadata;
use crate::position::RawTail;

/// A publisher that stands within a term changes one word before there is anything to be read: its tail. Whoever has seen all
/// that is there need not look at anything else until then. [`LogBuffers::snapshot_if_drained`](super::LogBuffers::snapshot_if_drained) makes it.
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

    /// It has not gone on.
    #[inline]
    #[must_use]
    pub fn is_current(&self) -> bool {
        // What was written is read by whoever looks then, with an acquire of its own.
        self.word().load(Relaxed) == self.tail.0
    }

    /// Asks for the memory that [`lasts`](Self::is_current) reads.
    #[inline]
    pub fn prefetch(&self) {
        prefetch_value(self.word());
    }

    #[inline]
    fn word(&self) -> &AtomicI64 {
        &self.metadata.tails[self.partition]
    }
}
