use zerocopy::little_endian::I32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{FrameHeader, FrameType, InvalidFrame, MTU_MAX};
use crate::position::{FRAME_ALIGNMENT, is_frame_offset, is_term_length};

/// SETUP (`docs/spec/wire.md §1.4`): what a receiver must know to join a stream.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Setup {
    /// From [`Setup::header`].
    pub header: FrameHeader,
    /// Offset of the sender's position in its term.
    pub term_offset: I32,
    /// Session of the stream.
    pub session_id: I32,
    /// Stream id.
    pub stream_id: I32,
    /// Term of position 0.
    pub initial_term_id: I32,
    /// Term of the sender's position.
    pub active_term_id: I32,
    /// Bytes in a term.
    pub term_length: I32,
    /// Largest datagram that the sender makes, in bytes.
    pub mtu: I32,
    /// Multicast time to live; 0 when not set.
    pub ttl: I32,
}

super::layout!(Setup: 40 {
    0 => header, 8 => term_offset, 12 => session_id, 16 => stream_id, 20 => initial_term_id,
    24 => active_term_id, 28 => term_length, 32 => mtu, 36 => ttl,
});

impl Setup {
    /// The sender wants to be answered with a response setup.
    pub const SEND_RESPONSE_SETUP: u8 = 0x80;
    /// The publication has more than one receiver by nature (multicast, multi-destination).
    pub const GROUP: u8 = 0x40;

    /// Header of a SETUP.
    #[must_use]
    pub const fn header(flags: u8) -> FrameHeader {
        FrameHeader::new(size_of::<Self>() as i32, flags, FrameType::SETUP)
    }

    /// `docs/spec/wire.md §1.14` rule 2.
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
        // A frame of one alignment is a header and nothing else: no log has such an MTU.
        if !(FRAME_ALIGNMENT + 1..=MTU_MAX).contains(&mtu) || mtu % FRAME_ALIGNMENT != 0 {
            return Err(InvalidFrame::Mtu(mtu));
        }
        Ok(())
    }
}
