// SPDX-License-Identifier: Apache-2.0
use zerocopy::little_endian::{I32, I64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{FrameHeader, FrameType, InvalidFrame};
use crate::position::{TERM_LENGTH_MAX, is_frame_offset};

/// Status message: consumption position and window of a receiver (docs/spec/wire.md §1.5).
#[doc(alias = "StatusMessageFlyweight")]
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct StatusMessage {
    /// Frame header from [`StatusMessage::header`] or [`StatusMessageWithTag::header`].
    pub header: FrameHeader,
    /// Session id.
    pub session_id: I32,
    /// Stream id.
    pub stream_id: I32,
    /// Term of the consumption position.
    pub consumption_term_id: I32,
    /// Offset of the consumption position in its term.
    pub consumption_term_offset: I32,
    /// Bytes accepted beyond the consumption position.
    pub receiver_window: I32,
    /// Receiver id, unique per receive endpoint.
    pub receiver_id: I64,
}

super::layout!(StatusMessage: 36 {
    0 => header, 8 => session_id, 12 => stream_id, 16 => consumption_term_id, 20 => consumption_term_offset,
    24 => receiver_window, 28 => receiver_id,
});

/// Status message with a group tag.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct StatusMessageWithTag {
    /// Status message.
    pub message: StatusMessage,
    /// Group tag of the receiver.
    pub group_tag: I64,
}

super::layout!(StatusMessageWithTag: 44 { 0 => message, 36 => group_tag });

impl StatusMessage {
    /// Flag: requests a SETUP from the sender; position and window are zero.
    pub const SEND_SETUP: u8 = 0x80;
    /// Flag: the receiver has received the whole stream, or closes.
    pub const EOS: u8 = 0x40;

    /// Returns the header of a status message without a group tag.
    #[must_use]
    pub const fn header(flags: u8) -> FrameHeader {
        FrameHeader::new(size_of::<Self>() as i32, flags, FrameType::STATUS_MESSAGE)
    }

    /// Returns true if the receiver requests a SETUP.
    #[inline]
    #[must_use]
    pub const fn asks_for_setup(&self) -> bool {
        self.header.flags & Self::SEND_SETUP != 0
    }

    /// Returns true if the receiver has received the whole stream, or closes.
    #[inline]
    #[must_use]
    pub const fn is_end_of_stream(&self) -> bool {
        self.header.flags & Self::EOS != 0
    }

    /// Validates offset and window against the term length of the publication; `None` means that the stream is unknown
    /// (docs/spec/wire.md §1.14 rule 3).
    ///
    /// # Errors
    /// The offset is not inside the term, or the window is larger than half a term.
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
    /// Returns the header of a status message with a group tag.
    #[must_use]
    pub const fn header(flags: u8) -> FrameHeader {
        FrameHeader::new(size_of::<Self>() as i32, flags, FrameType::STATUS_MESSAGE)
    }
}

/// Received status message with its application-specific feedback.
#[derive(Clone, Copy, Debug)]
pub struct StatusFrame<'a> {
    /// Fixed part.
    pub message: &'a StatusMessage,
    /// Bytes after the fixed part, up to the frame length: none, or a group tag of eight bytes. Other lengths are valid
    /// and carry no tag.
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

    /// Returns the group tag, if present.
    #[inline]
    #[must_use]
    pub fn group_tag(&self) -> Option<i64> {
        self.feedback.try_into().ok().map(i64::from_le_bytes)
    }
}
