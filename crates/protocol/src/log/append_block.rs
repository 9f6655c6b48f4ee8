// SPDX-License-Identifier: Apache-2.0
use super::frame::write_padding;
use super::insert::write_packet;
use super::{AppendError, ExclusiveAppender};
use crate::frame::{Frame, FrameType, InvalidFrame, ValidatedFrames};

/// Reason why a block of frames was not appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlockError {
    /// The log does not accept more frames.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The block is longer than the rest of the term.
    #[error("block of {length} bytes is longer than the {remaining} bytes left in the term")]
    TooLong {
        /// Bytes in the block.
        length: usize,
        /// Bytes left in the term.
        remaining: i32,
    },
    /// The block does not consist of whole frames.
    #[error("not a block of whole data frames: {0}")]
    NotFrames(#[from] InvalidFrame),
    /// The header of the first frame does not match the position of the appender.
    #[error("{field} of the first frame is {found}, expected {expected}")]
    Misplaced {
        /// Header field.
        field: &'static str,
        /// Value of the field.
        found: i32,
        /// Required value.
        expected: i32,
    },
}

impl ExclusiveAppender {
    /// Appends a block of whole frames that were framed for the current position. Its length is a multiple of 32 bytes,
    /// and the first frame has the session, stream, term and offset of the next frame. Returns the stream position
    /// after the block.
    ///
    /// # Errors
    /// Nothing was appended, see [`BlockError`].
    pub fn append_block(&mut self, block: &[u8]) -> Result<i64, BlockError> {
        if self.term_offset() >= self.log().term_length() {
            self.rotate_term()?;
        }
        let remaining = self.log().term_length() - self.term_offset();
        if block.len() > remaining as usize {
            return Err(BlockError::TooLong {
                length: block.len(),
                remaining,
            });
        }
        let frames = self.check_block(block)?;
        let space = self
            .reserve(frames.length_in_term())
            .map_err(BlockError::Append)?;
        // As when the receiver inserts a packet: everything after the first length, then the length with release.
        write_packet(space.term, &frames);
        Ok(self.position())
    }

    /// Appends the padding frame of a recorded stream: `length` bytes with the header, up to the end of the term. Returns the
    /// stream position after it.
    ///
    /// # Errors
    /// Nothing was appended, see [`BlockError`].
    pub fn append_padding_frame(&mut self, length: usize) -> Result<i64, BlockError> {
        if self.term_offset() >= self.log().term_length() {
            self.rotate_term()?;
        }
        let remaining = self.log().term_length() - self.term_offset();
        let is_frame = length >= 32 && length.is_multiple_of(32);
        if !is_frame || length > remaining as usize {
            return Err(BlockError::TooLong { length, remaining });
        }
        let space = self.reserve(length as i32).map_err(BlockError::Append)?;
        write_padding(
            space.term,
            space.ids,
            space.term_id,
            space.offset,
            length as i32,
        );
        Ok(self.position())
    }

    fn check_block<'a>(&self, block: &'a [u8]) -> Result<ValidatedFrames<'a>, BlockError> {
        let Frame::Data(frame) = Frame::parse(block)? else {
            return Err(InvalidFrame::DataLength {
                length: block.len(),
                covered: 0,
            }
            .into());
        };
        let header = frame.header();
        let fields = [
            ("term offset", header.term_offset.get(), self.term_offset()),
            (
                "session id",
                header.session_id.get(),
                self.log().session_id(),
            ),
            ("stream id", header.stream_id.get(), self.log().stream_id()),
            ("term id", header.term_id.get(), self.term_id()),
            (
                "type",
                i32::from(header.header.frame_type().0),
                i32::from(FrameType::DATA.0),
            ),
        ];
        for (field, found, expected) in fields {
            if found != expected {
                return Err(BlockError::Misplaced {
                    field,
                    found,
                    expected,
                });
            }
        }
        let frames = frame.validate(self.log().term_length())?;
        if frames.length_in_term() as usize != block.len() {
            return Err(InvalidFrame::DataLength {
                length: block.len(),
                covered: block.len(),
            }
            .into());
        }
        Ok(frames)
    }
}
