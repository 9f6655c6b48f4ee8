// SPDX-License-Identifier: Apache-2.0
//! The header of a fragment or of an assembled message.

use taran_protocol::frame::{DATA_HEADER_LENGTH, DataHeader, FrameType};
use taran_protocol::log::LogFrame;

use crate::Position;
use crate::image::ImageView;

/// Header of a received fragment or message; valid while the handler runs.
///
/// For a fragment these are the fields of its frame. For a message that an assembler has reassembled they are the
/// fields of its first frame, with the length, flags and end position of the whole message.
#[derive(Clone, Copy)]
#[doc(alias = "aeron_header_t")]
pub struct Header<'a> {
    frame: &'a DataHeader,
    frame_length: i32,
    flags: u8,
    end: Position,
    image: &'a ImageView,
}

impl std::fmt::Debug for Header<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Header")
            .field("position", &self.position())
            .field("frame_length", &self.frame_length())
            .field("flags", &format_args!("{:#04x}", self.flags()))
            .field("session_id", &self.session_id())
            .field("stream_id", &self.stream_id())
            .field("term_id", &self.term_id())
            .field("term_offset", &self.term_offset())
            .field("reserved_value", &self.reserved_value())
            .finish_non_exhaustive()
    }
}

impl<'a> Header<'a> {
    #[inline]
    pub(crate) fn of_frame(frame: &LogFrame<'a>, end: Position, image: &'a ImageView) -> Self {
        let header = frame.header();
        Self {
            frame: header,
            frame_length: frame.length(),
            flags: header.header.flags,
            end,
            image,
        }
    }

    /// Creates the header of a message of `length` bytes that was reassembled from fragments; `first` is the header of
    /// the first fragment.
    pub(crate) fn of_message(first: &'a DataHeader, length: i32, last: &Header<'a>) -> Self {
        Self {
            frame: first,
            frame_length: DATA_HEADER_LENGTH + length,
            flags: first.header.flags | last.flags,
            end: last.end,
            image: last.image,
        }
    }

    pub(crate) fn data_header(&self) -> &'a DataHeader {
        self.frame
    }

    /// Position of the start of the frame; for fragments only.
    pub(crate) fn frame_start(&self) -> Position {
        self.end - Position::from(taran_protocol::position::align32(self.frame_length))
    }

    /// Returns the stream position after this message, in bytes: where the next one starts.
    #[inline]
    #[must_use]
    pub fn position(&self) -> Position {
        self.end
    }

    /// Returns the length of the frame in bytes, including its 32-byte header, not rounded up. For a reassembled
    /// message this is 32 plus the length of the message.
    #[inline]
    #[must_use]
    pub fn frame_length(&self) -> i32 {
        self.frame_length
    }

    /// Returns the flags: 0x80 first fragment, 0x40 last fragment (0xC0: an unfragmented message), 0x20 end of stream,
    /// 0x10 revoked.
    #[inline]
    #[must_use]
    pub fn flags(&self) -> u8 {
        self.flags
    }

    /// Returns true for the first fragment of a message, and for an unfragmented message.
    #[inline]
    #[must_use]
    pub fn is_begin(&self) -> bool {
        self.flags & DataHeader::BEGIN != 0
    }

    /// Returns true for the last fragment of a message, and for an unfragmented message.
    #[inline]
    #[must_use]
    pub fn is_end(&self) -> bool {
        self.flags & DataHeader::END != 0
    }

    /// Returns true for an unfragmented or reassembled message.
    #[inline]
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.flags & DataHeader::UNFRAGMENTED == DataHeader::UNFRAGMENTED
    }

    /// Returns the type of the frame, [`FrameType::DATA`] unless the publisher has set another one. Padding is not
    /// delivered to handlers.
    #[inline]
    #[must_use]
    pub fn frame_type(&self) -> FrameType {
        self.frame.header.frame_type()
    }

    /// Returns the offset of the (first) frame in its term, in bytes.
    #[inline]
    #[must_use]
    pub fn term_offset(&self) -> i32 {
        self.frame.term_offset.get()
    }

    /// Returns the offset after this message in its term, in bytes: where the next one starts if it fits into the term.
    #[inline]
    #[must_use]
    pub fn next_term_offset(&self) -> i32 {
        self.image.geometry().term_offset(self.end - 1) + 1
    }

    /// Returns the session id of the publication.
    #[inline]
    #[must_use]
    pub fn session_id(&self) -> i32 {
        self.frame.session_id.get()
    }

    /// Returns the stream id.
    #[inline]
    #[must_use]
    pub fn stream_id(&self) -> i32 {
        self.frame.stream_id.get()
    }

    /// Returns the id of the term that holds the (first) frame.
    #[inline]
    #[must_use]
    pub fn term_id(&self) -> i32 {
        self.frame.term_id.get()
    }

    /// Returns the reserved value of the (first) frame, which the publisher may set; 0 by default.
    #[inline]
    #[must_use]
    pub fn reserved_value(&self) -> i64 {
        self.frame.reserved_value.get()
    }

    /// Returns the id of the first term of the stream.
    #[inline]
    #[must_use]
    pub fn initial_term_id(&self) -> i32 {
        self.image.initial_term_id()
    }

    /// Returns the image that delivered this message.
    #[inline]
    #[must_use]
    pub fn image(&self) -> &'a ImageView {
        self.image
    }
}
