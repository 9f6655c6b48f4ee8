// SPDX-License-Identifier: Apache-2.0
use zerocopy::little_endian::I32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{FrameHeader, FrameType, InvalidFrame, MTU_MAX};
use crate::position::{FRAME_ALIGNMENT, is_frame_offset, is_term_length};

/// SETUP frame: the parameters a receiver needs to join a stream (docs/spec/wire.md §1.4).
#[doc(alias = "SetupFlyweight")]
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Setup {
    /// Frame header from [`Setup::header`].
    pub header: FrameHeader,
    /// Offset of the sender's position in its term.
    pub term_offset: I32,
    /// Session id.
    pub session_id: I32,
    /// Stream id.
    pub stream_id: I32,
    /// Term id of position 0.
    pub initial_term_id: I32,
    /// Term id of the sender's position.
    pub active_term_id: I32,
    /// Term length in bytes.
    pub term_length: I32,
    /// Maximum datagram length of the sender, in bytes.
    pub mtu: I32,
    /// Multicast time to live; 0 if not set.
    pub ttl: I32,
}

super::layout!(Setup: 40 {
    0 => header, 8 => term_offset, 12 => session_id, 16 => stream_id, 20 => initial_term_id,
    24 => active_term_id, 28 => term_length, 32 => mtu, 36 => ttl,
});

impl Setup {
    /// Flag: requests a response setup frame from the receiver.
    pub const SEND_RESPONSE_SETUP: u8 = 0x80;
    /// Flag: the publication can have several receivers (multicast or multi-destination).
    pub const GROUP: u8 = 0x40;

    /// Returns the header of a SETUP.
    #[must_use]
    pub const fn header(flags: u8) -> FrameHeader {
        FrameHeader::new(size_of::<Self>() as i32, flags, FrameType::SETUP)
    }

    /// Validates the fields (docs/spec/wire.md §1.14 rule 2).
    pub(super) fn check(&self) -> Result<(), InvalidFrame> {
        let (term_length, term_offset, mtu) = (
            self.term_length.get(),
            self.term_offset.get(),
            self.mtu.get(),
        );
        if !is_term_length(term_length) {
            return Err(InvalidFrame::TermLength(term_length));
        }
        if !is_frame_offset(term_offset, term_length) {
            return Err(InvalidFrame::TermOffset {
                term_offset,
                term_length,
            });
        }
        // An MTU of 32 bytes leaves no payload, and no log has it.
        if !(FRAME_ALIGNMENT + 1..=MTU_MAX).contains(&mtu) || mtu % FRAME_ALIGNMENT != 0 {
            return Err(InvalidFrame::Mtu(mtu));
        }
        Ok(())
    }
}
