// SPDX-License-Identifier: Apache-2.0
use zerocopy::little_endian::{I32, I64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{FrameHeader, FrameType, InvalidFrame};
use crate::position::{FRAME_ALIGNMENT, align32, is_frame_offset};

/// Length of the header of a data or padding frame in bytes, on the wire and in a log.
pub const DATA_HEADER_LENGTH: i32 = 32;
const HEADER: usize = DATA_HEADER_LENGTH as usize;

/// Header of a DATA or PAD frame, identical on the wire and in a term buffer (docs/spec/wire.md §1.3).
#[doc(alias = "DataHeaderFlyweight")]
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct DataHeader {
    /// Length, version, flags and type.
    pub header: FrameHeader,
    /// Byte offset of the frame in its term, a multiple of 32.
    pub term_offset: I32,
    /// Session id.
    pub session_id: I32,
    /// Stream id.
    pub stream_id: I32,
    /// Term id of the frame.
    pub term_id: I32,
    /// Application value or timestamp, opaque to the protocol.
    pub reserved_value: I64,
}

super::layout!(DataHeader: 32 {
    0 => header, 8 => term_offset, 12 => session_id, 16 => stream_id, 20 => term_id, 24 => reserved_value,
});

impl DataHeader {
    /// Flag: first fragment of a message.
    pub const BEGIN: u8 = 0x80;
    /// Flag: last fragment of a message.
    pub const END: u8 = 0x40;
    /// Flags of a message in a single frame.
    pub const UNFRAGMENTED: u8 = Self::BEGIN | Self::END;
    /// Flag: end of stream; valid on heartbeats only.
    pub const EOS: u8 = 0x20;
    /// Flag: the publication was revoked; valid on end-of-stream heartbeats only.
    pub const REVOKED: u8 = 0x10;

    /// Returns a heartbeat at a position. `flags` is [`Self::UNFRAGMENTED`], with [`Self::EOS`] and [`Self::REVOKED`]
    /// as applicable (docs/spec/wire.md §3.5).
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

/// Datagram that starts with a DATA or PAD frame. Its length is a multiple of 32 bytes, and at least 32.
#[derive(Clone, Copy, Debug)]
pub struct DataFrame<'a> {
    header: &'a DataHeader,
    /// Bytes after the first header.
    body: &'a [u8],
}

impl<'a> DataFrame<'a> {
    #[inline]
    pub(super) fn parse(datagram: &'a [u8]) -> Result<Self, InvalidFrame> {
        let header = super::fixed(datagram)?;
        Self::aligned(header, &datagram[HEADER..])
    }

    /// Parses a datagram whose first header was received into a separate buffer.
    ///
    /// # Errors
    /// The datagram is not data, or violates a rule of [`Frame::parse`](super::Frame::parse).
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

    /// Returns the header of the first frame, which routes the whole datagram.
    #[inline]
    #[must_use]
    pub fn header(&self) -> &'a DataHeader {
        self.header
    }

    /// Returns all bytes after the first header.
    #[inline]
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// Returns the session id.
    #[inline]
    #[must_use]
    pub fn session_id(&self) -> i32 {
        self.header.session_id.get()
    }

    /// Returns the stream id.
    #[inline]
    #[must_use]
    pub fn stream_id(&self) -> i32 {
        self.header.stream_id.get()
    }

    /// Returns the term id of the first frame.
    #[inline]
    #[must_use]
    pub fn term_id(&self) -> i32 {
        self.header.term_id.get()
    }

    /// Returns the offset of the first frame in its term, unchecked until [`Self::validate`].
    #[inline]
    #[must_use]
    pub fn term_offset(&self) -> i32 {
        self.header.term_offset.get()
    }

    /// Returns the flags of the first frame.
    #[inline]
    #[must_use]
    pub fn flags(&self) -> u8 {
        self.header.header.flags
    }

    /// Returns true if the datagram is a heartbeat, which carries only a position: 32 bytes with a frame length of 0.
    #[inline]
    #[must_use]
    pub fn is_heartbeat(&self) -> bool {
        self.body.is_empty() && self.header.header.frame_length.get() == 0
    }

    /// Returns true if the datagram is an end-of-stream heartbeat.
    #[inline]
    #[must_use]
    pub fn is_end_of_stream(&self) -> bool {
        self.is_heartbeat() && self.flags() & DataHeader::EOS != 0
    }

    /// Returns true if the datagram is an end-of-stream heartbeat of a revoked publication.
    #[inline]
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.is_end_of_stream() && self.flags() & DataHeader::REVOKED != 0
    }

    /// Validates all frames of the packet. Frames must be contiguous, lie inside one term, and end where the datagram
    /// ends; only a final PAD may extend beyond it. Stricter than the rule in one point: a frame shorter than its
    /// header is rejected, because no sender writes one and no reader could use it (docs/spec/wire.md §1.14 rule 7).
    ///
    /// # Errors
    /// The packet must not be inserted into a term of this length.
    #[inline]
    pub fn validate(&self, term_length: i32) -> Result<ValidatedFrames<'a>, InvalidFrame> {
        self.validate_segments(term_length, HEADER + self.body.len())
    }

    /// As [`Self::validate`], for contiguous datagrams of `stride` bytes (the last may be shorter), as received in one
    /// GRO batch. No frame may extend from one datagram into the next.
    ///
    /// # Errors
    ///
    /// The packets must not be inserted into a term of this length, or not as one.
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
            // The length is bounded by the rest of the term before it is aligned, so that nothing overflows.
            let valid = frame_length >= DATA_HEADER_LENGTH
                && frame_length <= term_length - expected
                && header.term_offset.get() == expected
                && (frame_type == FrameType::DATA || frame_type == FrameType::PAD);
            if !valid {
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

    /// Returns the rest of a validated packet, starting with the first frame for which `is_present` returns false.
    /// `is_present` receives the term offset of each frame. Returns `None` if all frames are present.
    #[must_use]
    pub fn skip_while(&self, mut is_present: impl FnMut(i32) -> bool) -> Option<Self> {
        let mut at = 0;
        let mut header = self.header;
        while is_present(header.term_offset.get()) {
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

    /// Returns the header `at` bytes after the start of the first one, if the datagram holds all of it.
    #[inline]
    fn header_at(&self, at: usize) -> Option<&'a DataHeader> {
        let rest = self.body.get(at.checked_sub(HEADER)?..)?;
        DataHeader::ref_from_prefix(rest)
            .ok()
            .map(|(header, _)| header)
    }
}

/// Packet whose frames were validated for a term. Only such a packet can be inserted into the term.
#[derive(Clone, Copy, Debug)]
pub struct ValidatedFrames<'a> {
    header: &'a DataHeader,
    body: &'a [u8],
    term_offset: i32,
    length_in_term: i32,
}

impl<'a> ValidatedFrames<'a> {
    /// Returns the header of the first frame.
    #[inline]
    #[must_use]
    pub fn header(&self) -> &'a DataHeader {
        self.header
    }

    /// Returns the bytes on the wire after the first header.
    #[inline]
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// Returns the number of bytes on the wire.
    #[inline]
    #[must_use]
    pub fn wire_length(&self) -> usize {
        HEADER + self.body.len()
    }

    /// Returns the offset of the first frame in its term.
    #[inline]
    #[must_use]
    pub fn term_offset(&self) -> i32 {
        self.term_offset
    }

    /// Returns the number of bytes that the packet covers in the term: aligned frames, with padding in full; 0 for a
    /// heartbeat.
    #[inline]
    #[must_use]
    pub fn length_in_term(&self) -> i32 {
        self.length_in_term
    }
}
