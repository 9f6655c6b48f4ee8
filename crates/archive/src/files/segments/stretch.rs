// SPDX-License-Identifier: Apache-2.0
//! Checking a stretch of frames in memory.

use taran_protocol::frame::{DATA_HEADER_LENGTH, DataHeader};
use taran_protocol::position::align32;
use zerocopy::FromBytes;

use super::super::checksum::Checksum;
use super::super::layout::RecordingLayout;
use super::frames::{FrameFault, check_header};

const HEADER: usize = DATA_HEADER_LENGTH as usize;

/// Checks the frames of a recording, stretch by stretch.
///
/// Contract: [`check`](Self::check) takes bytes that begin with the frame at [`position`](Self::position), which it moves over
/// the whole frames in them; after a fault it stays there.
#[derive(Clone, Debug)]
pub(crate) struct FrameChecker {
    layout: RecordingLayout,
    stream_id: i32,
    checksum: Option<Checksum>,
    /// A frame had its checksum, so that all later ones have theirs. Those from before the archive recorded with checksums have
    /// the session id in its place.
    has_checksums: bool,
    position: i64,
    end: i64,
}

impl FrameChecker {
    /// Checks the frames from one position to another, which are boundaries of frames.
    pub(crate) fn new(
        layout: RecordingLayout,
        stream_id: i32,
        checksum: Option<Checksum>,
        (position, end): (i64, i64),
    ) -> Self {
        Self {
            layout,
            stream_id,
            checksum,
            has_checksums: false,
            position,
            end,
        }
    }

    /// Returns the layout of the recording.
    pub(crate) fn layout(&self) -> &RecordingLayout {
        &self.layout
    }

    /// Returns the position of the next frame.
    pub(crate) fn position(&self) -> i64 {
        self.position
    }

    /// Returns the end of the frames.
    pub(crate) fn end(&self) -> i64 {
        self.end
    }

    /// Checks the whole frames in `bytes`, none of which lies in another segment.
    pub(crate) fn check(&mut self, bytes: &[u8]) -> Result<(), FrameFault> {
        let mut at = 0;
        let segment_end = self
            .layout
            .next_base(self.layout.base_of(self.position))
            .min(self.end);
        while self.position < segment_end {
            let Some(Ok((header, _))) = bytes.get(at..).map(DataHeader::read_from_prefix) else {
                return Ok(());
            };
            let is_padding = check_header(&self.layout, self.stream_id, self.position, &header)?;
            // At least that of a header.
            let span = align32(header.header.frame_length.get()).unsigned_abs() as usize;
            if !is_padding {
                let Some(frame) = bytes.get(at..at + span) else {
                    return Ok(());
                };
                self.check_sum(frame, header.session_id.get())?;
            }
            at += span;
            self.position += span as i64;
        }
        Ok(())
    }

    fn check_sum(&mut self, frame: &[u8], found: i32) -> Result<(), FrameFault> {
        let Some(checksum) = self.checksum else {
            return Ok(());
        };
        let expected = checksum.compute(&frame[HEADER..]);
        if found == expected {
            self.has_checksums = true;
        } else if self.has_checksums {
            return Err(FrameFault::Checksum { expected, found });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::testing::{TERM, frame, padding, stream};

    fn checker(checksum: Option<Checksum>, end: i64) -> FrameChecker {
        let layout = RecordingLayout::new(0, 7, TERM, 2 * TERM).unwrap();
        FrameChecker::new(layout, stream().stream_id, checksum, (0, end))
    }

    fn stamped(position: i64, length: usize) -> Vec<u8> {
        let mut bytes = frame(&stream(), position, length, 5);
        let value = Checksum::Crc32c.compute(&bytes[HEADER..]);
        bytes[12..16].copy_from_slice(&value.to_le_bytes());
        bytes
    }

    #[test]
    fn checker_moves_over_whole_frames_and_padding() {
        let mut bytes = frame(&stream(), 0, 96, 1);
        bytes.extend(frame(&stream(), 128, 500, 2));
        let mut checker = checker(None, i64::from(TERM));
        checker.check(&bytes[..400]).unwrap();
        assert_eq!(checker.position(), 128);
        checker.check(&bytes[128..]).unwrap();
        let position = 128 + 544;
        assert_eq!(checker.position(), position);
        let rest = TERM as usize - position as usize;
        checker.check(&padding(&stream(), position, rest)).unwrap();
        assert_eq!(checker.position(), checker.end());
    }

    #[test]
    fn checker_finds_each_damaged_byte_of_frames_with_checksums() {
        let mut good = stamped(0, 96);
        good.extend(stamped(128, 96));
        checker(Some(Checksum::Crc32c), 256).check(&good).unwrap();
        for at in 128..256 {
            let mut bytes = good.clone();
            bytes[at] ^= 0x10;
            // Flags and the reserved value are no part of what is checked.
            let is_unchecked = (133..134).contains(&at) || (152..160).contains(&at);
            let mut checker = checker(Some(Checksum::Crc32c), 256);
            let result = checker.check(&bytes);
            let is_found = result.is_err() || checker.position() != 256;
            assert_eq!(is_found, !is_unchecked, "byte {at}: {result:?}");
        }
    }

    #[test]
    fn frames_from_before_the_checksums_are_no_damage() {
        let mut bytes = frame(&stream(), 0, 96, 1);
        bytes.extend(stamped(128, 96));
        let mut checker = checker(Some(Checksum::Crc32c), 256);
        checker.check(&bytes).unwrap();
        assert_eq!(checker.position(), 256);
    }
}
