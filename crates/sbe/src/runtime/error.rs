// SPDX-License-Identifier: Apache-2.0
//! Errors of generated decoders and encoders.

use core::fmt;

/// Error while decoding a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The input ends too early.
    Short {
        /// Schema name of the element that was read.
        what: &'static str,
        /// Required length in bytes.
        needed: u64,
        /// Available length in bytes.
        actual: usize,
    },
    /// The block is shorter than in its first version.
    BlockTooShort {
        /// Schema name of the message or group.
        what: &'static str,
        /// Minimum block length in bytes.
        needed: usize,
        /// Block length in the header or dimensions, in bytes.
        actual: u64,
    },
    /// The message has another template id.
    WrongTemplate {
        /// Expected template id.
        expected: u64,
        /// Id found.
        actual: u64,
    },
    /// The schema has no message with this template id.
    UnknownTemplate {
        /// The id that was found.
        actual: u64,
    },
    /// The message has another schema id.
    WrongSchema {
        /// Expected schema id.
        expected: u64,
        /// Id found.
        actual: u64,
    },
    /// The number of group entries is outside the range of the schema, or greater than
    /// [`MAX_EMPTY_ENTRIES`](super::MAX_EMPTY_ENTRIES) for entries that take no bytes.
    BadCount {
        /// Schema name of the group.
        what: &'static str,
        /// Minimum count.
        min: u64,
        /// Maximum count.
        max: u64,
        /// Count found.
        actual: u64,
    },
    /// Data is longer than the schema allows.
    TooLong {
        /// Schema name of the data element.
        what: &'static str,
        /// Maximum length in bytes.
        max: u64,
        /// Length found, in bytes.
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
                "{what} needs {needed} bytes, but only {actual} are available"
            ),
            Self::BlockTooShort {
                what,
                needed,
                actual,
            } => write!(
                out,
                "the block of {what} has {actual} bytes, but every version has at least {needed}"
            ),
            Self::WrongTemplate { expected, actual } => {
                write!(out, "template id {actual}, expected {expected}")
            }
            Self::UnknownTemplate { actual } => {
                write!(out, "the schema has no message with the id {actual}")
            }
            Self::WrongSchema { expected, actual } => {
                write!(out, "schema id {actual}, expected {expected}")
            }
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

/// Error while encoding a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The buffer is too small.
    Short {
        /// Schema name of the element that was written.
        what: &'static str,
        /// Required length in bytes.
        needed: usize,
        /// Remaining length in bytes.
        actual: usize,
    },
    /// Text or data is longer than its field.
    TooLong {
        /// Schema name of the field.
        what: &'static str,
        /// Maximum length in bytes.
        max: u64,
        /// Length of the given value, in bytes.
        actual: usize,
    },
    /// The group has its maximum number of entries.
    TooManyEntries {
        /// Schema name of the group.
        what: &'static str,
        /// Maximum number of entries.
        max: u64,
    },
    /// The group ends with fewer entries than the schema requires.
    TooFewEntries {
        /// Schema name of the group.
        what: &'static str,
        /// Minimum number of entries.
        min: u64,
        /// Number of entries written.
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
                "{what} needs {needed} bytes, but the buffer has only {actual} left"
            ),
            Self::TooLong { what, max, actual } => {
                write!(
                    out,
                    "{what} holds at most {max} bytes, but {actual} were given"
                )
            }
            Self::TooManyEntries { what, max } => {
                write!(out, "{what} has {max} entries, the maximum")
            }
            Self::TooFewEntries { what, min, actual } => {
                write!(out, "{what} has {actual} entries, but needs at least {min}")
            }
        }
    }
}

impl core::error::Error for EncodeError {}
