//! The header of a fragment or of an assembled message.

use taran_protocol::frame::{DATA_HEADER_LENGTH, DataHeader};
use taran_protocol::log::LogFrame;

use crate::Position;
use crate::image::ImageView;

/// What is known of a message besides its bytes; valid while the handler runs.
///
/// For a fragment these are the fields of its frame. For a message put together by an assembler they are the fields of
/// its first frame, with the length, flags and end position of the whole.
#[derive(Clone, Copy)]
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

    /// Header of a message of `length` bytes, put together from fragments the first of which had the header `first`.
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

    /// Position of the start of the (one) frame.
    pub(crate) fn frame_start(&self) -> Position {
        self.end - Position::from(taran_protocol::position::align32(self.frame_length))
    }

    /// Position of the stream after this message: where the next one starts.
    #[inline]
    #[must_use]
    pub fn position(&self) -> Position {
        self.end
    }

    /// Bytes of the frame, its 32-byte header included, not rounded up. For an assembled message 32 plus the length of
    /// the message.
    #[inline]
    #[must_use]
    pub fn frame_length(&self) -> i32 {
        self.frame_length
    }

    /// Flags: 0x80 first fragment, 0x40 last fragment (0xC0 = a whole message), 0x20 end of stream, 0x10 revoked.
    #[inline]
    #[must_use]
    pub fn flags(&self) -> u8 {
        self.flags
    }

    /// True for the first fragment of a message, and for a message in one piece.
    #[inline]
    #[must_use]
    pub fn is_begin(&self) -> bool {
        self.flags & DataHeader::BEGIN != 0
    }

    /// True for the last fragment of a message, and for a message in one piece.
    #[inline]
    #[must_use]
    pub fn is_end(&self) -> bool {
        self.flags & DataHeader::END != 0
    }

    /// True for a message in one piece.
    #[inline]
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.flags & DataHeader::UNFRAGMENTED == DataHeader::UNFRAGMENTED
    }

    /// Type of the frame: 1 for data. Padding never reaches a handler.
    #[inline]
    #[must_use]
    pub fn frame_type(&self) -> u16 {
        self.frame.header.frame_type.get()
    }

    /// Offset of the (first) frame in its term, in bytes.
    #[inline]
    #[must_use]
    pub fn term_offset(&self) -> i32 {
        self.frame.term_offset.get()
    }

    /// Offset behind this message in its term, in bytes: where the next one starts, if it fits the term.
    #[inline]
    #[must_use]
    pub fn next_term_offset(&self) -> i32 {
        self.image.geometry().term_offset(self.end - 1) + 1
    }

    /// Session of the publication that sent this.
    #[inline]
    #[must_use]
    pub fn session_id(&self) -> i32 {
        self.frame.session_id.get()
    }

    /// Stream that the publication and the subscription agreed on.
    #[inline]
    #[must_use]
    pub fn stream_id(&self) -> i32 {
        self.frame.stream_id.get()
    }

    /// Id of the term that holds the (first) frame.
    #[inline]
    #[must_use]
    pub fn term_id(&self) -> i32 {
        self.frame.term_id.get()
    }

    /// The eight bytes that the publisher may use as it likes; 0 unless it did.
    #[inline]
    #[must_use]
    pub fn reserved_value(&self) -> i64 {
        self.frame.reserved_value.get()
    }

    /// Id of the first term of the stream.
    #[inline]
    #[must_use]
    pub fn initial_term_id(&self) -> i32 {
        self.image.initial_term_id()
    }

    /// The image that delivered this.
    #[inline]
    #[must_use]
    pub fn image(&self) -> &'a ImageView {
        self.image
    }
}
