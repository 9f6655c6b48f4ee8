//! Why bytes are no message.

use thiserror::Error;

/// Bytes that are no message of the schema.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("at byte {offset}{}: {reason}", within(path))]
pub struct DecodeError {
    /// Where, from the start of all bytes that were handed in.
    pub offset: usize,
    /// What was being read, such as `Car.fuelFigures[2].description`; empty for the header.
    pub path: String,
    /// What is wrong.
    pub reason: Reason,
}

fn within(path: &str) -> String {
    if path.is_empty() {
        return String::new();
    }
    format!(", {path}")
}

/// What is wrong with bytes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reason {
    /// They end too early.
    #[error("{needed} bytes are needed for {what}, and {left} are left")]
    Truncated {
        /// What should have been there.
        what: &'static str,
        /// How long that is.
        needed: u64,
        /// How many bytes there are.
        left: usize,
    },
    /// They are of another schema.
    #[error("schema id {found}, where that of the schema is {expected}")]
    SchemaId {
        /// The id in the header.
        found: u64,
        /// The id of the schema.
        expected: u64,
    },
    /// They are of no message of the schema.
    #[error("the schema has no message with template id {0}")]
    TemplateId(u64),
    /// A block that ends before a field which its version has.
    #[error(
        "the block has {block} bytes, but in version {version} the field needs it to have {needed}"
    )]
    BlockTooShort {
        /// The length of the block.
        block: usize,
        /// The version of the message.
        version: u64,
        /// Where the field ends.
        needed: u64,
    },
    /// A frame that is said to be shorter than what says so.
    #[error("the length of the frame is {0}, shorter than its own header")]
    FrameTooShort(u64),
    /// A group has fewer or more entries than the schema allows, or more than
    /// [`MOST_EMPTY_ENTRIES`](crate::runtime::MOST_EMPTY_ENTRIES) that take no bytes.
    #[error("the group has {count} entries; from {min} to {max} are allowed")]
    BadCount {
        /// The number that was found.
        count: i128,
        /// The least number.
        min: u64,
        /// The greatest number.
        max: u64,
    },
    /// Data is longer than the schema allows.
    #[error("the data has {length} bytes; no more than {max} are allowed")]
    TooLong {
        /// The length that was found.
        length: u64,
        /// The greatest length.
        max: u64,
    },
    /// A message of no bytes, in front of others: its header has nothing that is sent.
    #[error("the message has no bytes, so that nobody can tell how many of it there are")]
    NoBytes,
    /// More values than the decoder is willing to build.
    #[error("the message has more than {0} values")]
    TooManyValues(usize),
}
