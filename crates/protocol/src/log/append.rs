//! What both appenders have in common: how a message becomes frames (`docs/spec/shared-memory.md §7.5, §8.2`).

use taran_core::memory::Region;

use super::LogFrame;
use super::frame::{StreamIds, clear_length, commit, write_header};
use crate::frame::{DATA_HEADER_LENGTH, DataHeader, FrameType};
use crate::position::{FRAME_ALIGNMENT, align32};

/// How far ahead of a frame memory is asked for, in bytes: what a line takes from afar, at the pace of small messages.
const PREFETCH_DISTANCE: i32 = 4096;

/// Why nothing was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The term is full and the log turned to the next one: try again now.
    #[error("the log turns to the next term, try again")]
    AdminAction,
    /// The stream has reached its last position; a new publication is needed.
    #[error("the stream has reached its last position")]
    MaxPositionExceeded,
    /// The message is longer than what may be appended in this way.
    #[error("{length} bytes are longer than the {max} that are possible here")]
    TooLong {
        /// Bytes in the message.
        length: usize,
        /// Most bytes possible.
        max: i32,
    },
    /// The tail counter does not hold a frame offset: another process broke the log.
    #[error("raw tail {0:#x} is corrupt")]
    CorruptTail(i64),
}

/// Called for each frame before it is published, to fill its reserved value: the payload and all fields of the header
/// but the length are in place. It must not panic, as readers wait for the frame.
pub type ReservedValueSupplier<'a> = Option<&'a mut dyn FnMut(LogFrame<'_>) -> i64>;

/// Length of a message in parts.
///
/// # Errors
/// It is longer than `max`.
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

/// Bytes that the frame of a message takes in the term.
#[inline]
pub(super) const fn framed_space(length: i32) -> i32 {
    align32(length + DATA_HEADER_LENGTH)
}

/// Bytes that the frames of a message take which is longer than `max_payload`, a multiple of 32.
#[inline]
pub(super) const fn fragmented_space(length: i32, max_payload: i32) -> i32 {
    let rest = length % max_payload;
    let last = if rest > 0 { framed_space(rest) } else { 0 };
    length / max_payload * (max_payload + DATA_HEADER_LENGTH) + last
}

/// ReservedRange in a term that was reserved for a message.
#[derive(Debug)]
pub(super) struct ReservedRange<'a> {
    pub(super) term: &'a Region,
    pub(super) ids: StreamIds,
    pub(super) term_id: i32,
    pub(super) offset: i32,
    /// Old bytes may lie in it: readers must find no old frame between two fragments, and no old bytes behind a payload.
    pub(super) clears_ahead: bool,
}

impl ReservedRange<'_> {
    /// Writes and publishes a message of `length` bytes as one frame. Always inlined: the numbers of the header then stay
    /// in registers on their way from the tail to the term.
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

    /// Writes and publishes a message of `length` bytes as frames of `max_payload` bytes, first to last.
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
            // A new borrow for each frame.
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
            // What aligns the frame travels with it. There is a payload then, so that the header is not among these.
            let last = (offset + aligned - FRAME_ALIGNMENT) as usize;
            self.term.zero(last, FRAME_ALIGNMENT as usize);
        }
    }

    /// The term was last used long ago, and perhaps cleaned on another core: messages that contiguous_end each other closely
    /// would wait for each of its lines.
    #[inline]
    fn prefetch_ahead(&self, offset: i32, frame_length: i32) {
        // Long messages are written in one go, which the processor foresees by itself.
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

/// Parts of a message, and how much of the first one is taken.
struct GatherCursor<'a> {
    parts: &'a [&'a [u8]],
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
