// SPDX-License-Identifier: Apache-2.0
//! Frames of a segment file, prepared for a replay publication.

use taran_protocol::frame::{DataHeader, FrameType};
use taran_protocol::position::{TermGeometry, align32};
use thiserror::Error;
use zerocopy::FromBytes;

use crate::files::Checksum;

const HEADER: usize = 32;
const SESSION_ID_AT: usize = 12;
const STREAM_ID_AT: usize = 16;

/// Next part of a recording for its replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Batch {
    /// The first bytes of the buffer: whole data frames.
    Frames(usize),
    /// A padding frame of this length.
    Padding(usize),
}

impl Batch {
    /// Returns the length in the stream in bytes.
    pub(crate) fn length(self) -> usize {
        match self {
            Self::Frames(length) | Self::Padding(length) => length,
        }
    }
}

/// Recorded bytes that are no frames of the recording.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub(crate) enum CorruptRecording {
    /// The frame does not belong there.
    #[error(
        "the recording has no frame at position {position}: its {field} is {found} instead of {expected}"
    )]
    Misplaced {
        position: i64,
        field: &'static str,
        found: i32,
        expected: i32,
    },
    /// The length of the frame is impossible.
    #[error(
        "the recording has no frame at position {position}: its length is {length}, with {rest} bytes left in the term"
    )]
    Length {
        position: i64,
        length: i32,
        rest: usize,
    },
    /// The type of the frame is not one that is recorded.
    #[error("the recording has a frame of the unknown type {found} at position {position}")]
    Type { position: i64, found: u16 },
    /// The checksum does not match.
    #[error(
        "the frame at position {position} has the checksum {found:#010x} and not the stored {stored:#010x}: it was \
         damaged, or recorded without this checksum"
    )]
    Checksum {
        position: i64,
        found: i32,
        stored: i32,
    },
    /// The file ends within the frame.
    #[error("the segment file ends at position {position}, within a frame or before one")]
    Truncated { position: i64 },
}

taran_core::debug_is_display!(CorruptRecording);

/// The streams from and to which frames are copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conversion {
    pub(crate) terms: TermGeometry,
    /// Stream id of the recording.
    pub(crate) recorded_stream_id: i32,
    /// Session id of the replay publication.
    pub(crate) session_id: i32,
    /// Stream id of the replay publication.
    pub(crate) stream_id: i32,
    pub(crate) checksum: Option<Checksum>,
}

impl Conversion {
    /// Checks that a frame of the recording begins with these bytes, which are read at a position. Returns its length in
    /// the stream, and true for padding.
    ///
    /// # Errors
    /// There is no such frame.
    pub(crate) fn check_header(
        &self,
        bytes: &[u8],
        position: i64,
    ) -> Result<(usize, bool), CorruptRecording> {
        let Ok((header, _)) = DataHeader::read_from_prefix(bytes) else {
            return Err(CorruptRecording::Truncated { position });
        };
        let length = header.header.frame_length.get();
        let rest = (self.terms.term_length() - self.terms.term_offset(position)) as usize;
        if length < HEADER as i32 || length as usize > rest || align32(length) as usize > rest {
            return Err(CorruptRecording::Length {
                position,
                length,
                rest,
            });
        }
        for (field, found, expected) in [
            (
                "term id",
                header.term_id.get(),
                self.terms.term_id(position),
            ),
            (
                "term offset",
                header.term_offset.get(),
                self.terms.term_offset(position),
            ),
            ("stream id", header.stream_id.get(), self.recorded_stream_id),
        ] {
            if found != expected {
                return Err(CorruptRecording::Misplaced {
                    position,
                    field,
                    found,
                    expected,
                });
            }
        }
        match header.header.frame_type() {
            FrameType::DATA => Ok((align32(length) as usize, false)),
            FrameType::PAD => Ok((align32(length) as usize, true)),
            other => Err(CorruptRecording::Type {
                position,
                found: other.0,
            }),
        }
    }

