// SPDX-License-Identifier: Apache-2.0
//! Reading of committed frames by subscribers. Each call stays within one term. The caller converts offsets to
//! positions and stores them (docs/spec/shared-memory.md §8.5).

use taran_core::memory::Region;

use super::term_reader::TermReader;
use super::{CorruptFrame, LogFrame};
use crate::frame::DataHeader;

/// Result of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polled {
    /// Number of frames delivered, without padding.
    pub fragments: usize,
    /// Offset after the last frame consumed, padding included.
    pub offset: i32,
}

/// Action that a handler requests for the current frame and the poll. Exhaustive, because applications make the values.
#[doc(alias = "ControlledFragmentHandler")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Stop and do not consume this frame; the next poll delivers it again.
    Abort,
    /// Stop after this frame.
    Break,
    /// Store the position after this frame now and continue.
    Commit,
    /// Continue.
    Continue,
}

/// Delivers up to `fragment_limit` frames, starting at `offset`.
///
/// # Errors
/// The first frame is corrupt, or `offset` is not a frame offset. Frames before a corrupt one are delivered; the next
/// call then fails.
#[doc(alias = "TermReader")]
#[inline]
pub fn poll(
    term: &Region,
    offset: i32,
    fragment_limit: usize,
    handler: impl FnMut(LogFrame<'_>),
) -> Result<Polled, CorruptFrame> {
    poll_bounded(term, offset, term.len() as i32, fragment_limit, handler)
}

/// As [`poll`], but delivers no frame that starts at or beyond `limit_offset`.
///
/// # Errors
/// As [`poll`].
#[inline]
pub fn poll_bounded(
    term: &Region,
    offset: i32,
    limit_offset: i32,
    fragment_limit: usize,
    mut handler: impl FnMut(LogFrame<'_>),
) -> Result<Polled, CorruptFrame> {
    let mut reader = TermReader::new(term, offset, limit_offset)?;
    let mut fragments = 0;
    while fragments < fragment_limit
        && let Some(frame) = reader.next_with_prefetch()?
    {
        if !frame.is_padding() {
            fragments += 1;
            handler(frame);
        }
    }
    Ok(Polled {
        fragments,
        offset: reader.offset,
    })
}

/// As [`poll_bounded`], with a handler that controls the poll. Calls `commit` with the offset after the frame when the
/// handler returns [`Action::Commit`].
///
/// # Errors
/// As [`poll`].
#[inline]
pub fn poll_controlled(
    term: &Region,
    offset: i32,
    limit_offset: i32,
    fragment_limit: usize,
    mut handler: impl FnMut(LogFrame<'_>) -> Action,
    mut commit: impl FnMut(i32),
) -> Result<Polled, CorruptFrame> {
    let mut reader = TermReader::new(term, offset, limit_offset)?;
    let mut fragments = 0;
    while fragments < fragment_limit
        && let Some(frame) = reader.next_with_prefetch()?
    {
        if frame.is_padding() {
            continue;
        }
        let action = handler(frame);
        if action == Action::Abort {
            reader.offset = frame.offset();
            break;
        }
        fragments += 1;
        match action {
            Action::Break => break,
            Action::Commit => commit(reader.offset),
            Action::Abort | Action::Continue => {}
        }
    }
    Ok(Polled {
        fragments,
        offset: reader.offset,
    })
}

/// Reads frames without consuming them. Returns the offset of the last message boundary: after padding, or after a
/// frame that ends a message.
///
/// # Errors
/// As [`poll`].
#[inline]
pub fn peek(
    term: &Region,
    offset: i32,
    limit_offset: i32,
    mut handler: impl FnMut(LogFrame<'_>) -> Action,
) -> Result<i32, CorruptFrame> {
    let mut reader = TermReader::new(term, offset, limit_offset)?;
    let mut boundary = offset;
    while let Some(frame) = reader.next()? {
        if frame.is_padding() {
            boundary = reader.offset;
            continue;
        }
        let action = handler(frame);
        if action == Action::Abort {
            break;
        }
        if frame.flags() & DataHeader::END != 0 {
            boundary = reader.offset;
        }
        if action == Action::Break {
            break;
        }
    }
    Ok(boundary)
}

/// Contiguous committed frames.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    term: &'a Region,
    offset: i32,
    length: i32,
    first: LogFrame<'a>,
}

impl<'a> Block<'a> {
    /// Returns the offset of the block in its term.
    #[inline]
    #[must_use]
    pub fn offset(&self) -> i32 {
        self.offset
    }

    /// Returns the length of the block in bytes, a multiple of 32.
    #[inline]
    #[must_use]
    pub fn length(&self) -> i32 {
        self.length
    }

    /// Returns the header of the first frame.
    #[inline]
    #[must_use]
    pub fn header(&self) -> &'a DataHeader {
        self.first.header()
    }

    /// Returns the bytes of the block.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.term.bytes(self.offset as usize, self.length as usize)
    }
}

/// Returns the committed frames from `offset`, up to `byte_limit` bytes. Padding of any length is returned as a
/// separate block. Returns `None` if nothing is committed there or if the first frame is longer than the limit.
///
/// # Errors
/// As [`poll`].
#[doc(alias = "TermBlockScanner")]
#[inline]
pub fn poll_block(
    term: &Region,
    offset: i32,
    byte_limit: i32,
) -> Result<Option<Block<'_>>, CorruptFrame> {
    let mut reader = TermReader::new(term, offset, term.len() as i32)?;
    let limit = offset.saturating_add(byte_limit);
    let Some(first) = reader.next()? else {
        return Ok(None);
    };
    let mut end = reader.offset;
    if !first.is_padding() {
        if end > limit {
            return Ok(None);
        }
        while end < limit
            && let Some(frame) = reader.next()?
            && !frame.is_padding()
            && reader.offset <= limit
        {
            end = reader.offset;
        }
    }
    Ok(Some(Block {
        term,
        offset,
        length: end - offset,
        first,
    }))
}
