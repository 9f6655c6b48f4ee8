// SPDX-License-Identifier: Apache-2.0
//! The node state file: the highest term that the member voted in.

use thiserror::Error;

use super::{i32_at, i64_at};

/// Length of a node state file.
pub const NODE_STATE_FILE_LENGTH: usize = 1024 * 1024;

/// Version 0.3.0.
const VERSION: i32 = 0x00_0300;

/// Template ids of frames.
const CANDIDATE_TERM: u16 = 301;
const FOOTER: u16 = 304;

const SCHEMA_ID: u16 = 112;
const SCHEMA_VERSION: u16 = 10;

/// Length of the version field and its padding, before the first frame.
const FILE_HEADER: usize = 8;

/// Length of a frame's header: SBE header, frame length, padding.
const FRAME_HEADER: usize = 16;

/// Length of the candidate term's block.
const BLOCK: usize = 24;

/// Content of a node state file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeState {
    /// Highest term that the member voted in or followed; -1 for none.
    pub candidate_term: i64,
    /// Time of the last change in milliseconds.
    pub timestamp: i64,
    /// Log position at that time.
    pub log_position: i64,
}

/// Reason why bytes are no node state file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NodeStateError {
    /// The file ends before its content does.
    #[error("the node state file ends after {length} bytes; {REMEDY}")]
    TooShort {
        /// Length of the file.
        length: usize,
    },
    /// Another major version, or a file of zeros, whose creation was interrupted.
    #[error("the node state file has the version {version:#x}, expected {VERSION:#x}; {REMEDY}")]
    WrongVersion {
        /// Version of the file.
        version: i32,
    },
    /// A frame of another schema, or with a length that is none.
    #[error("the node state file has no valid frame at {offset}; {REMEDY}")]
    InvalidFrame {
        /// Offset of the frame.
        offset: usize,
    },
    /// The footer comes before the candidate term.
    #[error("the node state file has no candidate term; {REMEDY}")]
    NoCandidateTerm,
}

/// The way out of a corrupt file.
const REMEDY: &str =
    "without it the member could vote twice in one term: restore the file, or replace the member";

impl NodeState {
    /// Reads a file. Frames of other kinds are skipped.
    ///
    /// # Errors
    /// The bytes are no node state file.
    pub fn decode(bytes: &[u8]) -> Result<Self, NodeStateError> {
        Self::decode_with_offset(bytes).map(|(state, _)| state)
    }

    /// Reads a file like [`decode`](Self::decode). Returns also the offset at which the file takes a changed [`block`](Self::block):
    /// it is behind frames of other kinds.
    ///
    /// # Errors
    /// The bytes are no node state file.
    pub fn decode_with_offset(bytes: &[u8]) -> Result<(Self, usize), NodeStateError> {
        let too_short = NodeStateError::TooShort {
            length: bytes.len(),
        };
        if bytes.len() < FILE_HEADER {
            return Err(too_short);
        }
        let version = i32_at(bytes, 0);
        // The patch of a version is positive in each file that was written.
        if version <= 0 || version >> 16 != VERSION >> 16 {
            return Err(NodeStateError::WrongVersion { version });
        }
        let mut found = None;
        let mut at = FILE_HEADER;
        loop {
            if bytes.len() < at + FRAME_HEADER {
                return Err(too_short);
            }
            let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
            let template = u16_at(at + 2);
            let invalid = NodeStateError::InvalidFrame { offset: at };
            let length = usize::try_from(i32_at(bytes, at + 8)).map_err(|_| invalid)?;
            if u16_at(at + 4) != SCHEMA_ID || length < FRAME_HEADER {
                return Err(invalid);
            }
            if template == FOOTER {
                return found.ok_or(NodeStateError::NoCandidateTerm);
            }
            if bytes.len() - at < length {
                return Err(too_short);
            }
            if template == CANDIDATE_TERM {
                if length < FRAME_HEADER + BLOCK {
                    return Err(invalid);
                }
                let body = at + FRAME_HEADER;
                let state = Self {
                    candidate_term: i64_at(bytes, body),
                    timestamp: i64_at(bytes, body + 8),
                    log_position: i64_at(bytes, body + 16),
                };
                found = Some((state, body));
            }
            at += length.next_multiple_of(8);
        }
    }

