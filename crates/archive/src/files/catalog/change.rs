// SPDX-License-Identifier: Apache-2.0
//! The writes of a change of the catalog, in order.

use super::super::SyncLevel;

/// An operation on the catalog file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Makes the file this long, with reserved blocks where the file system can do that.
    Grow {
        /// Length in bytes.
        len: u64,
    },
    /// Writes bytes.
    Write {
        /// Offset in the file.
        offset: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Writes zeros.
    Zero {
        /// Offset in the file.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// Makes durable what was written. What follows is not written before that, because a power cut keeps any part of what
    /// is not durable.
    Sync,
    /// Replaces the file by a new one, so that a crash leaves either of them.
    Rewrite {
        /// Contents in order, from the first byte; zeros follow.
        pieces: Vec<Piece>,
        /// Length of the new file.
        len: u64,
    },
}

/// A part of a rewritten catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Piece {
    /// New bytes.
    Bytes(Vec<u8>),
    /// Bytes of the old file.
    Copy {
        /// Offset in the old file.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
}

/// The steps that bring a change of the catalog in memory to its file, to be executed in order, and in the order of the
/// changes, by [`CatalogFile::apply`](super::CatalogFile::apply). A power cut or a failure after any of them leaves a
/// catalog that opens, with the change or without it.
#[must_use = "the change is in memory only until it is applied to the file"]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    steps: Vec<Step>,
}

impl Change {
    /// Returns the steps in order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(super) fn write(&mut self, offset: u64, bytes: impl Into<Vec<u8>>) {
        let bytes = bytes.into();
        self.steps.push(Step::Write { offset, bytes });
    }

    pub(super) fn zero(&mut self, offset: u64, len: u64) {
        if len > 0 {
            self.steps.push(Step::Zero { offset, len });
        }
    }

    pub(super) fn grow(&mut self, len: u64) {
        self.steps.push(Step::Grow { len });
    }

    pub(super) fn rewrite(&mut self, pieces: Vec<Piece>, len: u64) {
        self.steps.push(Step::Rewrite { pieces, len });
    }

    /// Adds a sync if the level asks for it.
    pub(super) fn sync(&mut self, level: SyncLevel) {
        if level != SyncLevel::None {
            self.steps.push(Step::Sync);
        }
    }
}
