// SPDX-License-Identifier: Apache-2.0
use std::fmt;
use std::mem::offset_of;
use std::ops::{Deref, DerefMut};

use taran_core::memory::{Claim, Region};

use super::append::{ReservedRange, write_reserved_value};
use super::frame::commit;
use crate::frame::{DATA_HEADER_LENGTH, DataHeader, FrameHeader, FrameType};

/// Space for one message in a log, to be filled in place. Readers wait for the claim, so commit it soon. Dropping a
/// claim aborts it; readers then skip its space.
#[doc(alias = "BufferClaim")]
#[must_use = "a claim that is dropped is aborted"]
pub struct FrameClaim<'a> {
    // Dropped first, so that the exclusive access to the payload ends before the frame is published.
    payload: Claim<'a>,
    frame: AbortOnDrop<'a>,
    position: i64,
}

impl<'a> FrameClaim<'a> {
    /// Starts the frame of a message of `length` bytes. `position` is the stream position after it.
    #[inline]
    pub(super) fn begin(space: &ReservedRange<'a>, length: i32, position: i64) -> Self {
        let ReservedRange { term, offset, .. } = *space;
        let frame_length = DATA_HEADER_LENGTH + length;
        space.begin(offset, frame_length, DataHeader::UNFRAGMENTED);
        Self {
            payload: term.claim((offset + DATA_HEADER_LENGTH) as usize, length as usize),
            frame: AbortOnDrop {
                term,
                offset,
                length: frame_length,
            },
            position,
        }
    }

    /// Returns the stream position after the message.
    #[inline]
    #[must_use]
    pub fn position(&self) -> i64 {
        self.position
    }

    /// Sets the flags of the frame, see [`DataHeader`].
    #[inline]
    pub fn set_flags(&mut self, flags: u8) {
        self.frame.write(offset_of!(FrameHeader, flags), &[flags]);
    }

    /// Sets the type of the frame. Subscribers skip [`FrameType::PAD`].
    #[inline]
    pub fn set_frame_type(&mut self, frame_type: FrameType) {
        let bytes = frame_type.0.to_le_bytes();
        self.frame
            .write(offset_of!(FrameHeader, frame_type), &bytes);
    }

    /// Sets the reserved value of the frame.
    #[inline]
    pub fn set_reserved_value(&mut self, value: i64) {
        write_reserved_value(self.frame.term, self.frame.offset, value);
    }

    /// Publishes the message and returns the stream position after it.
    #[inline]
    pub fn commit(self) -> i64 {
        let Self {
            payload,
            frame,
            position,
        } = self;
        {
            let _released = payload;
        }
        frame.publish();
        position
    }

    /// Aborts the claim: publishes it as padding, which readers skip.
    #[inline]
    pub fn abort(self) {}
}

impl Deref for FrameClaim<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.payload
    }
}

impl DerefMut for FrameClaim<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.payload
    }
}

impl fmt::Debug for FrameClaim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameClaim")
            .field("frame", &self.frame)
            .field("position", &self.position)
            .finish()
    }
}

/// Guard of a frame whose length is still negative. Publishes it as padding when dropped.
#[derive(Debug)]
struct AbortOnDrop<'a> {
    term: &'a Region,
    offset: i32,
    length: i32,
}

impl AbortOnDrop<'_> {
    #[inline]
    fn write(&self, field: usize, bytes: &[u8]) {
        self.term.write(self.offset as usize + field, bytes);
    }

    #[inline]
    fn publish(self) {
        commit(self.term, self.offset, self.length);
        std::mem::forget(self);
    }
}

impl Drop for AbortOnDrop<'_> {
    fn drop(&mut self) {
        self.write(
            offset_of!(FrameHeader, frame_type),
            &FrameType::PAD.0.to_le_bytes(),
        );
        commit(self.term, self.offset, self.length);
    }
}
