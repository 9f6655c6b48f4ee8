use zerocopy::little_endian::{I32, I64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{FrameHeader, FrameType, InvalidFrame};
use crate::position::{TERM_LENGTH_MAX, is_frame_offset};

/// Status message (`docs/spec/wire.md §1.5`): where a receiver is, and how much more it accepts.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct StatusMessage {
    /// From [`StatusMessage::header`] or [`StatusMessageWithTag::header`].
    pub header: FrameHeader,
    /// Session of the stream.
    pub session_id: I32,
    /// Stream id.
    pub stream_id: I32,
    /// Term of the consumption position.
    pub consumption_term_id: I32,
    /// Offset of the consumption position in its term.
    pub consumption_term_offset: I32,
    /// Bytes accepted beyond the consumption position.
    pub receiver_window: I32,
    /// Unique for each receiving endpoint.
    pub receiver_id: I64,
}

super::layout!(StatusMessage: 36 {
    0 => header, 8 => session_id, 12 => stream_id, 16 => consumption_term_id, 20 => consumption_term_offset,
    24 => receiver_window, 28 => receiver_id,
});

/// A status message of a receiver that belongs to a group.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct StatusMessageWithTag {
    /// The message.
    pub message: StatusMessage,
    /// The receiver's group.
    pub group_tag: I64,
}

super::layout!(StatusMessageWithTag: 44 { 0 => message, 36 => group_tag });

impl StatusMessage {
    /// Asks the sender for a SETUP; position and window are all zero.
    pub const SEND_SETUP: u8 = 0x80;
    /// The receiver has everything, or leaves.
    pub const EOS: u8 = 0x40;

    /// Header of a status message without a group tag.
    #[must_use]
    pub const fn header(flags: u8) -> FrameHeader {
        FrameHeader::new(size_of::<Self>() as i32, flags, FrameType::STATUS_MESSAGE)
    }

    /// True if the receiver asks for a SETUP.
    #[inline]
    #[must_use]
    pub const fn asks_for_setup(&self) -> bool {
        self.header.flags & Self::SEND_SETUP != 0
    }

    /// True if the receiver has everything, or leaves.
    #[inline]
    #[must_use]
    pub const fn is_end_of_stream(&self) -> bool {
        self.header.flags & Self::EOS != 0
    }

    /// `docs/spec/wire.md §1.14` rule 3, with the term length of the publication, or `None` if the stream is unknown.
    ///
    /// # Errors
    /// The offset is not in the term or the window is not in half of it.
    #[inline]
    pub fn check(&self, term_length: Option<i32>) -> Result<(), InvalidFrame> {
        let term_length = term_length.unwrap_or(TERM_LENGTH_MAX);
        let (term_offset, window) = (
            self.consumption_term_offset.get(),
            self.receiver_window.get(),
        );
        if !is_frame_offset(term_offset, term_length) {
            return Err(InvalidFrame::TermOffset {
                term_offset,
                term_length,
            });
        }
        let max = term_length / 2;
        if window < 0 || window > max {
            return Err(InvalidFrame::Window { window, max });
        }
        Ok(())
    }
}

impl StatusMessageWithTag {
    /// Header of a status message with a group tag.
    #[must_use]
    pub const fn header(flags: u8) -> FrameHeader {
        FrameHeader::new(size_of::<Self>() as i32, flags, FrameType::STATUS_MESSAGE)
    }
}

/// A status message that came in, with its application specific feedback.
#[derive(Clone, Copy, Debug)]
pub struct StatusFrame<'a> {
    /// The fixed part.
    pub message: &'a StatusMessage,
    /// What follows it, as far as the frame length reaches: nothing, or eight bytes of group tag. Other lengths are not
    /// an error; they carry no tag.
    pub feedback: &'a [u8],
}

impl<'a> StatusFrame<'a> {
    #[inline]
    pub(super) fn parse(datagram: &'a [u8]) -> Result<Self, InvalidFrame> {
        let message: &StatusMessage = super::fixed(datagram)?;
        let end = message.header.frame_length.get() as usize;
        let feedback = datagram
            .get(size_of::<StatusMessage>()..end)
            .unwrap_or_default();
        Ok(Self { message, feedback })
    }

    /// The receiver's group, if it told one.
    #[inline]
    #[must_use]
    pub fn group_tag(&self) -> Option<i64> {
        self.feedback.try_into().ok().map(i64::from_le_bytes)
    }
}
