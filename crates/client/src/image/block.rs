//! A run of whole frames.

use taran_protocol::log;

use crate::Position;

/// Whole frames that lie one after the other in a term, headers included; valid while the handler runs.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    block: log::Block<'a>,
    end: Position,
}

impl<'a> Block<'a> {
    pub(super) fn new(block: log::Block<'a>, end: Position) -> Self {
        Self { block, end }
    }

    /// The frames: a multiple of 32 bytes.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.block.bytes()
    }

    /// Offset of the first frame in its term, in bytes.
    #[must_use]
    pub fn term_offset(&self) -> i32 {
        self.block.offset()
    }

    /// Session of the publication.
    #[must_use]
    pub fn session_id(&self) -> i32 {
        self.block.header().session_id.get()
    }

    /// Id of the term.
    #[must_use]
    pub fn term_id(&self) -> i32 {
        self.block.header().term_id.get()
    }

    /// Position of the stream after the block.
    #[must_use]
    pub fn position(&self) -> Position {
        self.end
    }
}
