// SPDX-License-Identifier: Apache-2.0
//! Layout of a broadcast buffer (docs/spec/shared-memory.md §4.1).

use super::BroadcastError;
use crate::{
    memory::{Padding, Region, Shared},
    overlay,
    records::{TYPE_OFFSET, split},
    sync::{AtomicI32, AtomicI64},
};

pub(super) use crate::records::{HEADER_LENGTH, MAX_CAPACITY, PADDING, aligned};

/// Length of the trailer behind the records of a broadcast buffer.
pub const TRAILER_LENGTH: usize = 128;

/// Smallest capacity: the longest message must fit.
pub(super) const MIN_CAPACITY: usize = 16;

overlay! {
    /// The positions of a broadcast buffer. All count bytes from its beginning and never wrap.
    pub(super) struct Trailer: 128 {
        /// Position up to which the transmitter is writing.
        0 => tail_intent: AtomicI64,
        /// Position up to which records can be read.
        8 => tail: AtomicI64,
        /// Position of the newest record.
        16 => latest: AtomicI64,
        24 => padding_24: Padding<104>,
    }
}

/// A broadcast buffer's memory.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    data: Region,
    pub(super) trailer: Shared<Trailer>,
}

impl Buffer {
    pub(super) fn open(region: &Region) -> Result<Self, BroadcastError> {
        let (data, trailer) =
            split(region, TRAILER_LENGTH, MIN_CAPACITY).ok_or(BroadcastError::Length {
                length: region.len(),
            })?;
        Ok(Self { data, trailer })
    }

    /// Bytes for records: a power of two.
    #[inline]
    pub(super) fn capacity(&self) -> usize {
        self.data.len()
    }

    /// Longest payload in bytes.
    #[inline]
    pub(super) fn max_message_length(&self) -> usize {
        self.capacity() / 8
    }

    /// Offset of the record at a position: a multiple of 8 below the capacity, also for a damaged position.
    #[inline]
    pub(super) fn offset(&self, position: i64) -> usize {
        // Truncation is fine: the capacity is below 2^31, and only the bits below it count.
        position as usize & (self.capacity() - 1) & !(HEADER_LENGTH - 1)
    }

    /// Bytes from an offset to the end of the buffer.
    #[inline]
    pub(super) fn to_end(&self, offset: usize) -> usize {
        self.capacity() - offset
    }

    /// Length of the record at an offset. Ordered by the trailer, hence always relaxed; so is the type.
    #[inline]
    pub(super) fn length(&self, offset: usize) -> &AtomicI32 {
        self.data.atomic_i32(offset)
    }

    /// Type of the record at an offset.
    #[inline]
    pub(super) fn type_id(&self, offset: usize) -> &AtomicI32 {
        self.data.atomic_i32(offset + TYPE_OFFSET)
    }

    /// Writes the payload of the record at an offset.
    #[inline]
    pub(super) fn put_payload(&self, offset: usize, payload: &[u8]) {
        self.data.copy_racing_in(offset + HEADER_LENGTH, payload);
    }

    /// Copies the payload of the record at an offset.
    #[inline]
    pub(super) fn copy_payload(&self, offset: usize, target: &mut [u8]) {
        self.data.copy_racing_out(offset + HEADER_LENGTH, target);
    }
}
