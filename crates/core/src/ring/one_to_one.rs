// SPDX-License-Identifier: Apache-2.0
//! One producer and one consumer (docs/spec/shared-memory.md §3.8). Cheaper than [`many_to_one`](super::many_to_one):
//! no compare-and-swap, and no zeroing of what was consumed; the producer clears the header behind each record instead.

use super::{
    Action, Corrupt, RingClaim, RingError, WriteError,
    layout::{Buffer, HEADER_LENGTH, Index, aligned},
    reader::Reader,
};
use crate::{memory::Region, sync::Ordering};

/// The producing end. There must be only one, in all processes.
#[doc(alias = "OneToOneRingBuffer")]
#[derive(Debug)]
pub struct Producer {
    buffer: Buffer,
}

impl Producer {
    /// Opens the ring in a region.
    pub fn open(region: &Region) -> Result<Self, RingError> {
        Ok(Self {
            buffer: Buffer::open(region)?,
        })
    }

    /// Writes a message.
    #[inline]
    pub fn write(&mut self, type_id: i32, payload: &[u8]) -> Result<(), WriteError> {
        self.write_with(type_id, payload.len(), |target| {
            target.copy_from_slice(payload);
        })
    }

    /// Writes a message of `length` bytes in place. The initial contents of the bytes are unspecified. If `fill`
    /// panics, the message is aborted.
    #[inline]
    pub fn write_with(
        &mut self,
        type_id: i32,
        length: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), WriteError> {
        let mut claim = self.try_claim(type_id, length)?;
        fill(&mut claim);
        claim.commit();
        Ok(())
    }

    /// Claims space for a message of `length` bytes, which blocks the consumer until it is committed.
    #[inline]
    pub fn try_claim(&mut self, type_id: i32, length: usize) -> Result<RingClaim<'_>, WriteError> {
        let record = self.buffer.check(type_id, length)?;
        let index = self.reserve(aligned(HEADER_LENGTH + length))?;
        // SAFETY: `reserve` reserved the record exclusively.
        Ok(unsafe { RingClaim::begin(&self.buffer, index, record, type_id) })
    }

    /// Reserves `required` contiguous bytes, a multiple of 8, and clears the header behind them. Only this end writes
    /// `head_cache` and `tail`.
    #[inline]
    fn reserve(&mut self, required: usize) -> Result<Index, WriteError> {
        let buffer = &self.buffer;
        let trailer = &*buffer.trailer;
        let with_next = required + HEADER_LENGTH;
        let (capacity, needed) = (buffer.capacity() as i64, with_next as i64);
        let tail = trailer.tail.load(Ordering::Relaxed);
        let mut head = trailer.head_cache.load(Ordering::Relaxed);
        if tail % HEADER_LENGTH as i64 != 0 {
            return Err(WriteError::Corrupt { tail, head });
        }
        if needed > capacity.wrapping_sub(tail.wrapping_sub(head)) {
            // Acquires the release in `Batch::release`: the consumer does not read behind the head any more.
            head = trailer.head.load(Ordering::Acquire);
            if needed > capacity.wrapping_sub(tail.wrapping_sub(head)) {
                return Err(WriteError::Full);
            }
            trailer.head_cache.store(head, Ordering::Relaxed);
        }

        let index = buffer.index(tail);
        let to_end = buffer.to_end(index);
        let beginning = buffer.index(0);
        if required == to_end {
            buffer.clear_header(beginning);
            self.advance(tail, required);
            return Ok(index);
        }
        if with_next <= to_end {
            buffer.clear_header(buffer.index(tail.wrapping_add(required as i64)));
            self.advance(tail, required);
            return Ok(index);
        }
        // The rest of the ring becomes padding. It is free: the head is more than that away.
        let mut fits = with_next <= buffer.index(head).offset();
        if !fits {
            head = trailer.head.load(Ordering::Acquire); // as above
            fits = with_next <= buffer.index(head).offset();
            trailer.head_cache.store(head, Ordering::Relaxed);
        }
        buffer.clear_header(beginning);
        if fits {
            buffer.clear_header(buffer.index(required as i64));
        }
        self.advance(tail, if fits { to_end + required } else { to_end });
        self.buffer.pad(index, to_end);
        if fits {
            Ok(beginning)
        } else {
            Err(WriteError::Full)
        }
    }

    #[inline]
    fn advance(&self, tail: i64, length: usize) {
        // The partner is the acquire in `Reader::claimed`.
        self.buffer
            .trailer
            .tail
            .store(tail.wrapping_add(length as i64), Ordering::Release);
    }

    /// A number that no other call on this ring returns.
    #[inline]
    pub fn next_correlation_id(&self) -> i64 {
        // Uniqueness needs no order.
        self.buffer
            .trailer
            .correlation
            .fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the longest message in bytes.
    pub fn max_message_length(&self) -> usize {
        self.buffer.max_message_length()
    }

    /// Returns the bytes for records.
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Returns the bytes between head and tail, including padding and headers.
    pub fn size(&self) -> usize {
        self.buffer.size()
    }
}

/// The consuming end.
#[doc(alias = "OneToOneRingBuffer")]
#[derive(Debug)]
pub struct Consumer {
    reader: Reader<false>,
}

impl Consumer {
    /// Opens the ring in a region, and continues where the last consumer stopped.
    pub fn open(region: &Region) -> Result<Self, RingError> {
        Ok(Self {
            reader: Reader::open(Buffer::open(region)?)?,
        })
    }

    /// Passes up to `limit` messages (type, payload) to `handler`; returns their number. Stops at the end of the ring's
    /// memory, so that fewer than the limit does not mean that the ring is empty.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if the next record is not one that a producer writes; the handler was not called, and the ring is
    /// empty now.
    #[inline]
    pub fn read(
        &mut self,
        limit: usize,
        mut handler: impl FnMut(i32, &[u8]),
    ) -> Result<usize, Corrupt> {
        self.controlled_read(limit, |type_id, payload| {
            handler(type_id, payload);
            Action::Continue
        })
    }

    /// As [`read`](Self::read), with an [`Action`] of the handler. An aborted message does not count.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    #[inline]
    pub fn controlled_read(
        &mut self,
        limit: usize,
        handler: impl FnMut(i32, &[u8]) -> Action,
    ) -> Result<usize, Corrupt> {
        self.reader.controlled_read(limit, handler)
    }

    /// Position in bytes up to which messages were consumed.
    pub fn head(&self) -> i64 {
        self.reader.head
    }

    /// Position in bytes up to which the producer has claimed. Equal to the head when the ring is empty.
    pub fn tail(&self) -> i64 {
        self.reader.buffer.trailer.tail.load(Ordering::Acquire)
    }

    /// Returns the bytes for records.
    pub fn capacity(&self) -> usize {
        self.reader.buffer.capacity()
    }

    /// Returns the bytes between head and tail, including padding and headers.
    pub fn size(&self) -> usize {
        self.reader.buffer.size()
    }
}
