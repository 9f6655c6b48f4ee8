/// Why a log could not be created or opened. Each names what was found and what would be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The file cannot hold three terms and the metadata.
    #[error("log of {found} bytes, expected {expected}")]
    FileLength {
        /// Bytes in the file.
        found: usize,
        /// Bytes that its term length and page size call for, or the least that any log has.
        expected: usize,
    },
    /// The term length is not allowed.
    #[error("log with terms of {0} bytes, expected a power of two from 65536 to 1073741824")]
    TermLength(i32),
    /// The page size is not allowed.
    #[error("log with pages of {0} bytes, expected a power of two from 4096 to 1073741824")]
    PageSize(i32),
    /// The MTU is not allowed.
    #[error("log with an MTU of {0} bytes, expected a multiple of 32 from 64 to 65504")]
    Mtu(i32),
    /// Frames of this log have another header.
    #[error("log with frame headers of {0} bytes, expected 32")]
    HeaderLength(i32),
    /// The log is of no known kind.
    #[error("log of type {0}, expected 0 (concurrent), 1 (exclusive) or 2 (image)")]
    Kind(u8),
    /// A publication cannot start at this position.
    #[error("start position {position} is not a multiple of 32 from 0 to {max}")]
    StartPosition {
        /// The position.
        position: i64,
        /// First position that the stream cannot reach.
        max: i64,
    },
    /// The tail counter of the active term cannot be that of this log.
    #[error("raw tail {tail:#x} of term count {term_count} is not sound")]
    Tail {
        /// The counter.
        tail: i64,
        /// Terms since the first.
        term_count: i32,
    },
}

/// A frame in a log whose length cannot be right: it was written by something other than a publisher that follows the
/// protocol. Nothing beyond it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("frame length {length} at offset {offset} of a term is corrupt")]
pub struct CorruptFrame {
    /// Where the frame starts in its term.
    pub offset: i32,
    /// The length found.
    pub length: i32,
}
