// SPDX-License-Identifier: Apache-2.0
//! The writing end (docs/spec/shared-memory.md §4.2).

use thiserror::Error;

use super::{
    BroadcastError,
    layout::{Buffer, HEADER_LENGTH, PADDING, aligned},
};
use crate::{
    memory::Region,
    sync::{Ordering, fence},
};

/// A message cannot be transmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TransmitError {
    /// The message is longer than the buffer takes.
    #[error(
        "a message of {length} bytes does not fit this broadcast buffer, which takes up to {max}"
    )]
    TooLong {
        /// Length of the message in bytes.
        length: usize,
        /// Greatest length in bytes.
        max: usize,
    },
    /// Types start at 1.
    #[error("{0} is not a message type: types are greater than 0")]
    BadTypeId(i32),
}

/// The transmitting end. There must be only one, in all processes.
#[doc(alias = "BroadcastTransmitter")]
#[derive(Debug)]
pub struct Transmitter {
    buffer: Buffer,
    /// The transmitter's tail. The copy in the trailer is for receivers, and is not read here.
    tail: i64,
}

impl Transmitter {
    /// Opens the broadcast buffer in a region, and continues where the last transmitter stopped.
    pub fn open(region: &Region) -> Result<Self, BroadcastError> {
        let buffer = Buffer::open(region)?;
        let tail = buffer.trailer.tail.load(Ordering::Acquire);
        if tail % HEADER_LENGTH as i64 != 0 {
            return Err(BroadcastError::Position { position: tail });
        }
        Ok(Self { buffer, tail })
    }

    /// Transmits a message to all receivers.
    pub fn transmit(&mut self, type_id: i32, payload: &[u8]) -> Result<(), TransmitError> {
        if type_id < 1 {
            return Err(TransmitError::BadTypeId(type_id));
        }
        let max = self.buffer.max_message_length();
        if payload.len() > max {
            return Err(TransmitError::TooLong {
                length: payload.len(),
                max,
            });
        }

        let buffer = &self.buffer;
        let trailer = &*buffer.trailer;
        let record = HEADER_LENGTH + payload.len();
        let space = aligned(record);
        let mut current = self.tail;
        let mut offset = buffer.offset(current);
        let to_end = buffer.to_end(offset);
        let padding = if to_end < space { to_end } else { 0 };
        let next = current.wrapping_add((padding + space) as i64);

        trailer.tail_intent.store(next, Ordering::Release);
        // A receiver that sees a byte of the following writes also sees the intent. The partner is the acquire fence in
        // `Receiver::overwritten`.
        fence(Ordering::Release);
        if padding > 0 {
            // Lengths are below the capacity, which is at most 2^30.
            buffer
                .length(offset)
                .store(padding as i32, Ordering::Relaxed);
            buffer.type_id(offset).store(PADDING, Ordering::Relaxed);
            current = current.wrapping_add(padding as i64);
            offset = 0;
        }
        buffer
            .length(offset)
            .store(record as i32, Ordering::Relaxed);
        buffer.type_id(offset).store(type_id, Ordering::Relaxed);
        buffer.put_payload(offset, payload);

        // Released to the acquire in `Receiver::open` and `Receiver::resume`.
        trailer.latest.store(current, Ordering::Release);
        // Releases the record to the acquire in `Receiver::receive`.
        trailer.tail.store(next, Ordering::Release);
        self.tail = next;
        Ok(())
    }

    /// Longest message in bytes.
    pub fn max_message_length(&self) -> usize {
        self.buffer.max_message_length()
    }

    /// Bytes for records.
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }
}