    /// Returns the bytes of a new file, without the zeros up to [`NODE_STATE_FILE_LENGTH`].
    #[must_use]
    pub fn encode(&self) -> [u8; FILE_HEADER + 2 * FRAME_HEADER + BLOCK] {
        let mut bytes = [0; FILE_HEADER + 2 * FRAME_HEADER + BLOCK];
        bytes[0..4].copy_from_slice(&VERSION.to_le_bytes());
        write_frame_header(&mut bytes[FILE_HEADER..], CANDIDATE_TERM, BLOCK);
        let body = FILE_HEADER + FRAME_HEADER;
        bytes[body..body + BLOCK].copy_from_slice(&self.block());
        write_frame_header(&mut bytes[body + BLOCK..], FOOTER, 0);
        bytes
    }

    /// Returns the bytes that change with the content. They stand at [`Self::block_offset`].
    #[must_use]
    pub fn block(&self) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        block[0..8].copy_from_slice(&self.candidate_term.to_le_bytes());
        block[8..16].copy_from_slice(&self.timestamp.to_le_bytes());
        block[16..24].copy_from_slice(&self.log_position.to_le_bytes());
        block
    }

    /// Returns the offset of [`Self::block`] in a file that [`Self::encode`] made, or an official one.
    #[must_use]
    pub const fn block_offset() -> usize {
        FILE_HEADER + FRAME_HEADER
    }
}

fn write_frame_header(bytes: &mut [u8], template: u16, block: usize) {
    for (at, value) in [block as u16, template, SCHEMA_ID, SCHEMA_VERSION]
        .into_iter()
        .enumerate()
    {
        bytes[2 * at..2 * at + 2].copy_from_slice(&value.to_le_bytes());
    }
    let length = (FRAME_HEADER + block) as u32;
    bytes[8..12].copy_from_slice(&length.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: NodeState = NodeState {
        candidate_term: 7,
        timestamp: 1_700_000_000_000,
        log_position: 4_096,
    };

    #[test]
    fn state_that_is_encoded_and_decoded_is_the_same() {
        let bytes = STATE.encode();
        assert_eq!(bytes.len(), 64);
        assert_eq!(NodeState::decode(&bytes), Ok(STATE));
        let offset = NodeState::block_offset();
        assert_eq!(offset, 24);
        assert_eq!(bytes[offset..offset + 24], STATE.block());
        // The footer: block length 0, template 304, frame length 16.
        assert_eq!(bytes[48..60], [0, 0, 48, 1, 112, 0, 10, 0, 16, 0, 0, 0]);
    }

    #[test]
    fn frame_of_another_kind_is_skipped() {
        let bytes = STATE.encode();
        let mut longer = bytes[..8].to_vec();
        let mut foreign = [0; 24];
        write_frame_header(&mut foreign, 303, 8);
        longer.extend_from_slice(&foreign);
        longer.extend_from_slice(&bytes[8..]);
        assert_eq!(NodeState::decode(&longer), Ok(STATE));
    }

    #[test]
    fn file_of_zeros_is_an_error() {
        let error = NodeState::decode(&[0; 64]).unwrap_err();
        assert_eq!(error, NodeStateError::WrongVersion { version: 0 });
        assert!(error.to_string().contains("restore the file"));
    }

    #[test]
    fn file_that_is_cut_is_an_error() {
        let bytes = STATE.encode();
        for length in 0..bytes.len() {
            assert!(NodeState::decode(&bytes[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn file_with_a_changed_byte_is_an_error_or_a_state() {
        let bytes = STATE.encode();
        for at in 0..bytes.len() {
            for value in 0..=255 {
                let mut changed = bytes;
                changed[at] = value;
                let _ = NodeState::decode(&changed);
            }
        }
    }
}
