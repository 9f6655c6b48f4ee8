// SPDX-License-Identifier: Apache-2.0
//! Framing of messages, shared by both appenders (docs/spec/shared-memory.md §7.5, §8.2).

use taran_core::memory::Region;

use super::LogFrame;
use super::frame::{StreamIds, clear_length, commit, write_header};
use crate::frame::{DATA_HEADER_LENGTH, DataHeader, FrameType};
use crate::position::{FRAME_ALIGNMENT, align32};

/// Distance in bytes from a frame to the memory prefetched: covers the latency of a remote cache line at the rate of
/// small messages.
const PREFETCH_DISTANCE: i32 = 4096;

/// Reason why nothing was appended. Exhaustive, so that a new one does not compile until the client has an error for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The term is full and the log has rotated to the next one: retry immediately.
    #[error("the log rotates to the next term, try again")]
    AdminAction,
    /// The stream has reached its maximum position; a new publication is needed.
    #[error("the stream has reached its maximum position")]
    MaxPositionExceeded,
    /// The message is longer than this operation allows.
    #[error("message of {length} bytes is longer than the maximum of {max}")]
    TooLong {
        /// Bytes in the message.
        length: usize,
        /// Maximum number of bytes.
        max: i32,
    },
    /// The tail counter is not a frame offset: another process has corrupted the log.
    #[error("raw tail {0:#x} is corrupt")]
    CorruptTail(i64),
}

/// Callback that supplies the reserved value of each frame before it is published. The payload and all header fields
/// except the length are in place. It must not panic, because readers wait for the frame.
pub type ReservedValueSupplier<'a> = Option<&'a mut dyn FnMut(LogFrame<'_>) -> i64>;

/// Returns the length of a message given in parts.
///
/// # Errors
/// The message is longer than `max`.
#[inline]
pub(super) fn message_length(parts: &[&[u8]], max: i32) -> Result<i32, AppendError> {
    let length = parts
        .iter()
        .fold(0usize, |sum, part| sum.saturating_add(part.len()));
    if length <= max as usize {
        Ok(length as i32)
    } else {
        Err(AppendError::TooLong { length, max })
    }
}

/// Returns the number of bytes that a single-frame message occupies in the term.
#[inline]
pub(super) const fn framed_space(length: i32) -> i32 {
    align32(length + DATA_HEADER_LENGTH)
}

/// Returns the number of bytes that a message longer than `max_payload` occupies in the term as fragments.
/// `max_payload` is a multiple of 32.
#[inline]
pub(super) const fn fragmented_space(length: i32, max_payload: i32) -> i32 {
    let rest = length % max_payload;
    let last = if rest > 0 { framed_space(rest) } else { 0 };
    length / max_payload * (max_payload + DATA_HEADER_LENGTH) + last
}

/// Range of a term reserved for one message.
#[derive(Debug)]
pub(super) struct ReservedRange<'a> {
    pub(super) term: &'a Region,
    pub(super) ids: StreamIds,
    pub(super) term_id: i32,
    pub(super) offset: i32,
    /// The range may hold stale bytes. The appender then clears the slot after each fragment, so that readers find no
    /// stale frame there, and zeroes the alignment bytes after a payload.
    pub(super) clears_ahead: bool,
}

impl ReservedRange<'_> {
    /// Writes and publishes a message of `length` bytes as one frame. Always inlined, so that the header fields stay in
    /// registers between the tail and the term.
    #[inline(always)]
    pub(super) fn write(&self, parts: &[&[u8]], length: i32, reserved: ReservedValueSupplier<'_>) {
        let frame_length = DATA_HEADER_LENGTH + length;
        self.begin(self.offset, frame_length, DataHeader::UNFRAGMENTED);
        let mut at = (self.offset + DATA_HEADER_LENGTH) as usize;
        for part in parts {
            self.term.write(at, part);
            at += part.len();
        }
        self.end(self.offset, frame_length, reserved);
    }

    /// Writes and publishes a message of `length` bytes as fragments of `max_payload` bytes, in order.
    pub(super) fn write_fragments(
        &self,
        parts: &[&[u8]],
        length: i32,
        max_payload: i32,
        mut reserved: ReservedValueSupplier<'_>,
    ) {
        let mut parts = GatherCursor { parts, taken: 0 };
        let mut offset = self.offset;
        let mut left = length;
        let mut flags = DataHeader::BEGIN;
        while left > 0 {
            let payload = left.min(max_payload);
            left -= payload;
            if left == 0 {
                flags |= DataHeader::END;
            }
            let frame_length = DATA_HEADER_LENGTH + payload;
            self.begin(offset, frame_length, flags);
            parts.copy(
                self.term,
                (offset + DATA_HEADER_LENGTH) as usize,
                payload as usize,
            );
            let next = offset + align32(frame_length);
            if left > 0 && self.clears_ahead {
                clear_length(self.term, next);
            }

            self.end(
                offset,
                frame_length,
                reserved.as_mut().map(|supplier| &mut **supplier as _),
            );
            offset = next;
            flags = 0;
        }
    }

    #[inline]
    pub(super) fn begin(&self, offset: i32, frame_length: i32, flags: u8) {
        self.prefetch_ahead(offset, frame_length);
        write_header(
            self.term,
            self.ids,
            self.term_id,
            offset,
            frame_length,
            flags,
            FrameType::DATA,
        );
        let aligned = align32(frame_length);
        if self.clears_ahead && aligned != frame_length {
            // The alignment bytes are sent with the frame. An unaligned frame has a payload, so the last 32 bytes do
            // not overlap the header.
            let last = (offset + aligned - FRAME_ALIGNMENT) as usize;
            self.term.zero(last, FRAME_ALIGNMENT as usize);
        }
    }

    /// Prefetches memory ahead of the frame. The term was last used long ago, and perhaps cleaned on another core, so
    /// closely spaced messages would otherwise stall on each cache line.
    #[inline]
    fn prefetch_ahead(&self, offset: i32, frame_length: i32) {
        // The hardware prefetcher covers the sequential writes of long messages.
        if frame_length <= PREFETCH_DISTANCE {
            self.term
                .prefetch((offset + PREFETCH_DISTANCE) as usize, frame_length as usize);
        }
    }

    #[inline]
    fn end(&self, offset: i32, frame_length: i32, reserved: ReservedValueSupplier<'_>) {
        if let Some(supplier) = reserved {
            let value = supplier(LogFrame::new(self.term, offset, frame_length));
            write_reserved_value(self.term, offset, value);
        }
        commit(self.term, offset, frame_length);
    }
}

#[inline]
pub(super) fn write_reserved_value(term: &Region, offset: i32, value: i64) {
    term.write(
        offset as usize + std::mem::offset_of!(DataHeader, reserved_value),
        &value.to_le_bytes(),
    );
}

/// Cursor over the parts of a message.
struct GatherCursor<'a> {
    parts: &'a [&'a [u8]],
    /// Bytes of the first part already copied.
    taken: usize,
}

impl GatherCursor<'_> {
    /// Copies the next `length` bytes.
    fn copy(&mut self, term: &Region, mut at: usize, mut length: usize) {
        while let Some((first, rest)) = self.parts.split_first() {
            let left = &first[self.taken..];
            let count = left.len().min(length);
            term.write(at, &left[..count]);
            at += count;
            length -= count;
            if length == 0 && count < left.len() {
                self.taken += count;
                return;
            }
            self.parts = rest;
            self.taken = 0;
            if length == 0 {
                return;
            }
        }
    }
}
