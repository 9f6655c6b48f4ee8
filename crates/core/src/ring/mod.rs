//! Rings of messages in shared memory (docs/spec/shared-memory.md §3).
//!
//! A ring is a power of two of bytes and a trailer with its positions. A message lies in it as a record: length, type,
//! payload. A positive length, stored last, publishes the record; a negative one says that its producer is still at
//! work, or died there.
//!
//! [`many_to_one`] carries the clients' commands to the driver. [`one_to_one`] has a single producer.
//!
//! Positions and lengths of a ring can be written by every process that maps it. A consumer checks each before it is
//! used; what cannot be is a [`Corrupt`] error, after which the ring goes on empty.

mod claim;
mod layout;
mod reader;
mod unblock;

pub mod many_to_one;
pub mod one_to_one;

pub use claim::RingClaim;
pub use layout::TRAILER_LENGTH;

use thiserror::Error;

/// What a handler wants done with the message that it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Not now: leave the message in the ring and stop.
    Abort,
    /// Done, and stop.
    Break,
    /// Done; give the space back now, then go on.
    Commit,
    /// Done, go on.
    Continue,
}

/// Why a region cannot be a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RingError {
    /// The length is not a power of two and a trailer.
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

/// Why a message was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// No room at present: the consumer is behind.
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
    /// The tail is not the start of a record: some process has damaged it. The consumer mends it.
    #[error(
        "the ring's tail {tail} is not a multiple of 8: the memory was damaged by another process, try again"
    )]
    Corrupt {
        /// The tail position in bytes.
        tail: i64,
    },
}

/// The ring holds something that no producer writes: some process has damaged it. What was in the ring has been
/// dropped, and it works again.
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
    /// Bytes that were in the ring.
    pub dropped: usize,
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
