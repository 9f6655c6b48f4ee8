// SPDX-License-Identifier: Apache-2.0
//! Messages from one transmitter to any number of receivers, in any number of processes (docs/spec/shared-memory.md
//! §4). Carries the
//! driver's responses.
//!
//! The buffer is a power of two of bytes and a trailer. The transmitter never waits: a receiver that falls behind by
//! more than the buffer is lapped, which is an error of its next call. A record may be overwritten while it is read; it
//! is copied first, and delivered only if the transmitter has not reached it meanwhile.

mod layout;
mod receiver;
mod transmitter;

#[cfg(test)]
#[cfg(not(loom))]
mod tests;

pub use layout::TRAILER_LENGTH;
pub use receiver::{ReceiveError, Receiver, TailProbe};
pub use transmitter::{TransmitError, Transmitter};

use thiserror::Error;

/// A region is not a broadcast buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BroadcastError {
    /// The length is not a power of two plus the trailer.
    #[error(
        "a broadcast buffer cannot be {length} bytes long: it needs a power of two from {} to {}, and \
         {TRAILER_LENGTH} bytes of trailer",
        layout::MIN_CAPACITY,
        layout::MAX_CAPACITY
    )]
    Length {
        /// Length of the region in bytes.
        length: usize,
    },
    /// A position is not the start of a record.
    #[error(
        "the broadcast buffer's position {position} is not a multiple of 8: the memory is damaged, restart the driver"
    )]
    Position {
        /// The position in bytes.
        position: i64,
    },
}
