// SPDX-License-Identifier: Apache-2.0
//! Checksums of frames and catalog entries (`docs/spec/archive.md` §3.4).

use std::fmt;
use std::str::FromStr;

use taran_protocol::frame::{DATA_HEADER_LENGTH, FrameType};
use thiserror::Error;

const FRAME_HEADER: usize = DATA_HEADER_LENGTH as usize;
/// Offset of the checksum in a data frame: the field of the session id.
const FRAME_CHECKSUM_AT: usize = 12;

/// An algorithm for the checksums of data frames and catalog entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Checksum {
    /// CRC-32/ISO-HDLC, as in Ethernet and zlib.
    Crc32,
    /// CRC-32/ISCSI (Castagnoli).
    Crc32c,
}

impl Checksum {
    /// All algorithms.
    pub const ALL: [Self; 2] = [Self::Crc32, Self::Crc32c];

    /// Computes the checksum of some bytes, as it is stored.
    #[must_use]
    pub fn compute(self, bytes: &[u8]) -> i32 {
        let value = match self {
            Self::Crc32 => crc32fast::hash(bytes),
            Self::Crc32c => crc32c::crc32c(bytes),
        };
        value.cast_signed()
    }

    /// Starts the checksum of bytes that arrive in parts.
    #[must_use]
    pub fn digest(self) -> ChecksumDigest {
        ChecksumDigest(match self {
            Self::Crc32 => Running::Crc32(crc32fast::Hasher::new()),
            Self::Crc32c => Running::Crc32c(0),
        })
    }

    /// Stores the checksum of a data frame in its header; leaves a padding frame as it is. `frame` has the header, the
    /// payload and the alignment bytes behind it.
    pub fn stamp_frame(self, frame: &mut [u8]) {
        if is_data_frame(frame) {
            let checksum = self.compute(&frame[FRAME_HEADER..]);
            frame[FRAME_CHECKSUM_AT..FRAME_CHECKSUM_AT + 4]
                .copy_from_slice(&checksum.to_le_bytes());
        }
    }

    /// Returns true if the checksum in a data frame is right, or if it is a padding frame. `frame` is as for
    /// [`stamp_frame`](Self::stamp_frame).
    #[must_use]
    pub fn verify_frame(self, frame: &[u8]) -> bool {
        if !is_data_frame(frame) {
            return true;
        }
        let stored = &frame[FRAME_CHECKSUM_AT..FRAME_CHECKSUM_AT + 4];
        self.compute(&frame[FRAME_HEADER..]).to_le_bytes() == *stored
    }

    /// Returns the names of the algorithm, the preferred one first; the others are classes of Aeron and Agrona.
    #[must_use]
    pub fn names(self) -> [&'static str; 3] {
        match self {
            Self::Crc32 => [
                "CRC-32",
                "org.agrona.checksum.Crc32",
                "io.aeron.archive.checksum.Crc32",
            ],
            Self::Crc32c => [
                "CRC-32C",
                "org.agrona.checksum.Crc32c",
                "io.aeron.archive.checksum.Crc32c",
            ],
        }
    }
}

/// A checksum of bytes that arrive in parts.
#[derive(Clone, Debug)]
pub struct ChecksumDigest(Running);

#[derive(Clone, Debug)]
enum Running {
    Crc32(crc32fast::Hasher),
    Crc32c(u32),
}

impl ChecksumDigest {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Running::Crc32(hasher) => hasher.update(bytes),
            Running::Crc32c(value) => *value = crc32c::crc32c_append(*value, bytes),
        }
    }

    /// Returns the checksum of all bytes, as it is stored.
    #[must_use]
    pub fn finish(self) -> i32 {
        match self.0 {
            Running::Crc32(hasher) => hasher.finalize().cast_signed(),
            Running::Crc32c(value) => value.cast_signed(),
        }
    }
}

/// Returns true if the bytes are a complete header of a data frame.
fn is_data_frame(frame: &[u8]) -> bool {
    frame.len() >= FRAME_HEADER && frame[6..8] == FrameType::DATA.0.to_le_bytes()
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.names()[0])
    }
}

/// The name is that of no known algorithm. Aeron would load it as a class of the user.
#[derive(Clone, PartialEq, Eq, Error)]
#[error(
    "unknown checksum {name:?}: use CRC-32, CRC-32C, org.agrona.checksum.Crc32, org.agrona.checksum.Crc32c, \
     io.aeron.archive.checksum.Crc32 or io.aeron.archive.checksum.Crc32c"
)]
pub struct UnknownChecksum {
    /// The name.
    pub name: String,
}

taran_core::debug_is_display!(UnknownChecksum);

impl FromStr for Checksum {
    type Err = UnknownChecksum;

    fn from_str(name: &str) -> Result<Self, UnknownChecksum> {
        Self::ALL
            .into_iter()
            .find(|checksum| checksum.names().contains(&name))
            .ok_or_else(|| UnknownChecksum {
                name: name.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compute_of_the_check_input_is_the_published_value() {
        // The inputs and values are those by which catalogues of CRC algorithms identify them.
        assert_eq!(
            Checksum::Crc32.compute(b"123456789"),
            0xCBF4_3926_u32.cast_signed()
        );
        assert_eq!(
            Checksum::Crc32c.compute(b"123456789"),
            0xE306_9283_u32.cast_signed()
        );
    }

    #[test]
    fn stamped_frames_are_verified_and_padding_is_left_alone() {
        for checksum in Checksum::ALL {
            let mut frame: Vec<u8> = (0..96).collect();
            frame[6..8].copy_from_slice(&[1, 0]);
            assert!(!checksum.verify_frame(&frame));
            checksum.stamp_frame(&mut frame);
            assert!(checksum.verify_frame(&frame));
            let mut digest = checksum.digest();
            frame[32..].chunks(7).for_each(|part| digest.update(part));
            assert_eq!(digest.finish().to_le_bytes(), frame[12..16]);
            frame[95] ^= 1;
            assert!(!checksum.verify_frame(&frame));

            frame[6] = 0;
            let before = frame.clone();
            checksum.stamp_frame(&mut frame);
            assert_eq!(before, frame);
            assert!(checksum.verify_frame(&frame));
        }
    }

    #[test]
    fn from_str_takes_all_names_and_says_them() {
        for checksum in Checksum::ALL {
            for name in checksum.names() {
                assert_eq!(name.parse(), Ok(checksum));
            }
            assert_eq!(checksum.to_string().parse(), Ok(checksum));
        }
        let error = "crc32".parse::<Checksum>().unwrap_err();
        let text = error.to_string();
        for name in Checksum::ALL.iter().flat_map(|checksum| checksum.names()) {
            assert!(text.contains(name), "{text}");
        }
    }
}