    /// Prepares the frames at the beginning of `bytes`, which are read at a position and begin before `limit`: up to a
    /// padding frame, the end of the bytes, or the limit.
    ///
    /// # Errors
    /// The first frame is damaged, or any frame has a wrong checksum.
    pub(crate) fn prepare(
        &self,
        bytes: &mut [u8],
        position: i64,
        limit: i64,
    ) -> Result<Batch, CorruptRecording> {
        let mut length = 0;
        while length < bytes.len() {
            let at = position + length as i64;
            if at >= limit {
                break;
            }
            let (frame_length, is_padding) = match self.check_header(&bytes[length..], at) {
                Ok(frame) => frame,
                // What was good is sent first.
                Err(_) if length > 0 => break,
                Err(error) => return Err(error),
            };
            if is_padding {
                if length == 0 {
                    return Ok(Batch::Padding(frame_length));
                }
                break;
            }
            let Some(frame) = bytes.get_mut(length..length + frame_length) else {
                break;
            };
            if let Some(checksum) = self.checksum {
                let found = checksum.compute(&frame[HEADER..]);
                let stored = i32::from_le_bytes([frame[12], frame[13], frame[14], frame[15]]);
                if found != stored {
                    return Err(CorruptRecording::Checksum {
                        position: at,
                        found,
                        stored,
                    });
                }
            }
            frame[SESSION_ID_AT..SESSION_ID_AT + 4].copy_from_slice(&self.session_id.to_le_bytes());
            frame[STREAM_ID_AT..STREAM_ID_AT + 4].copy_from_slice(&self.stream_id.to_le_bytes());
            length += frame_length;
        }
        if length == 0 {
            return Err(CorruptRecording::Truncated {
                position: position + bytes.len() as i64,
            });
        }
        Ok(Batch::Frames(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::testing::{TERM, frame, padding, stream};

    fn conversion(checksum: Option<Checksum>) -> Conversion {
        Conversion {
            terms: stream().terms,
            recorded_stream_id: stream().stream_id,
            session_id: -9,
            stream_id: 5,
            checksum,
        }
    }

    #[test]
    fn batch_has_whole_frames_with_the_ids_of_the_replay() {
        let stream = stream();
        let mut bytes = frame(&stream, 64, 33, 1);
        bytes.extend(frame(&stream, 160, 32, 2));
        bytes.extend(&frame(&stream, 224, 64, 3)[..48]);
        let batch = conversion(None).prepare(&mut bytes, 64, i64::MAX).unwrap();
        assert_eq!(batch, Batch::Frames(160));
        for at in [0, 96] {
            assert_eq!(bytes[at + 12..at + 16], (-9_i32).to_le_bytes());
            assert_eq!(bytes[at + 16..at + 20], 5_i32.to_le_bytes());
        }
        assert_eq!(bytes[32..65], [1; 33]);
    }

    #[test]
    fn batch_ends_behind_the_frame_that_reaches_the_limit() {
        let stream = stream();
        let mut bytes = frame(&stream, 0, 32, 1);
        bytes.extend(frame(&stream, 64, 32, 2));
        let conversion = conversion(None);
        for (limit, length) in [(1, 64), (64, 64), (65, 128)] {
            let batch = conversion.prepare(&mut bytes.clone(), 0, limit).unwrap();
            assert_eq!(batch, Batch::Frames(length));
        }
        assert!(conversion.prepare(&mut bytes, 0, 0).is_err());
    }

    #[test]
    fn padding_is_a_batch_of_its_own() {
        let stream = stream();
        let rest = TERM as usize - 64;
        let mut bytes = frame(&stream, 0, 32, 1);
        bytes.extend(padding(&stream, 64, rest));
        let conversion = conversion(Some(Checksum::Crc32));
        let stamp = Checksum::Crc32.compute(&bytes[32..64]);
        bytes[12..16].copy_from_slice(&stamp.to_le_bytes());
        assert_eq!(
            conversion.prepare(&mut bytes, 0, i64::MAX),
            Ok(Batch::Frames(64))
        );
        let batch = conversion.prepare(&mut bytes[64..], 64, i64::MAX).unwrap();
        assert_eq!((batch, batch.length()), (Batch::Padding(rest), rest));
    }

    #[test]
    fn wrong_checksum_is_found_and_named() {
        let mut bytes = frame(&stream(), 0, 32, 1);
        let error = conversion(Some(Checksum::Crc32c)).prepare(&mut bytes, 0, i64::MAX);
        let error = error.unwrap_err();
        assert!(
            matches!(
                error,
                CorruptRecording::Checksum {
                    position: 0,
                    stored: 3,
                    ..
                }
            ),
            "{error}"
        );
    }

    #[test]
    fn bytes_that_are_no_frames_are_refused() {
        let conversion = conversion(None);
        for bytes in [&[0; 64][..], &[0xFF; 64], &[1; 16], &[]] {
            assert!(
                conversion
                    .prepare(&mut bytes.to_vec(), 0, i64::MAX)
                    .is_err()
            );
        }
        // A frame of another place.
        let mut bytes = frame(&stream(), 64, 32, 1);
        assert!(conversion.prepare(&mut bytes, 0, i64::MAX).is_err());
    }
}
