use zerocopy::little_endian::{I32, I64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{FrameHeader, FrameType, InvalidFrame};
use crate::position::{FRAME_ALIGNMENT, align32, is_frame_offset};

/// Bytes in the header of a data or padding frame, on the wire and in a log.
pub const DATA_HEADER_LENGTH: i32 = 32;
const HEADER: usize = DATA_HEADER_LENGTH as usize;

/// Header of a DATA or PAD frame (`docs/spec/wire.md §1.3`), the same on the wire and in a term buffer.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct DataHeader {
    /// Length, version, flags, type.
    pub header: FrameHeader,
    /// Byte offset of the frame in its term, a multiple of 32.
    pub term_offset: I32,
    /// Session of the stream.
    pub session_id: I32,
    /// Stream id.
    pub stream_id: I32,
    /// Term that holds the frame.
    pub term_id: I32,
    /// Opaque to the protocol: an application's value or a timestamp.
    pub reserved_value: I64,
}

super::layout!(DataHeader: 32 {
    0 => header, 8 => term_offset, 12 => session_id, 16 => stream_id, 20 => term_id, 24 => reserved_value,
});

impl DataHeader {
    /// First fragment of a message.
    pub const BEGIN: u8 = 0x80;
    /// Last fragment of a message.
    pub const END: u8 = 0x40;
    /// The whole message in one frame.
    pub const UNFRAGMENTED: u8 = Self::BEGIN | Self::END;
    /// End of stream; counts on heartbeats only.
    pub const EOS: u8 = 0x20;
    /// The publication was revoked; counts on end-of-stream heartbeats only.
    pub const REVOKED: u8 = 0x10;

    /// A heartbeat at a position (`docs/spec/wire.md §3.5`). `flags` is [`Self::UNFRAGMENTED`], with [`Self::EOS`] and
    /// [`Self::REVOKED`] as they apply.
    #[must_use]
    pub const fn heartbeat(
        flags: u8,
        session_id: i32,
        stream_id: i32,
        term_id: i32,
        term_offset: i32,
    ) -> Self {
        Self {
            header: FrameHeader::new(0, flags, FrameType::DATA),
            term_offset: I32::new(term_offset),
            session_id: I32::new(session_id),
            stream_id: I32::new(stream_id),
            term_id: I32::new(term_id),
            reserved_value: I64::new(0),
        }
    }
}

/// A datagram that starts with a DATA or PAD frame; at least 32 bytes, a multiple of 32.
#[derive(Clone, Copy, Debug)]
pub struct DataFrame<'a> {
    header: &'a DataHeader,
    /// What comes behind it.
    body: &'a [u8],
}

impl<'a> DataFrame<'a> {
    #[inline]
    pub(super) fn parse(datagram: &'a [u8]) -> Result<Self, InvalidFrame> {
        let header = super::fixed(datagram)?;
        Self::aligned(header, &datagram[HEADER..])
    }

    /// A datagram whose first header was received elsewhere than what comes behind it.
    ///
    /// # Errors
    /// It is no data, or breaks a rule that [`Frame::parse`](super::Frame::parse) checks.
    #[inline]
    pub fn from_parts(header: &'a DataHeader, body: &'a [u8]) -> Result<Self, InvalidFrame> {
        match super::first_type(&header.header, HEADER + body.len())? {
            FrameType::DATA | FrameType::PAD => Self::aligned(header, body),
            FrameType(other) => Err(InvalidFrame::UnknownType(other)),
        }
    }

    #[inline]
    fn aligned(header: &'a DataHeader, body: &'a [u8]) -> Result<Self, InvalidFrame> {
        if !body.len().is_multiple_of(FRAME_ALIGNMENT as usize) {
            return Err(InvalidFrame::DataLength {
                length: HEADER + body.len(),
                covered: 0,
            });
        }
        Ok(Self { header, body })
    }

