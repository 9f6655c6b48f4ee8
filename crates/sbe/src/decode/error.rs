// SPDX-License-Identifier: Apache-2.0
//! Errors of the schema-driven decoder.

use thiserror::Error;

/// Error while decoding a message.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("at byte {offset}{}: {reason}", within(path))]
pub struct DecodeError {
    /// Offset from the start of the input, in bytes.
    pub offset: usize,
    /// Path of the element that was decoded, such as `Car.fuelFigures[2].description`; empty for the header.
    pub path: String,
    /// Reason.
    pub reason: Reason,
}

fn within(path: &str) -> String {
    if path.is_empty() {
        return String::new();
    }
    format!(", {path}")
}

/// Reason of a decode error.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reason {
    /// The input ends too early.
    #[error("{needed} bytes are needed for {what}, and {left} are left")]
    Truncated {
        /// Element that was expected.
        what: &'static str,
        /// Its length in bytes.
        needed: u64,
        /// Number of bytes available.
        left: usize,
    },
    /// The message has a different schema id.
    #[error("schema id {found}, expected {expected}")]
    SchemaId {
        /// Schema id in the header.
        found: u64,
        /// Schema id of the schema.
        expected: u64,
    },
    /// The schema has no message with this template id.
    #[error("the schema has no message with template id {0}")]
    TemplateId(u64),
    /// The block ends before a field that its acting version includes.
    #[error(
        "the block has {block} bytes, but in version {version} the field needs it to have {needed}"
    )]
    BlockTooShort {
        /// Block length in bytes.
        block: usize,
        /// Acting version.
        version: u64,
        /// End offset of the field.
        needed: u64,
    },
    /// The frame length is shorter than the frame header.
    #[error("the length of the frame is {0}, shorter than its own header")]
    FrameTooShort(u64),
    /// The number of group entries is outside the range of the schema, or greater than
    /// [`MAX_EMPTY_ENTRIES`](crate::runtime::MAX_EMPTY_ENTRIES) for entries that take no bytes.
    #[error("the group has {count} entries; from {min} to {max} are allowed")]
    BadCount {
        /// Count found.
        count: i128,
        /// Minimum count.
        min: u64,
        /// Maximum count.
        max: u64,
    },
    /// Data is longer than the schema allows.
    #[error("the data has {length} bytes; no more than {max} are allowed")]
    TooLong {
        /// Length found, in bytes.
        length: u64,
        /// Maximum length in bytes.
        max: u64,
    },
    /// The message takes no bytes because its header is all constant, so a sequence of messages would never end.
    #[error("a message of length 0 cannot be repeated")]
    NoBytes,
    /// The message has more values than the decoder's limit.
    #[error("the message has more than {0} values")]
    TooManyValues(usize),
}
