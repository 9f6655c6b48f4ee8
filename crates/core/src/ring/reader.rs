// SPDX-License-Identifier: Apache-2.0
//! Consuming messages of a ring, for both kinds (docs/spec/shared-memory.md §3.4).

use super::{
    Action, Corrupt, RingError,
    layout::{Buffer, HEADER_LENGTH, Index, PADDING, aligned},
};
use crate::sync::Ordering;

/// The consuming end. `CLEAR`: consumed bytes are zeroed before they are freed, as required with many producers.
#[derive(Debug)]
pub(super) struct Reader<const CLEAR: bool> {
    pub(super) buffer: Buffer,
    /// The consumer's head. The copy in the trailer is for producers, and is not read here.
    pub(super) head: i64,
}

impl<const CLEAR: bool> Reader<CLEAR> {
    pub(super) fn open(buffer: Buffer) -> Result<Self, RingError> {
        let head = buffer.trailer.head.load(Ordering::Acquire);
        if head % HEADER_LENGTH as i64 != 0 {
            return Err(RingError::Position { position: head });
        }
        Ok(Self { buffer, head })
    }

    /// Passes messages to `handler`, up to `limit`, the end of the ring, or the first incomplete record.
    #[inline]
    pub(super) fn controlled_read(
        &mut self,
        limit: usize,
        mut handler: impl FnMut(i32, &[u8]) -> Action,
    ) -> Result<usize, Corrupt> {
        // Checked before the tail, whose cache line is contended by producers.
        let first = self.buffer.length(self.index()).load(Ordering::Acquire);
        if first <= 0 || limit == 0 {
            return Ok(0);
        }
        let Some(mut block) = self.claimed_block() else {
            return Err(self.discard(first));
        };
        let mut batch = Batch {
            reader: self,
            consumed: 0,
        };
        let mut messages = 0;
        while batch.consumed < block && messages < limit {
            let index = batch.index();
            // Acquires type and payload, released by `Buffer::publish`.
            let length = batch.reader.buffer.length(index).load(Ordering::Acquire);
            if length <= 0 {
                break;
            }
            let record = length.unsigned_abs() as usize;
            if record < HEADER_LENGTH || record > block - batch.consumed {
                if messages == 0 && batch.consumed == 0 {
                    return Err(batch.reader.discard(length));
                }
                break; // the delivered messages are returned first; the next read starts here
            }
            // Counted before it is handled: a handler that panics does not receive the message again. `block` and
            // `consumed` are multiples of 8, so the aligned length does not pass the block either.
            batch.consumed += aligned(record);
            let type_id = batch.reader.buffer.type_id(index).load(Ordering::Relaxed);
            if type_id == PADDING {
                continue;
            }
            // `record` was just checked against the block, which does not pass the end of the ring.
            let payload = batch.reader.buffer.payload(index, record - HEADER_LENGTH);
            let action = handler(type_id, payload);
            if action == Action::Abort {
                batch.consumed -= aligned(record);
                break;
            }
            messages += 1;
            match action {
                Action::Break => break,
                Action::Commit => block -= batch.release(),
                Action::Abort | Action::Continue => {}
            }
        }
        Ok(messages)
    }

    /// Returns true if a read would find a message, padding, or damage now.
    #[inline]
    pub(super) fn has_next(&self) -> bool {
        self.buffer.length(self.index()).load(Ordering::Acquire) > 0
    }

    /// Returns the index of the next record.
    #[inline]
    pub(super) fn index(&self) -> Index {
        self.buffer.index(self.head)
    }

    /// Bytes that producers have claimed from the head on, as far as they lie in one piece. None if head and tail are
    /// inconsistent. Claims are made of whole records, so a valid record that starts in the block ends in it.
    #[inline]
    pub(super) fn claimed_block(&self) -> Option<usize> {
        Some(self.claimed()?.min(self.buffer.to_end(self.index())))
    }

    /// Bytes that producers have claimed from the head on. None if head and tail are inconsistent.
    #[inline]
    pub(super) fn claimed(&self) -> Option<usize> {
        // Acquires the compare-and-swap of `many_to_one::Producer::reserve`, or the release of `one_to_one`'s.
        let tail = self.buffer.trailer.tail.load(Ordering::Acquire);
        let claimed = usize::try_from(tail.wrapping_sub(self.head)).ok()?;
        (claimed <= self.buffer.capacity() && claimed.is_multiple_of(HEADER_LENGTH))
            .then_some(claimed)
    }

    /// Publishes the head: frees the space before it for producers.
    #[inline]
    pub(super) fn publish_head(&self) {
        // Releases the cleared bytes, and the last reads of them, to the acquire of the head in `reserve`.
        self.buffer.trailer.head.store(self.head, Ordering::Release);
    }

    /// Drops everything between head and tail, and repairs the tail. A producer that has not published its record at
    /// this moment may do so later, into space that it no longer owns: then the ring is damaged again, or a message of
    /// that producer arrives late or mixed with another. All effects stay inside the ring. With an impossible tail, and
    /// with records behind it, the whole ring is cleared: stale records would be taken for new ones.
    #[cold]
    pub(super) fn discard(&mut self, length: i32) -> Corrupt {
        let position = self.head;
        let trailer = &self.buffer.trailer;
        let tail = trailer.tail.load(Ordering::Acquire);
        let repaired = tail.wrapping_add(HEADER_LENGTH as i64 - 1) & !(HEADER_LENGTH as i64 - 1);
        if tail != repaired {
            // If this fails, the tail has moved, and the next read checks it.
            let _ =
                trailer
                    .tail
                    .compare_exchange(tail, repaired, Ordering::AcqRel, Ordering::Relaxed);
        }
        let capacity = self.buffer.capacity();
        let dropped = match usize::try_from(tail.wrapping_sub(position)) {
            Ok(claimed @ 1..) if claimed <= capacity => claimed.next_multiple_of(HEADER_LENGTH),
            _ => capacity,
        };
        let start = self.index();
        let before_wrap = dropped.min(self.buffer.to_end(start));
        self.buffer.clear(start, before_wrap);
        self.buffer
            .clear(self.buffer.index(0), dropped - before_wrap);
        self.head = repaired;
        self.publish_head();
        // A damaged copy of the head would let producers overwrite records that are not consumed yet.
        self.buffer
            .trailer
            .head_cache
            .store(repaired, Ordering::Release);
        Corrupt {
            position,
            length,
            tail,
            dropped,
        }
    }
}

/// Records that were consumed but not freed. Frees them on drop, also if a handler panics.
struct Batch<'reader, const CLEAR: bool> {
    reader: &'reader mut Reader<CLEAR>,
    consumed: usize,
}

impl<const CLEAR: bool> Batch<'_, CLEAR> {
    #[inline]
    fn index(&self) -> Index {
        self.reader
            .buffer
            .index(self.reader.head.wrapping_add(self.consumed as i64))
    }

    /// Frees the consumed bytes, which are contiguous; returns their number.
    #[inline]
    fn release(&mut self) -> usize {
        let released = std::mem::take(&mut self.consumed);
        if released > 0 {
            let reader = &mut *self.reader;
            if CLEAR {
                reader.buffer.clear(reader.index(), released);
            }
            reader.head = reader.head.wrapping_add(released as i64);
            reader.publish_head();
        }
        released
    }
}

impl<const CLEAR: bool> Drop for Batch<'_, CLEAR> {
    #[inline]
    fn drop(&mut self) {
        self.release();
    }
}
