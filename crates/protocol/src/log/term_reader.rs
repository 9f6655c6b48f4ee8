//! The walk over the committed frames of a term, which all readers of logs share.

use taran_core::memory::Region;

use super::frame::next_frame;
use super::{CorruptFrame, LogFrame};
use crate::position::is_frame_offset;

/// A reader that has read so many bytes in one go is behind: more is there …
const BACKLOG_MIN: i32 = 512;
/// … and so far ahead memory is asked for. A reader that keeps up asks for nothing: it would take from the writer what that
/// is about to write.
const PREFETCH_DISTANCE: i32 = 1024;
/// How much of it at most: long messages are read in one go, which the processor foresees by itself.
const PREFETCH_MAX: i32 = 1024;

/// Walks the committed frames of a term, each length checked.
#[derive(Debug)]
pub(super) struct TermReader<'a> {
    term: &'a Region,
    start: i32,
    limit: i32,
    pub(super) offset: i32,
}

impl<'a> TermReader<'a> {
    /// From `offset`, which may be the end of the term, to `limit`, which is cut at the end of the term.
    #[inline]
    pub(super) fn new(term: &'a Region, offset: i32, limit: i32) -> Result<Self, CorruptFrame> {
        let length = term.len() as i32;
        if !is_frame_offset(offset, length) && offset != length {
            return Err(CorruptFrame { offset, length: 0 });
        }
        Ok(Self {
            term,
            start: offset,
            limit: limit.min(length),
            offset,
        })
    }

    /// The next frame, if it starts before the limit and is committed. A corrupt frame is an error only when it is the
    /// first one, so that what was read before it counts.
    #[inline]
    #[allow(clippy::should_implement_trait)] // an iterator of results would not end at an error
    pub(super) fn next(&mut self) -> Result<Option<LogFrame<'a>>, CorruptFrame> {
        if self.offset >= self.limit {
            return Ok(None);
        }
        match next_frame(self.term, self.offset) {
            Ok(Some(frame)) => {
                self.offset += frame.aligned_length();
                Ok(Some(frame))
            }
            Err(corrupt) if self.offset == self.start => Err(corrupt),
            Ok(None) | Err(_) => Ok(None),
        }
    }

    /// The same for who reads all of each frame: what lies ahead is asked for.
    #[inline]
    pub(super) fn next_with_prefetch(&mut self) -> Result<Option<LogFrame<'a>>, CorruptFrame> {
        let next = self.next();
        if let Ok(Some(frame)) = &next
            && frame.offset() - self.start >= BACKLOG_MIN
        {
            let length = frame.length().min(PREFETCH_MAX);
            self.term.prefetch(
                (frame.offset() + PREFETCH_DISTANCE) as usize,
                length as usize,
            );
        }
        next
    }
}
