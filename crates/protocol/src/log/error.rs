// SPDX-License-Identifier: Apache-2.0
/// Reason why a log cannot be created or opened. Each message names the value found and the values allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The file length does not match three terms and the metadata.
    #[error("log of {found} bytes, expected {expected}")]
    FileLength {
        /// Bytes in the file.
        found: usize,
        /// Bytes required by its term length and page size, or the minimum length of a log.
        expected: usize,
    },
    /// The term length is invalid.
    #[error("log with terms of {0} bytes, expected a power of two from 65536 to 1073741824")]
    TermLength(i32),
    /// The page size is invalid.
    #[error("log with pages of {0} bytes, expected a power of two from 4096 to 1073741824")]
    PageSize(i32),
    /// The MTU is invalid.
    #[error("log with an MTU of {0} bytes, expected a multiple of 32 from 64 to 65504")]
    Mtu(i32),
    /// The frame headers of the log have another length.
    #[error("log with frame headers of {0} bytes, expected 32")]
    HeaderLength(i32),
    /// The type of the log is unknown.
    #[error("log of type {0}, expected 0 (concurrent), 1 (exclusive) or 2 (image)")]
    Kind(u8),
    /// The start position is invalid.
    #[error("start position {position} is not a multiple of 32 from 0 to {max}")]
    StartPosition {
        /// The position.
        position: i64,
        /// First position beyond the end of the stream.
        max: i64,
    },
    /// The tail counter of the active term does not match the log.
    #[error("raw tail {tail:#x} is invalid for term count {term_count}")]
    Tail {
        /// Raw tail.
        tail: i64,
        /// Number of terms since the initial one.
        term_count: i32,
    },
}

/// A frame in a log with an invalid length: it was not written by a publisher that follows the protocol. Frames after
/// it cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("frame length {length} at offset {offset} of a term is corrupt")]
pub struct CorruptFrame {
    /// Offset of the frame in its term.
    pub offset: i32,
    /// Invalid length.
    pub length: i32,
}
