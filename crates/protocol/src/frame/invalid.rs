/// Why a datagram was dropped (`docs/spec/wire.md §1.14`). Each counts as one invalid packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidFrame {
    /// The datagram ends before the header of its type does.
    #[error("datagram of {length} bytes is shorter than the {needed} bytes of its header")]
    TooShort {
        /// Bytes in the datagram.
        length: usize,
        /// Bytes in the header.
        needed: usize,
    },
    /// Another version of the protocol.
    #[error("frame version {0} is not 0")]
    Version(u8),
    /// A type that no driver acts upon.
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
    /// A data datagram whose length is not a multiple of 32, or which does not end where its last frame does.
    #[error("frames of {covered} bytes in a data datagram of {length} bytes")]
    DataLength {
        /// Bytes in the datagram.
        length: usize,
        /// Bytes up to where the frames stopped making sense.
        covered: usize,
    },
    /// An offset which is negative, beyond the term or not a multiple of 32.
    #[error("term offset {term_offset} is no frame offset in a term of {term_length} bytes")]
    TermOffset {
        /// The field.
        term_offset: i32,
        /// Bytes in a term.
        term_length: i32,
    },
    /// A range which is negative or goes beyond the term.
    #[error(
        "{length} bytes from offset {term_offset} are no range in a term of {term_length} bytes"
    )]
    Range {
        /// Start of the range.
        term_offset: i32,
        /// Bytes in the range.
        length: i32,
        /// Bytes in a term.
        term_length: i32,
    },
    /// A term length that is no power of two from 64 KiB to 1 GiB.
    #[error("term length {0} is not a power of two from 65536 to 1073741824")]
    TermLength(i32),
    /// An MTU that is not a multiple of 32 from 32 to 65504.
    #[error("MTU {0} is not a multiple of 32 from 32 to 65504")]
    Mtu(i32),
    /// A receiver window that is negative or larger than half a term.
    #[error("receiver window {window} is not in 0..={max}")]
    Window {
        /// The field.
        window: i32,
        /// Largest allowed.
        max: i32,
    },
    /// Error text that is negative in length, too long, or not wholly in the frame.
    #[error("error text of {text_length} bytes in a frame of {frame_length} bytes")]
    ErrorText {
        /// The field.
        text_length: i32,
        /// The frame's length field.
        frame_length: i32,
    },
    /// A name resolution entry of unknown type.
    #[error("unknown resolution type {0}")]
    ResolutionType(u8),
    /// A name resolution entry which has no name, too long a name, or is cut off.
    #[error("resolution name of {name_length} bytes with {remaining} bytes left in the datagram")]
    ResolutionName {
        /// The field.
        name_length: i16,
        /// Bytes left for the name.
        remaining: usize,
    },
}
