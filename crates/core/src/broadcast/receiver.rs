// SPDX-License-Identifier: Apache-2.0
//! The reading end (docs/spec/shared-memory.md §4.3).

use thiserror::Error;

use super::{
    BroadcastError,
    layout::{Buffer, HEADER_LENGTH, PADDING, aligned},
};
use crate::{
    memory::Region,
    sync::{Ordering, fence},
};

/// Initial length of the copy buffer, which grows to the longest message.
const SCRATCH_LENGTH: usize = 4096;

/// Messages were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// The transmitter has overwritten messages that were not received yet. The next one received is the newest.
    #[error(
        "unable to keep up with the broadcast: at least {behind} bytes of messages were missed. Poll the client's \
         conductor more often, or give the driver a longer buffer (aeron.clients.buffer.length)"
    )]
    Lapped {
        /// Distance to the transmitter, in bytes.
        behind: i64,
    },
    /// A record is not one that a transmitter writes: another process has damaged the buffer. Everything up to the tail
    /// is skipped.
    #[error(
        "a record of length {length} at position {position} of the broadcast buffer cannot be: the memory was damaged"
    )]
    Corrupt {
        /// Position of the record in bytes.
        position: i64,
        /// Its length field.
        length: i32,
    },
}

/// The receiving end. Each receives all messages since its opening.
#[doc(alias = "BroadcastReceiver")]
#[doc(alias = "CopyBroadcastReceiver")]
#[derive(Debug)]
pub struct Receiver {
    buffer: Buffer,
    /// Position of the next record.
    next: i64,
    lapped_count: u64,
    scratch: Vec<u8>,
}

impl Receiver {
    /// Opens the broadcast buffer in a region. The first message received is the newest one, which may be for another
    /// client.
    pub fn open(region: &Region) -> Result<Self, BroadcastError> {
        let buffer = Buffer::open(region)?;
        let next = buffer.trailer.latest.load(Ordering::Acquire);
        if next % HEADER_LENGTH as i64 != 0 {
            return Err(BroadcastError::Position { position: next });
        }
        let scratch = vec![0; SCRATCH_LENGTH.min(buffer.max_message_length())];
        Ok(Self {
            buffer,
            next,
            lapped_count: 0,
            scratch,
        })
    }

    /// Passes the next message (type, payload) to `handler`; returns false if there is none. The payload is a
    /// consistent copy.
    pub fn receive(&mut self, handler: impl FnOnce(i32, &[u8])) -> Result<bool, ReceiveError> {
        // Acquires the record, released by `Transmitter::transmit`.
        let tail = align_to_record(self.buffer.trailer.tail.load(Ordering::Acquire));
        let cursor = self.next;
        let unread = tail.wrapping_sub(cursor);
        if unread < -(self.buffer.capacity() as i64) {
            // A damaged position of the newest message has led the receiver to an invalid position.
            return Err(self.skip_to(tail, cursor, 0));
        }
        if unread <= 0 {
            return Ok(false);
        }
        let record = self.copy_record(cursor);
        if let Some(behind) = self.overwritten(cursor) {
            self.lapped_count += 1;
            self.resume(tail);
            return Err(ReceiveError::Lapped { behind });
        }
        match record {
            Ok(record) => {
                self.next = record.end;
                handler(record.type_id, &self.scratch[..record.length]);
                Ok(true)
            }
            Err(BadRecord { position, length }) => Err(self.skip_to(tail, position, length)),
        }
    }

    #[cold]
    fn skip_to(&mut self, tail: i64, position: i64, length: i32) -> ReceiveError {
        self.next = tail;
        ReceiveError::Corrupt { position, length }
    }

    /// Copies the message at a position, or behind the padding there, into the scratch. It may be overwritten
    /// concurrently: the result, also an error, is valid only if the position was not overwritten.
    fn copy_record(&mut self, cursor: i64) -> Result<Record, BadRecord> {
        let buffer = &self.buffer;
        let mut position = cursor;
        let mut offset = buffer.offset(position);
        let mut length = buffer.length(offset).load(Ordering::Relaxed);
        let mut type_id = buffer.type_id(offset).load(Ordering::Relaxed);
        if type_id == PADDING {
            // It reaches to the end of the buffer, and a message follows at the beginning.
            let to_end = buffer.to_end(offset);
            if usize::try_from(length) != Ok(to_end) {
                return Err(BadRecord { position, length });
            }
            position = position.wrapping_add(to_end as i64);
            offset = buffer.offset(position);
            length = buffer.length(offset).load(Ordering::Relaxed);
            type_id = buffer.type_id(offset).load(Ordering::Relaxed);
        }
        let bad = BadRecord { position, length };
        let record = usize::try_from(length).map_err(|_| bad)?;
        let longest = HEADER_LENGTH + buffer.max_message_length();
        if type_id == PADDING
            || !(HEADER_LENGTH..=longest).contains(&record)
            || record > buffer.to_end(offset)
        {
            return Err(bad);
        }
        let payload = record - HEADER_LENGTH;
        if self.scratch.len() < payload {
            self.scratch.resize(payload, 0); // bounded by the longest message
        }
        buffer.copy_payload(offset, &mut self.scratch[..payload]);
        Ok(Record {
            type_id,
            length: payload,
            end: position.wrapping_add(aligned(record) as i64),
        })
    }

    /// Returns the distance of the transmitter, if it has overwritten the bytes at a position.
    fn overwritten(&self, cursor: i64) -> Option<i64> {
        // If a byte that was copied is newer than the record, this makes the intent that was stored before it visible.
        // The partner is the release fence in `Transmitter::transmit`.
        fence(Ordering::Acquire);
        let intent = self.buffer.trailer.tail_intent.load(Ordering::Acquire);
        let behind = intent.wrapping_sub(cursor);
        // Also if it is inconsistent: an intent behind the cursor is damaged.
        (behind > self.buffer.capacity() as i64).then_some(behind)
    }

    /// Continues with the newest message. If that is the current position, which was overwritten, the positions are
    /// damaged; then continues at the tail.
    #[cold]
    fn resume(&mut self, tail: i64) {
        let latest = align_to_record(self.buffer.trailer.latest.load(Ordering::Acquire));
        self.next = if latest == self.next { tail } else { latest };
    }

    /// Returns a handle that tells, from any thread, whether the transmitter has written something.
    pub fn tail_probe(&self) -> TailProbe {
        TailProbe(self.buffer.clone())
    }

    /// Returns how often the transmitter has overwritten messages that were not received.
    pub fn lapped_count(&self) -> u64 {
        self.lapped_count
    }

    /// Bytes for records.
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }
}

/// Reader of a broadcast buffer's tail: what [`Receiver::receive`] looks at first. It receives nothing.
#[derive(Clone, Debug)]
pub struct TailProbe(Buffer);

impl TailProbe {
    /// Returns the position after the newest message. It changes with each message, and not otherwise.
    #[inline]
    pub fn tail(&self) -> i64 {
        // Acquires the records, released by `Transmitter::transmit`.
        self.0.trailer.tail.load(Ordering::Acquire)
    }
}

/// Aligns a position, which may be damaged, to a record header.
fn align_to_record(position: i64) -> i64 {
    position & !(HEADER_LENGTH as i64 - 1)
}

/// A message in the scratch.
struct Record {
    type_id: i32,
    length: usize,
    end: i64,
}

#[derive(Clone, Copy)]
struct BadRecord {
    position: i64,
    length: i32,
}
