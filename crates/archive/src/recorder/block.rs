// SPDX-License-Identifier: Apache-2.0
//! Blocks of frames on their way from an image to a segment file.

use taran_protocol::frame::{DataHeader, FrameType};
use taran_protocol::position::{TermGeometry, align32};
use taran_storage::AlignedBuf;
use thiserror::Error;
use zerocopy::FromBytes;

use crate::files::Checksum;

/// Length of the header of a frame in bytes.
const HEADER: usize = 32;
/// Offset of the field in a header in which the checksum is stored, instead of the session id.
const CHECKSUM_AT: usize = 12;

/// A stream, as its frames name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamFrames {
    pub(crate) terms: TermGeometry,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
}

/// A frame that does not continue its stream: the log in shared memory is damaged.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the frame at position {position} of the image has {field} {found} instead of {expected}: the log buffer is damaged"
)]
pub(crate) struct DamagedFrame {
    pub(crate) position: i64,
    pub(crate) field: &'static str,
    pub(crate) found: i32,
    pub(crate) expected: i32,
}

taran_core::debug_is_display!(DamagedFrame);

/// Consecutive frames of a stream in a buffer, for one write.
#[derive(Debug)]
pub(crate) struct Block {
    buffer: AlignedBuf,
    length: usize,
    start: i64,
    end: i64,
}

impl Block {
    /// A block without frames, which begins at a position.
    pub(crate) fn new(buffer: AlignedBuf, start: i64) -> Self {
        Self {
            buffer,
            length: 0,
            start,
            end: start,
        }
    }

    /// Returns the position of the first frame.
    pub(crate) fn start(&self) -> i64 {
        self.start
    }

    /// Returns the position behind the last frame.
    pub(crate) fn end(&self) -> i64 {
        self.end
    }

    /// Returns the number of bytes to write.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the room for more frames in bytes. None behind a padding frame, of which only the header is written.
    pub(crate) fn room(&self) -> usize {
        if self.end - self.start == self.length as i64 {
            self.buffer.len() - self.length
        } else {
            0
        }
    }

    pub(crate) fn into_buffer(self) -> AlignedBuf {
        self.buffer
    }

    /// Copies whole frames behind those that are there, checks the copy, and puts checksums into its data frames. `span` is
    /// the length of the frames in the stream: more than that of `frames` only for a padding frame without its body.
    ///
    /// # Errors
    /// A frame does not continue the stream. The block is as before.
    pub(crate) fn append(
        &mut self,
        frames: &[u8],
        span: usize,
        stream: &StreamFrames,
        checksum: Option<Checksum>,
    ) -> Result<(), DamagedFrame> {
        let length = self.length + frames.len();
        let copy = &mut self.buffer[self.length..length];
        copy.copy_from_slice(frames);
        check_frames(copy, span, self.end, stream, checksum)?;
        self.length = length;
        self.end += span as i64;
        Ok(())
    }
}

