// SPDX-License-Identifier: Apache-2.0
//! Many producers, in any number of processes, and one consumer (docs/spec/shared-memory.md §3). Carries the clients'
//! commands.

use super::{
    Action, Corrupt, RingClaim, RingError, WriteError,
    layout::{Buffer, HEADER_LENGTH, Index, aligned},
    reader::Reader,
    unblock::{repair, unblock},
};
use crate::{memory::Region, sync::Ordering};

/// A producing end. Clones write to the same ring.
#[doc(alias = "ManyToOneRingBuffer")]
#[derive(Clone, Debug)]
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
    pub fn write(&self, type_id: i32, payload: &[u8]) -> Result<(), WriteError> {
        self.write_with(type_id, payload.len(), |target| {
            target.copy_from_slice(payload);
        })
    }

    /// Writes a message of `length` bytes in place. The initial contents of the bytes are unspecified. If `fill`
    /// panics, the message is aborted.
    #[inline]
    pub fn write_with(
        &self,
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
    pub fn try_claim(&self, type_id: i32, length: usize) -> Result<RingClaim<'_>, WriteError> {
        let record = self.buffer.check(type_id, length)?;
        let index = self.reserve(aligned(HEADER_LENGTH + length))?;
        // SAFETY: `reserve` reserved the record exclusively.
        Ok(unsafe { RingClaim::begin(&self.buffer, index, record, type_id) })
    }

    /// For loom: reserves space and writes nothing to it, like a producer that dies right after the reservation.
    #[cfg(loom)]
    #[doc(hidden)]
    pub fn reserve_and_abandon(&self, length: usize) {
        let _ = self.reserve(aligned(HEADER_LENGTH + length));
    }

    /// Reserves `required` contiguous bytes, a multiple of 8 and at most half of the ring.
    #[inline]
    fn reserve(&self, required: usize) -> Result<Index, WriteError> {
        let buffer = &self.buffer;
        let trailer = &*buffer.trailer;
        let (capacity, needed) = (buffer.capacity() as i64, required as i64);
        // Acquires another producer's release below, and with it the consumer's writes that that producer acquired.
        let mut head = trailer.head_cache.load(Ordering::Acquire);
        loop {
            let tail = trailer.tail.load(Ordering::Acquire);
            if tail % HEADER_LENGTH as i64 != 0 {
                return Err(WriteError::Corrupt { tail, head });
            }
            // An impossible cached head is damaged, and is not used.
            if !(needed..=capacity).contains(&capacity.wrapping_sub(tail.wrapping_sub(head))) {
                // Acquires the release in `Batch::release`: the bytes behind the head are zero now.
                head = trailer.head.load(Ordering::Acquire);
                let used = tail.wrapping_sub(head);
                if !(0..=capacity).contains(&used) || head % HEADER_LENGTH as i64 != 0 {
                    // Otherwise another producer has moved the tail, and the consumer the head.
                    if trailer.tail.load(Ordering::Acquire) == tail {
                        return Err(WriteError::Corrupt { tail, head });
                    }
                    continue;
                }
                if needed > capacity - used {
                    return Err(WriteError::Full);
                }
                trailer.head_cache.store(head, Ordering::Release);
            }

            let index = buffer.index(tail);
            let to_end = buffer.to_end(index);
            let mut padding = 0;
            if required > to_end {
                // The record goes to the beginning of the ring, and must end before the head there.
                if required > buffer.index(head).offset() {
                    head = trailer.head.load(Ordering::Acquire); // as above
                    if required > buffer.index(head).offset() {
                        return Err(WriteError::Full);
                    }
                    trailer.head_cache.store(head, Ordering::Release);
                }
                padding = to_end;
            }

            let next = tail.wrapping_add(needed).wrapping_add(padding as i64);
            // The partner is the acquire in `Reader::claimed`.
            if trailer
                .tail
                .compare_exchange_weak(tail, next, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
            {
                continue;
            }
            if padding == 0 {
                return Ok(index);
            }
            buffer.pad(index, padding);
            return Ok(buffer.index(0));
        }
    }

    /// Returns a number that no other call on this ring returns, in any process.
    #[inline]
    pub fn next_correlation_id(&self) -> i64 {
        // Uniqueness needs no order.
        self.buffer
            .trailer
            .correlation
            .fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the time of the consumer's last heartbeat, in milliseconds since the epoch; −1 after it has closed.
    pub fn consumer_heartbeat_ms(&self) -> i64 {
        // Acquires the release in `Consumer::set_heartbeat_ms`.
        self.buffer.trailer.heartbeat.load(Ordering::Acquire)
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
#[doc(alias = "ManyToOneRingBuffer")]
#[derive(Debug)]
pub struct Consumer {
    reader: Reader<true>,
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

    /// Returns true if a read would find a record now; reads one cache line.
    #[inline]
    pub fn has_next(&self) -> bool {
        self.reader.has_next()
    }

    /// Unblocks the ring after a producer died between claim and commit: its record becomes padding. To be called if
    /// the head has not moved for long and is not at the tail; the timeout must be long, because a slow producer would
    /// write into space that it no longer owns. Returns false if there is nothing to unblock.
    pub fn unblock(&mut self) -> bool {
        unblock(&mut self.reader)
    }

    /// Repairs the ring if its tail, or the next record, is not one that a producer writes: drops its contents and
    /// continues at the tail. To be called as [`unblock`](Self::unblock). Returns the damage, or `None` if there is none.
    pub fn repair(&mut self) -> Option<Corrupt> {
        repair(&mut self.reader)
    }

    /// Publishes a heartbeat for clients. Also publishes the head again: if another process damaged it, an empty ring
    /// would look full forever.
    pub fn set_heartbeat_ms(&self, epoch_ms: i64) {
        self.reader.publish_head();
        // Released to `Producer::consumer_heartbeat_ms`.
        self.reader
            .buffer
            .trailer
            .heartbeat
            .store(epoch_ms, Ordering::Release);
    }

    /// Returns the time of the last heartbeat, in milliseconds since the epoch.
    pub fn heartbeat_ms(&self) -> i64 {
        self.reader.buffer.trailer.heartbeat.load(Ordering::Acquire)
    }

    /// Returns a number that no other call on this ring returns, in any process.
    pub fn next_correlation_id(&self) -> i64 {
        self.reader
            .buffer
            .trailer
            .correlation
            .fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the position in bytes up to which messages were consumed.
    pub fn head(&self) -> i64 {
        self.reader.head
    }

    /// Returns the position in bytes up to which producers have claimed. Equal to the head when the ring is empty.
    pub fn tail(&self) -> i64 {
        self.reader.buffer.trailer.tail.load(Ordering::Acquire)
    }

    /// Returns the longest message in bytes.
    pub fn max_message_length(&self) -> usize {
        self.reader.buffer.max_message_length()
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
