// SPDX-License-Identifier: Apache-2.0
/// Reason why a datagram is dropped. Each counts as one invalid packet (docs/spec/wire.md §1.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidFrame {
    /// The datagram is shorter than the header of its type.
    #[error("datagram of {length} bytes is shorter than the {needed} bytes of its header")]
    TooShort {
        /// Bytes in the datagram.
        length: usize,
        /// Bytes in the header.
        needed: usize,
    },
    /// The protocol version is not supported.
    #[error("frame version {0} is not 0")]
    Version(u8),
    /// The frame type is unknown.
    #[error("unknown frame type {0:#06x}")]
    UnknownType(u16),
    /// The frame length is negative, too small for the header, or larger than the datagram.
    #[error("frame length {frame_length} does not fit a datagram of {length} bytes")]
    FrameLength {
        /// The field.
        frame_length: i32,
        /// Bytes in the datagram.
        length: usize,
    },
    /// The length of a data datagram is not a multiple of 32, or its frames are inconsistent.
    #[error("frames are valid for {covered} of {length} bytes of a data datagram")]
    DataLength {
        /// Bytes in the datagram.
        length: usize,
        /// Bytes covered by frames before the inconsistency.
        covered: usize,
    },
    /// The offset is negative, beyond the term or not a multiple of 32.
    #[error("term offset {term_offset} is not a frame offset in a term of {term_length} bytes")]
    TermOffset {
        /// The field.
        term_offset: i32,
        /// Term length in bytes.
        term_length: i32,
    },
    /// The range has a negative length or extends beyond the term.
    #[error(
        "range of {length} bytes at offset {term_offset} is not inside a term of {term_length} bytes"
    )]
    Range {
        /// Start of the range.
        term_offset: i32,
        /// Bytes in the range.
        length: i32,
        /// Term length in bytes.
        term_length: i32,
    },
    /// The term length is not a power of two from 64 KiB to 1 GiB.
    #[error("term length {0} is not a power of two from 65536 to 1073741824")]
    TermLength(i32),
    /// The MTU is not a multiple of 32 from 64 to 65504.
    #[error("MTU {0} is not a multiple of 32 from 64 to 65504")]
    Mtu(i32),
    /// The receiver window is negative or larger than half a term.
    #[error("receiver window {window} is not in 0..={max}")]
    Window {
        /// The field.
        window: i32,
        /// Maximum.
        max: i32,
    },
    /// The error text has a negative length, is too long, or extends beyond the frame.
    #[error("error text of {text_length} bytes in a frame of {frame_length} bytes")]
    ErrorText {
        /// The field.
        text_length: i32,
        /// Length field of the frame.
        frame_length: i32,
    },
    /// The type of a name resolution entry is unknown.
    #[error("unknown resolution type {0}")]
    ResolutionType(u8),
    /// The name of a name resolution entry is empty, too long or truncated.
    #[error("resolution name of {name_length} bytes with {remaining} bytes left in the datagram")]
    ResolutionName {
        /// The field.
        name_length: i16,
        /// Bytes left in the datagram.
        remaining: usize,
    },
}