fn check_frames(
    frames: &mut [u8],
    span: usize,
    start: i64,
    stream: &StreamFrames,
    checksum: Option<Checksum>,
) -> Result<(), DamagedFrame> {
    let mut at = 0;
    while at < span {
        let position = start + at as i64;
        let damaged = |field, found, expected| DamagedFrame {
            position,
            field,
            found,
            expected,
        };
        let rest = span - at;
        let Some(Ok((header, _))) = frames.get(at..).map(DataHeader::read_from_prefix) else {
            return Err(damaged("length", frames.len() as i32, rest as i32));
        };
        let frame_length = header.header.frame_length.get();
        let is_possible = frame_length >= HEADER as i32 && frame_length as usize <= rest;
        let aligned = if is_possible {
            align32(frame_length) as usize
        } else {
            0
        };
        if !is_possible || aligned > rest {
            return Err(damaged("length", frame_length, rest as i32));
        }
        for (field, found, expected) in [
            (
                "term id",
                header.term_id.get(),
                stream.terms.term_id(position),
            ),
            (
                "term offset",
                header.term_offset.get(),
                stream.terms.term_offset(position),
            ),
            ("stream id", header.stream_id.get(), stream.stream_id),
            ("session id", header.session_id.get(), stream.session_id),
        ] {
            if found != expected {
                return Err(damaged(field, found, expected));
            }
        }
        let frame_type = header.header.frame_type();
        if frame_type == FrameType::DATA {
            let Some(frame) = frames.get_mut(at..at + aligned) else {
                return Err(damaged("length", frame_length, rest as i32));
            };
            if let Some(checksum) = checksum {
                let value = checksum.compute(&frame[HEADER..]);
                frame[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&value.to_le_bytes());
            }
        } else if frame_type != FrameType::PAD {
            return Err(damaged(
                "type",
                frame_type.0.into(),
                FrameType::DATA.0.into(),
            ));
        }
        at += aligned;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    pub(crate) const TERM: i32 = 64 * 1024;

    pub(crate) fn stream() -> StreamFrames {
        StreamFrames {
            terms: TermGeometry::new(7, TERM).unwrap(),
            session_id: 3,
            stream_id: 1001,
        }
    }

    /// Returns a frame of a stream with a body of `length` bytes, each `fill`.
    pub(crate) fn frame(stream: &StreamFrames, position: i64, length: usize, fill: u8) -> Vec<u8> {
        framed(stream, position, FrameType::DATA, length, fill)
    }

    /// Returns the header of a padding frame of `length` bytes.
    pub(crate) fn padding(stream: &StreamFrames, position: i64, length: usize) -> Vec<u8> {
        let mut frame = framed(stream, position, FrameType::PAD, length - HEADER, 0);
        frame.truncate(HEADER);
        frame
    }

    fn framed(
        stream: &StreamFrames,
        position: i64,
        frame_type: FrameType,
        length: usize,
        fill: u8,
    ) -> Vec<u8> {
        use zerocopy::IntoBytes;
        let mut header = DataHeader::heartbeat(
            DataHeader::UNFRAGMENTED,
            stream.session_id,
            stream.stream_id,
            stream.terms.term_id(position),
            stream.terms.term_offset(position),
        );
        header.header = taran_protocol::frame::FrameHeader::new(
            (HEADER + length) as i32,
            DataHeader::UNFRAGMENTED,
            frame_type,
        );
        let mut frame = header.as_bytes().to_vec();
        frame.resize(HEADER + length, fill);
        frame.resize(frame.len().next_multiple_of(32), 0);
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{TERM, frame, padding, stream};
    use super::*;

    #[test]
    fn block_takes_frames_across_terms_and_stamps_data_frames() {
        let stream = stream();
        let start = i64::from(TERM) - 96;
        let mut block = Block::new(AlignedBuf::new(4096), start);
        let first = frame(&stream, start, 33, 1);
        block
            .append(&first, 96, &stream, Some(Checksum::Crc32))
            .unwrap();
        let second = frame(&stream, block.end(), 32, 2);
        block
            .append(&second, 64, &stream, Some(Checksum::Crc32))
            .unwrap();
        assert_eq!((block.length(), block.end()), (160, start + 160));
        let buffer = block.into_buffer();
        let stamp = Checksum::Crc32.compute(&first[32..]).to_le_bytes();
        assert_eq!(buffer[12..16], stamp);
        assert_eq!(buffer[16..96], first[16..]);
        assert_eq!(buffer[96..108], second[..12]);
    }

    #[test]
    fn block_ends_with_padding_of_which_the_header_is_written() {
        let stream = stream();
        let mut block = Block::new(AlignedBuf::new(4096), 64);
        let length = TERM as usize - 64;
        let header = padding(&stream, 64, length);
        block
            .append(&header, length, &stream, Some(Checksum::Crc32))
            .unwrap();
        assert_eq!((block.length(), block.end()), (32, i64::from(TERM)));
        assert_eq!(block.room(), 0);
        assert_eq!(block.into_buffer()[..32], header);
    }

    #[test]
    fn block_refuses_frames_that_do_not_continue_the_stream() {
        let stream = stream();
        let good = frame(&stream, 0, 32, 1);
        for (at, value, field) in [
            (0, 0, "length"),
            (0, -5, "length"),
            (0, 31, "length"),
            (0, 65, "length"),
            (6, 9, "type"),
            (8, 32, "term offset"),
            (12, 4, "session id"),
            (16, 4, "stream id"),
            (20, 8, "term id"),
        ] {
            let mut frames = good.clone();
            if at == 6 {
                frames[6] = 9;
            } else {
                frames[at..at + 4].copy_from_slice(&i32::to_le_bytes(value));
            }
            let mut block = Block::new(AlignedBuf::new(4096), 0);
            let error = block.append(&frames, 64, &stream, None).unwrap_err();
            assert_eq!((error.field, error.position), (field, 0));
            assert!(block.is_empty());
        }
        // A padding header whose body is missing where data follows.
        let mut block = Block::new(AlignedBuf::new(4096), 0);
        let header = padding(&stream, 0, 64);
        assert!(block.append(&header, 96, &stream, None).is_err());
    }
}
