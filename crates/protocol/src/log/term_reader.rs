// SPDX-License-Identifier: Apache-2.0
//! Iteration over the committed frames of a term, shared by all readers.

use taran_core::memory::Region;

use super::frame::next_frame;
use super::{CorruptFrame, LogFrame};
use crate::position::is_frame_offset;

/// Bytes read in one poll after which the reader is assumed to have a backlog and starts to prefetch. A reader that
/// keeps up must not prefetch: it would take the cache lines that the writer is about to write.
const BACKLOG_MIN: i32 = 512;
/// Distance in bytes from the current frame to the memory prefetched.
const PREFETCH_DISTANCE: i32 = 1024;
/// Maximum bytes prefetched per frame. The hardware prefetcher covers longer messages.
const PREFETCH_MAX: i32 = 1024;

/// Iterator over the committed frames of a term. Validates each frame length.
#[derive(Debug)]
pub(super) struct TermReader<'a> {
    term: &'a Region,
    start: i32,
    limit: i32,
    pub(super) offset: i32,
}

impl<'a> TermReader<'a> {
    /// Returns a reader from `offset`, which may be the end of the term, to `limit`, which is clamped to the end of the
    /// term.
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

    /// Returns the next frame if it starts before the limit and is committed. A corrupt frame is an error only if it is
    /// the first one, so that the frames before it are still delivered.
    #[inline]
    #[allow(clippy::should_implement_trait)] // an iterator of results would not stop at an error
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

    /// As [`next`](Self::next), for callers that read whole frames: prefetches ahead once there is a backlog.
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
