// SPDX-License-Identifier: Apache-2.0
use zerocopy::little_endian::{I32, I64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{FrameHeader, FrameType, InvalidFrame};

/// Maximum length of the text in an error frame, in bytes.
pub const ERROR_TEXT_LENGTH_MAX: usize = 1023;
/// Maximum length of an error frame, in bytes.
pub const ERROR_FRAME_LENGTH_MAX: usize = HEADER + ERROR_TEXT_LENGTH_MAX;
const HEADER: usize = size_of::<ErrorHeader>();

/// Fixed part of an error frame (docs/spec/wire.md §1.9).
#[doc(alias = "ErrorFlyweight")]
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct ErrorHeader {
    /// Frame header; its length includes the text.
    pub header: FrameHeader,
    /// Session id.
    pub session_id: I32,
    /// Stream id.
    pub stream_id: I32,
    /// Id of the reporting receiver.
    pub receiver_id: I64,
    /// Group tag of the receiver; valid only with the flag [`ErrorHeader::HAS_GROUP_TAG`].
    pub group_tag: I64,
    /// Error code, see [`crate::error_code::ErrorCode`].
    pub error_code: I32,
    /// Length in bytes of the text after the header.
    pub text_length: I32,
}

super::layout!(ErrorHeader: 40 {
    0 => header, 8 => session_id, 12 => stream_id, 16 => receiver_id, 24 => group_tag, 32 => error_code,
    36 => text_length,
});

impl ErrorHeader {
    /// Flag: the group tag is valid.
    pub const HAS_GROUP_TAG: u8 = 0x08;
}

/// Received error frame.
#[derive(Clone, Copy, Debug)]
pub struct ErrorFrame<'a> {
    /// Fixed part.
    pub header: &'a ErrorHeader,
    /// Text as sent, not validated.
    pub text: &'a [u8],
}

impl<'a> ErrorFrame<'a> {
    pub(super) fn parse(datagram: &'a [u8]) -> Result<Self, InvalidFrame> {
        let header: &ErrorHeader = super::fixed(datagram)?;
        let (text_length, frame_length) =
            (header.text_length.get(), header.header.frame_length.get());
        let invalid = InvalidFrame::ErrorText {
            text_length,
            frame_length,
        };
        let length = usize::try_from(text_length).map_err(|_| invalid)?;
        if length > ERROR_TEXT_LENGTH_MAX || HEADER + length > frame_length as usize {
            return Err(invalid);
        }
        let text = datagram.get(HEADER..HEADER + length).ok_or(invalid)?;
        Ok(Self { header, text })
    }

    /// Returns the group tag of the reporting receiver, if present.
    #[must_use]
    pub fn group_tag(&self) -> Option<i64> {
        (self.header.header.flags & ErrorHeader::HAS_GROUP_TAG != 0)
            .then(|| self.header.group_tag.get())
    }

    /// Writes an error frame into `buffer` and returns its bytes. Text beyond 1023 bytes is truncated.
    pub fn write<'b>(
        buffer: &'b mut [u8; ERROR_FRAME_LENGTH_MAX],
        session_id: i32,
        stream_id: i32,
        receiver_id: i64,
        group_tag: Option<i64>,
        error_code: i32,
        text: &[u8],
    ) -> &'b [u8] {
        let text = &text[..text.len().min(ERROR_TEXT_LENGTH_MAX)];
        let length = HEADER + text.len();
        let flags = if group_tag.is_some() {
            ErrorHeader::HAS_GROUP_TAG
        } else {
            0
        };
        let header = ErrorHeader {
            header: FrameHeader::new(length as i32, flags, FrameType::ERROR),
            session_id: session_id.into(),
            stream_id: stream_id.into(),
            receiver_id: receiver_id.into(),
            group_tag: group_tag.unwrap_or(0).into(),
            error_code: error_code.into(),
            text_length: (text.len() as i32).into(),
        };
        buffer[..HEADER].copy_from_slice(header.as_bytes());
        buffer[HEADER..length].copy_from_slice(text);
        &buffer[..length]
    }
}
