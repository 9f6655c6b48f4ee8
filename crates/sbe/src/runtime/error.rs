//! What can be wrong with a message, or with what somebody wants to put into one.

use core::fmt;

/// Why bytes are not the message that they were taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end too early.
    Short {
        /// What was being read, by its name in the schema.
        what: &'static str,
        /// How many bytes it takes.
        needed: u64,
        /// How many there were.
        actual: usize,
    },
    /// A block is shorter than it was in the first version that had it.
    BlockTooShort {
        /// The message or group, by its name in the schema.
        what: &'static str,
        /// How long the block is at least.
        needed: usize,
        /// How long it is said to be.
        actual: u64,
    },
    /// The message is another one.
    WrongTemplate {
        /// The id of the message that was expected.
        expected: u64,
        /// The one that was found.
        actual: u64,
    },
    /// The schema has no message with that id.
    UnknownTemplate {
        /// The id that was found.
        actual: u64,
    },
    /// The message is from another schema.
    WrongSchema {
        /// The id of the schema that was expected.
        expected: u64,
        /// The one that was found.
        actual: u64,
    },
    /// A group has fewer or more entries than the schema allows, or more than
    /// [`MOST_EMPTY_ENTRIES`](super::MOST_EMPTY_ENTRIES) that take no bytes.
    BadCount {
        /// The group, by its name in the schema.
        what: &'static str,
        /// The least number.
        min: u64,
        /// The greatest number.
        max: u64,
        /// The number that was found.
        actual: u64,
    },
    /// Data is longer than the schema allows.
    TooLong {
        /// The data, by its name in the schema.
        what: &'static str,
        /// The greatest length.
        max: u64,
        /// The length that was found.
        actual: u64,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Short {
                what,
                needed,
                actual,
            } => write!(
                out,
                "{what} takes {needed} bytes, and there are only {actual}"
            ),
            Self::BlockTooShort {
                what,
                needed,
                actual,
            } => write!(
                out,
                "the block of {what} has {actual} bytes, and had at least {needed} in every version"
            ),
            Self::WrongTemplate { expected, actual } => {
                write!(
                    out,
                    "message {expected} was expected, and message {actual} came"
                )
            }
            Self::UnknownTemplate { actual } => {
                write!(out, "the schema has no message with the id {actual}")
            }
            Self::WrongSchema { expected, actual } => write!(
                out,
                "a message of schema {expected} was expected, and one of schema {actual} came"
            ),
            Self::BadCount {
                what,
                min,
                max,
                actual,
            } => write!(
                out,
                "{what} has {actual} entries; from {min} to {max} are allowed"
            ),
            Self::TooLong { what, max, actual } => {
                write!(
                    out,
                    "{what} has {actual} bytes; no more than {max} are allowed"
                )
            }
        }
    }
}

impl core::error::Error for DecodeError {}

/// Why a message cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The buffer is too small.
    Short {
        /// What was to be written, by its name in the schema.
        what: &'static str,
        /// How many bytes it takes.
        needed: usize,
        /// How many were left.
        actual: usize,
    },
    /// A text or data is longer than its field can hold.
    TooLong {
        /// The field, by its name in the schema.
        what: &'static str,
        /// The greatest length.
        max: u64,
        /// The length of what was given.
        actual: usize,
    },
    /// A group is full.
    TooManyEntries {
        /// The group, by its name in the schema.
        what: &'static str,
        /// The greatest number of entries.
        max: u64,
    },
    /// A group ends before it has the entries that the schema wants.
    TooFewEntries {
        /// The group, by its name in the schema.
        what: &'static str,
        /// The least number of entries.
        min: u64,
        /// How many there are.
        actual: u64,
    },
}

impl fmt::Display for EncodeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Short {
                what,
                needed,
                actual,
            } => write!(
                out,
                "{what} takes {needed} bytes, and the buffer has only {actual} left"
            ),
            Self::TooLong { what, max, actual } => {
                write!(out, "{what} holds {max} bytes at most, and {actual} came")
            }
            Self::TooManyEntries { what, max } => {
                write!(out, "{what} has {max} entries, and more are not allowed")
            }
            Self::TooFewEntries { what, min, actual } => {
                write!(out, "{what} has {actual} entries, and needs {min} at least")
            }
        }
    }
}

impl core::error::Error for EncodeError {}
