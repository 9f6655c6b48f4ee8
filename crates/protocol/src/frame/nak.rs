// SPDX-License-Identifier: Apache-2.0
use zerocopy::little_endian::I32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{FrameHeader, FrameType, InvalidFrame};
use crate::position::is_frame_offset;

/// Negative acknowledgement: a receiver reports a missing range of one term (docs/spec/wire.md §1.6).
#[doc(alias = "NakFlyweight")]
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Nak {
    /// Frame header from [`Nak::header`].
    pub header: FrameHeader,
    /// Session id.
    pub session_id: I32,
    /// Stream id.
    pub stream_id: I32,
    /// Term id of the range.
    pub term_id: I32,
    /// Offset of the first missing byte.
    pub term_offset: I32,
    /// Number of missing bytes. A NAK with 0 is ignored.
    pub length: I32,
}

super::layout!(Nak: 28 {
    0 => header, 8 => session_id, 12 => stream_id, 16 => term_id, 20 => term_offset, 24 => length,
});

impl Nak {
    /// Returns the header of a NAK.
    #[must_use]
    pub const fn header() -> FrameHeader {
        FrameHeader::new(size_of::<Self>() as i32, 0, FrameType::NAK)
    }

    /// Validates the range against the term length of the publication (docs/spec/wire.md §1.14 rule 4).
    ///
    /// # Errors
    /// The range is not inside the term.
    #[inline]
    pub fn check(&self, term_length: i32) -> Result<(), InvalidFrame> {
        let (term_offset, length) = (self.term_offset.get(), self.length.get());
        if !is_frame_offset(term_offset, term_length) {
            return Err(InvalidFrame::TermOffset {
                term_offset,
                term_length,
            });
        }
        if length < 0 || length > term_length - term_offset {
            return Err(InvalidFrame::Range {
                term_offset,
                length,
                term_length,
            });
        }
        Ok(())
    }
}
