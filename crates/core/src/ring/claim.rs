// SPDX-License-Identifier: Apache-2.0
//! A record between claim and commit.

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

use super::layout::{Buffer, HEADER_LENGTH, Index, PADDING};

/// Space for a message in a ring, to be filled in place. Blocks the consumer until it is committed. A claim that is
/// dropped is aborted.
#[must_use = "a claim that is dropped is aborted"]
pub struct RingClaim<'ring> {
    buffer: &'ring Buffer,
    index: Index,
    length: i32,
    type_id: i32,
}

impl<'ring> RingClaim<'ring> {
    /// Begins writing a reserved record.
    ///
    /// # Safety
    ///
    /// The record of `length` bytes at `index` lies in the ring and was reserved by and for the caller; `length` is at
    /// least a header's.
    #[inline]
    pub(super) unsafe fn begin(
        buffer: &'ring Buffer,
        index: Index,
        length: i32,
        type_id: i32,
    ) -> Self {
        buffer.begin(index, length);
        Self {
            buffer,
            index,
            length,
            type_id,
        }
    }

    /// Publishes the message.
    #[inline]
    pub fn commit(self) {
        let claim = std::mem::ManuallyDrop::new(self);
        claim
            .buffer
            .publish(claim.index, claim.length, claim.type_id);
    }

    /// Aborts the message; the consumer skips its space.
    #[inline]
    pub fn abort(self) {
        drop(self);
    }

    #[inline]
    fn payload_length(&self) -> usize {
        self.length as usize - HEADER_LENGTH
    }
}

impl Drop for RingClaim<'_> {
    fn drop(&mut self) {
        self.buffer.publish(self.index, self.length, PADDING);
    }
}

impl Deref for RingClaim<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.buffer.payload(self.index, self.payload_length())
    }
}

impl DerefMut for RingClaim<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the contract of `begin`: the record lies in the ring and belongs to the claim until it is published.
        unsafe { self.buffer.payload_mut(self.index, self.payload_length()) }
    }
}

impl fmt::Debug for RingClaim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RingClaim")
            .field("type_id", &self.type_id)
            .field("len", &self.payload_length())
            .finish_non_exhaustive()
    }
}
