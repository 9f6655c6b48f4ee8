// SPDX-License-Identifier: Apache-2.0
use taran_core::sync::Ordering;

use super::append::{ReservedRange, fragmented_space, framed_space, message_length};
use super::clear_ahead::{CLEAR_DISTANCE, clear_slots};
use super::frame::write_padding;
use super::{AppendError, FrameClaim, LogBuffers, LogError, ReservedValueSupplier};
use crate::position::{FRAME_ALIGNMENT, RawTail, partition_of_count};

/// Space of a short frame in bytes, at most. After a longer one only the next slot is cleared: one store in place of many.
const SHORT: i32 = 512;

/// Appender of a log with a single writer. It tracks the tail itself and only writes the tail counter, which the driver
/// reads. It clears the slots after each frame, so that the driver need not clean the log (`clear_ahead`).
///
/// Contract: the caller compares [`Self::position`] with the publisher limit (loaded with acquire) before it appends
/// (docs/spec/shared-memory.md §8.3).
#[doc(alias = "ExclusiveTermAppender")]
#[derive(Debug)]
pub struct ExclusiveAppender {
    log: LogBuffers,
    term_count: i32,
    partition: usize,
    term_id: i32,
    term_offset: i32,
    term_begin: i64,
    /// Position up to which the slots after the tail are known to be clear, or an earlier one.
    cleared: i64,
}

impl ExclusiveAppender {
    /// Returns an appender that continues at the tail of the log.
    ///
    /// # Errors
    /// The tail of the log is invalid.
    pub fn new(log: LogBuffers) -> Result<Self, LogError> {
        let geometry = log.geometry();
        let term_count = log.active_term_count();
        let tail = log.raw_tail(partition_of_count(term_count));
        let term_offset = tail.effective_offset(geometry.term_length());
        let valid = term_count >= 0
            && geometry.term_count(tail.term_id()) == term_count
            && term_offset % FRAME_ALIGNMENT == 0;
        if !valid {
            return Err(LogError::Tail {
                tail: tail.0,
                term_count,
            });
        }
        log.set_clears_ahead();
        let term_begin = geometry.position(tail.term_id(), 0);
        Ok(Self {
            term_count,
            partition: partition_of_count(term_count),
            term_id: tail.term_id(),
            term_offset,
            term_begin,
            cleared: term_begin + i64::from(term_offset),
            log,
        })
    }

    /// Returns the log.
    #[inline]
    #[must_use]
    pub fn log(&self) -> &LogBuffers {
        &self.log
    }

    /// Returns the stream position of the next frame.
    #[inline]
    #[must_use]
    pub fn position(&self) -> i64 {
        self.term_begin + i64::from(self.term_offset)
    }

    /// Returns the term id of the next frame, or that of the previous term if that term is full.
    #[inline]
    #[must_use]
    pub fn term_id(&self) -> i32 {
        self.term_id
    }

    /// Returns the offset of the next frame in its term, or the term length if the term is full.
    #[inline]
    #[must_use]
    pub fn term_offset(&self) -> i32 {
        self.term_offset
    }

    /// Appends a message, fragmented if it does not fit one frame. Returns the stream position after it.
    ///
    /// # Errors
    /// Nothing was appended, see [`AppendError`].
    #[inline]
    pub fn append(
        &mut self,
        message: &[u8],
        reserved: ReservedValueSupplier<'_>,
    ) -> Result<i64, AppendError> {
        self.append_parts(&[message], reserved)
    }

    /// As [`Self::append`], for a message given in parts.
    ///
    /// # Errors
    /// Nothing was appended, see [`AppendError`].
    #[inline]
    pub fn append_parts(
        &mut self,
        parts: &[&[u8]],
        reserved: ReservedValueSupplier<'_>,
    ) -> Result<i64, AppendError> {
        let length = message_length(parts, self.log.max_message_length())?;
        if length > self.log.max_payload_length() {
            return self.append_fragments(parts, length, reserved);
        }
        let required = framed_space(length);
        self.reserve(required)?.write(parts, length, reserved);
        // After the frame, so that its readers do not wait for these stores.
        self.clear_ahead(required);
        Ok(self.position())
    }

    #[inline(never)]
    fn append_fragments(
        &mut self,
        parts: &[&[u8]],
        length: i32,
        reserved: ReservedValueSupplier<'_>,
    ) -> Result<i64, AppendError> {
        let max_payload = self.log.max_payload_length();
        let space = self.reserve(fragmented_space(length, max_payload))?;
        space.write_fragments(parts, length, max_payload, reserved);
        Ok(self.position())
    }

