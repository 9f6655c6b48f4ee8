use zerocopy::little_endian::I32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{FrameHeader, FrameType, InvalidFrame};
use crate::position::is_frame_offset;

/// Negative acknowledgement (`docs/spec/wire.md §1.6`): a receiver misses a range of one term.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Nak {
    /// From [`Nak::header`].
    pub header: FrameHeader,
    /// Session of the stream.
    pub session_id: I32,
    /// Stream id.
    pub stream_id: I32,
    /// Term of the range.
    pub term_id: I32,
    /// Offset of the first missing byte.
    pub term_offset: I32,
    /// Missing bytes. 0 is to be ignored.
    pub length: I32,
}

super::layout!(Nak: 28 {
    0 => header, 8 => session_id, 12 => stream_id, 16 => term_id, 20 => term_offset, 24 => length,
});

impl Nak {
    /// Header of a NAK.
    #[must_use]
    pub const fn header() -> FrameHeader {
        FrameHeader::new(size_of::<Self>() as i32, 0, FrameType::NAK)
    }

    /// `docs/spec/wire.md §1.14` rule 4, with the term length of the publication.
    ///
    /// # Errors
    /// The range is not in the term.
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
