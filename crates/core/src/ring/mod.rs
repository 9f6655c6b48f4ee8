// SPDX-License-Identifier: Apache-2.0
//! Rings of messages in shared memory (docs/spec/shared-memory.md §3).
//!
//! A ring is a power of two of bytes and a trailer with its positions. A message lies in it as a record: length, type,
//! payload. A positive length, stored last, publishes the record; a negative one means that its producer is still
//! writing, or died.
//!
//! [`many_to_one`] carries the clients' commands to the driver. [`one_to_one`] has a single producer.
//!
//! Every process that maps a ring can write its positions and lengths. A consumer checks each before use; an impossible
//! value is a [`Corrupt`] error, after which the ring continues empty.

mod claim;
mod layout;
mod reader;
mod unblock;

pub mod many_to_one;
pub mod one_to_one;

pub use claim::RingClaim;
pub use layout::TRAILER_LENGTH;

use thiserror::Error;

/// The action of a handler on the current message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Leave the message in the ring and stop.
    Abort,
    /// Consume the message and stop.
    Break,
    /// Consume the message, free the space of all consumed messages, and continue.
    Commit,
    /// Consume the message and continue.
    Continue,
}

/// A region is not a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RingError {
    /// The length is not a power of two plus the trailer.
    #[error(
        "a ring cannot be {length} bytes long: it needs a power of two from {} to {}, and {TRAILER_LENGTH} bytes of \
         trailer",
        layout::MIN_CAPACITY,
        layout::MAX_CAPACITY
    )]
    Length {
        /// Length of the region in bytes.
        length: usize,
    },
    /// A position is not the start of a record.
    #[error(
        "the ring's position {position} is not a multiple of 8: the memory is damaged, restart the driver"
    )]
    Position {
        /// The position in bytes.
        position: i64,
    },
}

/// A message was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// No space at present: the consumer is behind.
    #[error("the ring is full: its consumer is behind, try again")]
    Full,
    /// The message can never be written to this ring.
    #[error("a message of {length} bytes does not fit this ring, which takes up to {max}")]
    TooLong {
        /// Length of the message in bytes.
        length: usize,
        /// Greatest length in bytes.
        max: usize,
    },
    /// Types start at 1.
    #[error("{0} is not a message type: types are greater than 0")]
    BadTypeId(i32),
    /// The tail is not the start of a record, or not between the head and a capacity beyond it: another process has
    /// damaged them. The consumer repairs them.
    #[error(
        "the ring's tail {tail} and head {head} are not positions of one ring: the memory was damaged by another \
         process, try again in some seconds"
    )]
    Corrupt {
        /// The tail position in bytes.
        tail: i64,
        /// The head position in bytes, as producers see it.
        head: i64,
    },
}

/// The ring contains a record that no producer writes, or has an impossible tail: another process has damaged it. The
/// contents of the ring were dropped, and it is usable again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "a record of length {length} at position {position} with the tail at {tail} cannot be: a process that writes to \
     this ring is broken. {dropped} bytes of messages were dropped"
)]
pub struct Corrupt {
    /// Position of the record in bytes.
    pub position: i64,
    /// Its length field.
    pub length: i32,
    /// The tail position in bytes.
    pub tail: i64,
    /// Bytes that were dropped.
    pub dropped: usize,
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