    /// Reserves a frame for a message of `length` bytes, to be filled in place.
    ///
    /// # Errors
    /// Nothing was reserved, see [`AppendError`]. A claim cannot be fragmented.
    #[inline]
    pub fn claim(&mut self, length: usize) -> Result<FrameClaim<'_>, AppendError> {
        let max = self
            .log
            .max_payload_length()
            .min(self.log.max_message_length());
        if length > max as usize {
            return Err(AppendError::TooLong { length, max });
        }
        let length = length as i32;
        let required = framed_space(length);
        // The claim does not come back when its frame is published.
        self.clear_ahead(required);
        let position = self.position() + i64::from(required);
        Ok(FrameClaim::begin(
            &self.reserve(required)?,
            length,
            position,
        ))
    }

    /// Appends padding with a body of `length` bytes, which readers skip. Returns the stream position after it.
    ///
    /// # Errors
    /// Nothing was appended, see [`AppendError`].
    pub fn append_padding(&mut self, length: usize) -> Result<i64, AppendError> {
        let max = self.log.max_message_length();
        if length > max as usize {
            return Err(AppendError::TooLong { length, max });
        }
        let required = framed_space(length as i32);
        let ReservedRange {
            term,
            ids,
            term_id,
            offset,
            ..
        } = self.reserve(required)?;
        write_padding(term, ids, term_id, offset, required);
        Ok(self.position())
    }

    /// Reserves `required` bytes, a multiple of 32.
    #[inline(always)]
    pub(super) fn reserve(&mut self, required: i32) -> Result<ReservedRange<'_>, AppendError> {
        let offset = self.term_offset;
        // No overflow: the term length and `required` are at most 2^30 each.
        let end = offset + required;
        if end > self.log.term_length() {
            return Err(self.on_term_end(end));
        }
        self.clear_after(end, FRAME_ALIGNMENT, FRAME_ALIGNMENT);
        self.store_tail(end);
        self.term_offset = end;
        Ok(ReservedRange {
            term: self.log.term(self.partition),
            ids: self.log.ids(),
            term_id: self.term_id,
            offset,
            clears_ahead: true,
        })
    }

    /// Clears slots after the tail, for a frame of `required` bytes.
    #[inline(always)]
    fn clear_ahead(&mut self, required: i32) {
        if required <= SHORT {
            // Twice its own length, so that the distance grows evenly after a long frame.
            let step = 2 * required + FRAME_ALIGNMENT;
            self.clear_after(self.term_offset, CLEAR_DISTANCE, step);
        }
    }

    /// Clears the slots after `end`, of which readers inspect the first one after a frame that ends there: up to `distance` bytes
    /// after `end`, and of those that are not clear yet at most `step` bytes. Both are at least the length of a slot.
    #[inline(always)]
    fn clear_after(&mut self, end: i32, distance: i32, step: i32) {
        let end = self.term_begin + i64::from(end);
        let from = self.cleared.max(end);
        let to = (end + i64::from(distance)).min(from + i64::from(step));
        if from >= to {
            return;
        }
        self.cleared = to;
        let (from, to) = (from - self.term_begin, to - self.term_begin);
        if to <= i64::from(self.log.term_length()) {
            clear_slots(self.log.term(self.partition), from as i32, to as i32);
        } else {
            self.clear_across(from as i32, to as i32);
        }
    }

    /// Clears slots beyond the end of the term, in the next one.
    #[cold]
    fn clear_across(&self, from: i32, to: i32) {
        let term_length = self.log.term_length();
        let next = partition_of_count(self.term_count.wrapping_add(1));
        clear_slots(self.log.term(self.partition), from, term_length);
        let from = from.max(term_length) - term_length;
        clear_slots(self.log.term(next), from, to - term_length);
    }

    /// Publishes the tail to the driver before the frame is written.
    #[inline]
    fn store_tail(&self, end: i32) {
        // Release: pairs with the acquire in `LogBuffers::raw_tail` (driver).
        self.log.metadata().tails[self.partition]
            .store(RawTail::new(self.term_id, end as u32).0, Ordering::Release);
    }

    /// Pads the rest of the term and rotates. Returns the result for the caller.
    #[cold]
    #[inline(never)]
    fn on_term_end(&mut self, end: i32) -> AppendError {
        self.clear_after(self.log.term_length(), FRAME_ALIGNMENT, FRAME_ALIGNMENT);
        self.store_tail(end);
        let (offset, term_length) = (self.term_offset, self.log.term_length());
        if offset < term_length {
            let term = self.log.term(self.partition);
            write_padding(
                term,
                self.log.ids(),
                self.term_id,
                offset,
                term_length - offset,
            );
            self.term_offset = term_length;
        }
        match self.rotate_term() {
            Ok(()) => AppendError::AdminAction,
            Err(error) => error,
        }
    }

    /// Rotates from a full term to the next one.
    pub(super) fn rotate_term(&mut self) -> Result<(), AppendError> {
        let term_length = i64::from(self.log.term_length());
        if self.term_begin + term_length >= self.log.geometry().max_position() {
            return Err(AppendError::MaxPositionExceeded);
        }
        self.term_count += 1;
        self.partition = partition_of_count(self.term_count);
        self.term_id = self.term_id.wrapping_add(1);
        self.term_offset = 0;
        self.term_begin += term_length;
        let metadata = self.log.metadata();
        metadata.tails[self.partition].store(RawTail::new(self.term_id, 0).0, Ordering::Relaxed);
        // Release: pairs with the acquire in `LogBuffers::active_term_count` (driver), which then sees the tail above.
        metadata
            .active_term_count
            .store(self.term_count, Ordering::Release);
        Ok(())
    }
}
