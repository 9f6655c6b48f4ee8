// SPDX-License-Identifier: Apache-2.0
//! A block of whole frames.

use taran_protocol::log;

use crate::Position;

/// Consecutive whole frames of a term, headers included; valid while the handler runs.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    block: log::Block<'a>,
    end: Position,
}

impl<'a> Block<'a> {
    pub(super) fn new(block: log::Block<'a>, end: Position) -> Self {
        Self { block, end }
    }

    /// Returns the frames; the length is a multiple of 32 bytes.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.block.bytes()
    }

    /// Returns the offset of the first frame in its term, in bytes.
    #[must_use]
    pub fn term_offset(&self) -> i32 {
        self.block.offset()
    }

    /// Returns the session id of the publication.
    #[must_use]
    pub fn session_id(&self) -> i32 {
        self.block.header().session_id.get()
    }

    /// Returns the term id.
    #[must_use]
    pub fn term_id(&self) -> i32 {
        self.block.header().term_id.get()
    }

    /// Returns the stream position after the block, in bytes.
    #[must_use]
    pub fn position(&self) -> Position {
        self.end
    }
}
