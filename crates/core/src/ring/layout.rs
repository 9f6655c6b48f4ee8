// SPDX-License-Identifier: Apache-2.0
//! Layout of a ring (docs/spec/shared-memory.md §3.1).

use super::{RingError, WriteError};
use crate::{
    memory::{Padding, Region, Shared},
    overlay,
    records::{TYPE_OFFSET, split},
    sync::{AtomicI32, AtomicI64, Ordering, fence},
};

pub(super) use crate::records::{HEADER_LENGTH, MAX_CAPACITY, PADDING, aligned};

/// Length of the trailer behind the records of a ring.
pub const TRAILER_LENGTH: usize = 768;

/// Smallest capacity: the longest message must fit.
pub(super) const MIN_CAPACITY: usize = 32;

overlay! {
    /// The positions of a ring, in bytes since the creation of the ring; they never wrap.
    pub(super) struct Trailer: 768 {
        0 => padding_0: Padding<128>,
        /// Position of the next claim.
        128 => tail: AtomicI64,
        136 => padding_136: Padding<120>,
        /// Copy of the head for producers, so that they rarely read the consumer's cache line.
        256 => head_cache: AtomicI64,
        264 => padding_264: Padding<120>,
        /// Position up to which the consumer has freed the space.
        384 => head: AtomicI64,
        392 => padding_392: Padding<120>,
        /// The next correlation id.
        512 => correlation: AtomicI64,
        520 => padding_520: Padding<120>,
        /// Time of the consumer's last heartbeat, in milliseconds since the epoch.
        640 => heartbeat: AtomicI64,
        648 => padding_648: Padding<120>,
    }
}

/// Offset of a record: a multiple of 8 below the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Index(usize);

impl Index {
    /// The offset in bytes.
    #[inline]
    pub(super) fn offset(self) -> usize {
        self.0
    }
}

/// A ring's memory.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    data: Region,
    pub(super) trailer: Shared<Trailer>,
}

impl Buffer {
    pub(super) fn open(region: &Region) -> Result<Self, RingError> {
        let (data, trailer) =
            split(region, TRAILER_LENGTH, MIN_CAPACITY).ok_or(RingError::Length {
                length: region.len(),
            })?;
        Ok(Self { data, trailer })
    }

    /// Returns the bytes for records: a power of two.
    #[inline]
    pub(super) fn capacity(&self) -> usize {
        self.data.len()
    }

    /// Returns the longest payload in bytes.
    #[inline]
    pub(super) fn max_message_length(&self) -> usize {
        self.capacity() / 8
    }

    /// Returns the index of a position, also for a damaged position.
    #[inline]
    pub(super) fn index(&self, position: i64) -> Index {
        let mask = (self.capacity() - 1) & !(HEADER_LENGTH - 1);
        // Truncation is fine: the capacity is below 2^31, and only the bits below it count.
        Index(position as usize & mask)
    }

    /// Returns the bytes from a record to the end of the ring.
    #[inline]
    pub(super) fn to_end(&self, index: Index) -> usize {
        self.capacity() - index.0
    }

    /// Returns the length field of a record: 0 free, negative being written, positive published.
    #[inline]
    pub(super) fn length(&self, index: Index) -> &AtomicI32 {
        // SAFETY: an `Index` is a multiple of 8 below the capacity, itself a multiple of 8: 8 bytes follow.
        unsafe { self.data.atomic_i32_unchecked(index.0) }
    }

    /// The type of a record. Ordered by the record's length, hence always relaxed.
    #[inline]
    pub(super) fn type_id(&self, index: Index) -> &AtomicI32 {
        // SAFETY: as for `length`; 8 bytes follow the index.
        unsafe { self.data.atomic_i32_unchecked(index.0 + TYPE_OFFSET) }
    }

    /// Returns the payload of a record, which must not reach beyond the end of the ring.
    #[inline]
    pub(super) fn payload(&self, index: Index, len: usize) -> &[u8] {
        self.data.bytes(index.0 + HEADER_LENGTH, len)
    }

    /// Payload of a record that was claimed.
    ///
    /// # Safety
    ///
    /// `HEADER_LENGTH + len <= self.to_end(index)`, and the record belongs to the caller exclusively for the duration
    /// of the borrow.
    #[inline]
    #[allow(clippy::mut_from_ref)] // shared memory; the caller guarantees that the slice is unique
    pub(super) unsafe fn payload_mut(&self, index: Index, len: usize) -> &mut [u8] {
        // SAFETY: guaranteed by the caller.
        unsafe { self.data.claim_unchecked(index.0 + HEADER_LENGTH, len) }
    }

    /// Marks a claimed record as being written.
    #[inline]
    pub(super) fn begin(&self, index: Index, length: i32) {
        self.length(index).store(-length, Ordering::Release);
        // A process that sees the payload also sees the negative length, which `unblock` checks before it skips a
        // record. Its partner is the acquire load there.
        fence(Ordering::Release);
    }

    /// Publishes a claimed record.
    #[inline]
    pub(super) fn publish(&self, index: Index, length: i32, type_id: i32) {
        self.type_id(index).store(type_id, Ordering::Relaxed);
        // Releases type and payload to the acquire in `Reader::controlled_read`.
        self.length(index).store(length, Ordering::Release);
    }

    /// Turns a range of the ring into a padding record.
    pub(super) fn pad(&self, index: Index, length: usize) {
        let length = record_length(length);
        self.begin(index, length);
        self.publish(index, length, PADDING);
    }

    /// Zeroes a range that the consumer is about to free. `offset + length` is at most the capacity.
    #[inline]
    pub(super) fn clear(&self, index: Index, length: usize) {
        self.data.zero(index.0, length);
    }

    /// Marks a record header as free.
    #[inline]
    pub(super) fn clear_header(&self, index: Index) {
        self.type_id(index).store(0, Ordering::Relaxed);
        self.length(index).store(0, Ordering::Relaxed);
    }

    /// Checks a message from a caller; returns the length for its record's header.
    #[inline]
    pub(super) fn check(&self, type_id: i32, payload: usize) -> Result<i32, WriteError> {
        if type_id < 1 {
            return Err(WriteError::BadTypeId(type_id));
        }
        let max = self.max_message_length();
        if payload > max {
            return Err(WriteError::TooLong {
                length: payload,
                max,
            });
        }
        Ok(record_length(HEADER_LENGTH + payload))
    }

    /// Returns the bytes between head and tail at some moment of the call.
    pub(super) fn size(&self) -> usize {
        // The tail is consistent with the head if the head was the same before and after it was read. A busy consumer
        // may prevent that for long, hence the bound.
        let mut head = self.trailer.head.load(Ordering::Acquire);
        let mut size = 0;
        for _ in 0..8 {
            let tail = self.trailer.tail.load(Ordering::Acquire);
            let again = self.trailer.head.load(Ordering::Acquire);
            size = tail.wrapping_sub(again).clamp(0, self.capacity() as i64);
            if again == head {
                break;
            }
            head = again;
        }
        // Not negative, and at most the capacity.
        size as usize
    }
}

/// Returns a length in bytes as the header stores it. No range of a ring is longer than `MAX_CAPACITY`.
#[inline]
fn record_length(length: usize) -> i32 {
    debug_assert!(length <= MAX_CAPACITY);
    length as i32
}