    /// Header of the first frame; it routes the whole datagram.
    #[inline]
    #[must_use]
    pub fn header(&self) -> &'a DataHeader {
        self.header
    }

    /// All bytes behind the first header.
    #[inline]
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// Session of the stream.
    #[inline]
    #[must_use]
    pub fn session_id(&self) -> i32 {
        self.header.session_id.get()
    }

    /// Stream id.
    #[inline]
    #[must_use]
    pub fn stream_id(&self) -> i32 {
        self.header.stream_id.get()
    }

    /// Term of the first frame.
    #[inline]
    #[must_use]
    pub fn term_id(&self) -> i32 {
        self.header.term_id.get()
    }

    /// Offset of the first frame in its term; not checked before [`Self::validate`].
    #[inline]
    #[must_use]
    pub fn term_offset(&self) -> i32 {
        self.header.term_offset.get()
    }

    /// Flags of the first frame.
    #[inline]
    #[must_use]
    pub fn flags(&self) -> u8 {
        self.header.header.flags
    }

    /// True for a datagram that carries a position and nothing else: 32 bytes with a frame length of 0.
    #[inline]
    #[must_use]
    pub fn is_heartbeat(&self) -> bool {
        self.body.is_empty() && self.header.header.frame_length.get() == 0
    }

    /// True for a heartbeat that says that the stream ends here.
    #[inline]
    #[must_use]
    pub fn is_end_of_stream(&self) -> bool {
        self.is_heartbeat() && self.flags() & DataHeader::EOS != 0
    }

    /// True for an end-of-stream heartbeat of a revoked publication.
    #[inline]
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.is_end_of_stream() && self.flags() & DataHeader::REVOKED != 0
    }

    /// Walks all frames of the packet (`docs/spec/wire.md §1.14` rule 7). Frames must be contiguous, inside one term, and end
    /// where the datagram ends; only a last PAD may be longer than what is on the wire. Stricter than the rule in one
    /// point: a frame shorter than its own header is refused, as no sender makes one and no reader could use it.
    ///
    /// # Errors
    /// The packet must not be placed in a term of this length.
    #[inline]
    pub fn validate(&self, term_length: i32) -> Result<ValidatedFrames<'a>, InvalidFrame> {
        self.validate_segments(term_length, HEADER + self.body.len())
    }

    /// The same for datagrams of `stride` bytes (the last may be shorter) that lie back to back: no frame reaches from one
    /// into the next.
    ///
    /// # Errors
    ///
    /// The packets must not be placed in a term of this length, or not as one.
    #[inline]
    pub fn validate_segments(
        &self,
        term_length: i32,
        stride: usize,
    ) -> Result<ValidatedFrames<'a>, InvalidFrame> {
        let term_offset = self.term_offset();
        if !is_frame_offset(term_offset, term_length) {
            return Err(InvalidFrame::TermOffset {
                term_offset,
                term_length,
            });
        }
        let length_in_term = if self.is_heartbeat() {
            0
        } else {
            self.validate_frames(term_offset, term_length, stride)?
        };
        Ok(ValidatedFrames {
            header: self.header,
            body: self.body,
            term_offset,
            length_in_term,
        })
    }

    #[inline]
    fn validate_frames(
        &self,
        term_offset: i32,
        term_length: i32,
        stride: usize,
    ) -> Result<i32, InvalidFrame> {
        let length = HEADER + self.body.len();
        let mut at = 0;
        let mut end_of_datagram = stride.min(length);
        let mut expected = term_offset;
        let mut last_is_pad = false;
        let mut next = Some(self.header);
        while let Some(header) = next {
            let frame_length = header.header.frame_length.get();
            let frame_type = header.header.frame_type();
            // The room left in the term bounds the length before it is aligned, so that nothing overflows.
            let sound = frame_length >= DATA_HEADER_LENGTH
                && frame_length <= term_length - expected
                && header.term_offset.get() == expected
                && (frame_type == FrameType::DATA || frame_type == FrameType::PAD);
            if !sound {
                return Err(InvalidFrame::DataLength {
                    length,
                    covered: at,
                });
            }
            let aligned = align32(frame_length);
            expected += aligned;
            at += aligned as usize;
            if at >= end_of_datagram && end_of_datagram < length {
                if at > end_of_datagram {
                    return Err(InvalidFrame::DataLength {
                        length,
                        covered: at,
                    });
                }
                end_of_datagram = length.min(at + stride);
            }
            last_is_pad = frame_type == FrameType::PAD;
            next = self.header_at(at);
        }
        if at == length || (at > length && last_is_pad) {
            Ok(expected - term_offset)
        } else {
            Err(InvalidFrame::DataLength {
                length,
                covered: at,
            })
        }
    }

    /// What is left of a packet that was covered from the first frame on that is not there yet, as a packet of its own. Of
    /// each frame before it, `is_there` is asked with its offset in the term.
    #[must_use]
    pub fn skip_while(&self, mut is_there: impl FnMut(i32) -> bool) -> Option<Self> {
        let mut at = 0;
        let mut header = self.header;
        while is_there(header.term_offset.get()) {
            let frame_length = header.header.frame_length.get();
            if frame_length < DATA_HEADER_LENGTH {
                return None;
            }
            at += align32(frame_length) as usize;
            header = self.header_at(at)?;
        }
        let body = self.body.get(at..)?;
        Some(Self { header, body })
    }

    /// The header `at` bytes behind the start of the first one, if it is all there.
    #[inline]
    fn header_at(&self, at: usize) -> Option<&'a DataHeader> {
        let rest = self.body.get(at.checked_sub(HEADER)?..)?;
        DataHeader::ref_from_prefix(rest)
            .ok()
            .map(|(header, _)| header)
    }
}

/// A packet whose frames are known to fit the term: the only thing that can be inserted into one.
#[derive(Clone, Copy, Debug)]
pub struct ValidatedFrames<'a> {
    header: &'a DataHeader,
    body: &'a [u8],
    term_offset: i32,
    length_in_term: i32,
}

impl<'a> ValidatedFrames<'a> {
    /// Header of the first frame.
    #[inline]
    #[must_use]
    pub fn header(&self) -> &'a DataHeader {
        self.header
    }

    /// What comes behind it on the wire.
    #[inline]
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// Bytes on the wire.
    #[inline]
    #[must_use]
    pub fn wire_length(&self) -> usize {
        HEADER + self.body.len()
    }

    /// Offset of the first frame in its term.
    #[inline]
    #[must_use]
    pub fn term_offset(&self) -> i32 {
        self.term_offset
    }

    /// Bytes that the packet covers in the term: aligned frames, padding in full; 0 for a heartbeat.
    #[inline]
    #[must_use]
    pub fn length_in_term(&self) -> i32 {
        self.length_in_term
    }
}
