// SPDX-License-Identifier: Apache-2.0
use taran_core::sync::Ordering;

use super::append::{ReservedRange, fragmented_space, framed_space, message_length};
use super::frame::write_padding;
use super::{AppendError, FrameClaim, LogBuffers, ReservedValueSupplier};
use crate::position::{FRAME_ALIGNMENT, RawTail, partition_of_count};

/// Appender of a log that any number of threads and processes write concurrently.
///
/// Contract: the caller loads the publisher limit with acquire, reads [`Self::tail`], compares its position with the
/// limit, and appends with that tail (docs/spec/shared-memory.md §8.2).
#[doc(alias = "TermAppender")]
#[derive(Clone, Debug)]
pub struct SharedAppender {
    log: LogBuffers,
}

/// Tail of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    term_count: i32,
    position: i64,
}

impl Tail {
    /// Returns the stream position of the next frame.
    #[inline]
    #[must_use]
    pub fn position(&self) -> i64 {
        self.position
    }
}

impl SharedAppender {
    /// Returns an appender of the log.
    #[must_use]
    pub fn new(log: LogBuffers) -> Self {
        Self { log }
    }

    /// Returns the log.
    #[inline]
    #[must_use]
    pub fn log(&self) -> &LogBuffers {
        &self.log
    }

    /// Returns the tail of the log, or `None` during rotation to the next term: retry immediately.
    #[inline]
    #[must_use]
    pub fn tail(&self) -> Option<Tail> {
        let geometry = self.log.geometry();
        let term_count = self.log.active_term_count();
        let raw = self.log.raw_tail(partition_of_count(term_count));
        if geometry.term_count(raw.term_id()) != term_count {
            return None;
        }
        let position =
            geometry.position(raw.term_id(), raw.effective_offset(geometry.term_length()));
        Some(Tail {
            term_count,
            position,
        })
    }

    /// Appends a message, fragmented if it does not fit one frame. Returns the stream position after it.
    ///
    /// # Errors
    /// Nothing was appended, see [`AppendError`].
    #[inline]
    pub fn append(
        &self,
        tail: Tail,
        message: &[u8],
        reserved: ReservedValueSupplier<'_>,
    ) -> Result<i64, AppendError> {
        self.append_parts(tail, &[message], reserved)
    }

    /// As [`Self::append`], for a message given in parts.
    ///
    /// # Errors
    /// Nothing was appended, see [`AppendError`].
    #[inline]
    pub fn append_parts(
        &self,
        tail: Tail,
        parts: &[&[u8]],
        reserved: ReservedValueSupplier<'_>,
    ) -> Result<i64, AppendError> {
        let length = message_length(parts, self.log.max_message_length())?;
        if length > self.log.max_payload_length() {
            return self.append_fragments(tail, parts, length, reserved);
        }
        let (space, position) = self.reserve(tail, framed_space(length))?;
        space.write(parts, length, reserved);
        Ok(position)
    }

    #[inline(never)]
    fn append_fragments(
        &self,
        tail: Tail,
        parts: &[&[u8]],
        length: i32,
        reserved: ReservedValueSupplier<'_>,
    ) -> Result<i64, AppendError> {
        let max_payload = self.log.max_payload_length();
        let (space, position) = self.reserve(tail, fragmented_space(length, max_payload))?;
        space.write_fragments(parts, length, max_payload, reserved);
        Ok(position)
    }

    /// Reserves a frame for a message of `length` bytes, to be filled in place.
    ///
    /// # Errors
    /// Nothing was reserved, see [`AppendError`]. A claim cannot be fragmented.
    #[inline]
    pub fn claim(&self, tail: Tail, length: usize) -> Result<FrameClaim<'_>, AppendError> {
        let max = self
            .log
            .max_payload_length()
            .min(self.log.max_message_length());
        if length > max as usize {
            return Err(AppendError::TooLong { length, max });
        }
        let length = length as i32;
        let (space, position) = self.reserve(tail, framed_space(length))?;
        Ok(FrameClaim::begin(&space, length, position))
    }

    /// Reserves `space` bytes, a multiple of 32, for the caller to write frames to. Returns the range and the stream
    /// position after it.
    #[inline(always)]
    fn reserve(&self, tail: Tail, space: i32) -> Result<(ReservedRange<'_>, i64), AppendError> {
        let partition = partition_of_count(tail.term_count);
        // Disjoint ranges need atomicity only. AcqRel orders this appender after the previous ones, so that the
        // unblocker, which acquires the tail, sees at least the frames started before the ranges it finds claimed.
        let counter = &self.log.metadata().tails[partition];
        let raw = RawTail(counter.fetch_add(i64::from(space), Ordering::AcqRel));
        let end = raw.offset() + i64::from(space);
        let in_term = end <= i64::from(self.log.term_length());
        let aligned = raw.offset() % i64::from(FRAME_ALIGNMENT) == 0;
        if !(in_term && aligned) {
            return Err(self.on_term_end(tail, raw));
        }
        let space = ReservedRange {
            term: self.log.term(partition),
            ids: self.log.ids(),
            term_id: raw.term_id(),
            offset: raw.offset() as i32,
            clears_ahead: false,
        };
        Ok((
            space,
            self.log.geometry().position(raw.term_id(), end as i32),
        ))
    }

    /// Handles a reservation beyond the end of the term. The one appender whose range starts inside the term pads the
    /// rest; all of them try to rotate.
    #[cold]
    #[inline(never)]
    fn on_term_end(&self, tail: Tail, raw: RawTail) -> AppendError {
        if raw.offset() % i64::from(FRAME_ALIGNMENT) != 0 {
            return AppendError::CorruptTail(raw.0);
        }
        let geometry = self.log.geometry();
        let (term_id, term_length) = (raw.term_id(), geometry.term_length());
        let offset = raw.effective_offset(term_length);
        if offset < term_length {
            let term = self.log.term(partition_of_count(tail.term_count));
            write_padding(term, self.log.ids(), term_id, offset, term_length - offset);
        }
        if geometry.position(term_id, term_length) >= geometry.max_position() {
            return AppendError::MaxPositionExceeded;
        }
        self.log.rotate(tail.term_count, term_id);
        AppendError::AdminAction
    }
}
