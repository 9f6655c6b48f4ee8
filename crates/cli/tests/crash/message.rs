// SPDX-License-Identifier: Apache-2.0
//! Messages that identify their producer and sequence number, with contents derived from both.

use std::collections::HashMap;

/// Length of producer id, sequence number and length.
pub(crate) const HEADER_LENGTH: usize = 24;

/// A sender with one publication. Its messages are numbered from 0.
#[derive(Debug)]
pub(crate) struct Producer {
    id: u64,
    next: u64,
}

impl Producer {
    pub(crate) fn new(id: u64) -> Producer {
        Producer { id, next: 0 }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Returns the number of messages sent.
    pub(crate) fn sent(&self) -> u64 {
        self.next
    }

    /// Writes the next message over all of `bytes`, which has at least [`HEADER_LENGTH`] bytes.
    pub(crate) fn write(&self, bytes: &mut [u8]) {
        let length = bytes.len() as u64;
        bytes[..8].copy_from_slice(&self.id.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.next.to_le_bytes());
        bytes[16..HEADER_LENGTH].copy_from_slice(&length.to_le_bytes());
        for (index, byte) in bytes.iter_mut().enumerate().skip(HEADER_LENGTH) {
            *byte = expected(self.id, self.next, index);
        }
    }

    /// Records that the message was accepted.
    pub(crate) fn accepted(&mut self) {
        self.next += 1;
    }
}

fn expected(producer: u64, sequence: u64, index: usize) -> u8 {
    let mixed = (producer ^ sequence.rotate_left(17) ^ (index as u64).rotate_left(40))
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

/// Messages received by one reader of a stream: every byte is compared, and each message of a producer is received once
/// and in order.
#[derive(Debug, Default)]
pub(crate) struct Received {
    next: HashMap<u64, u64>,
    /// Total number of messages.
    pub(crate) messages: u64,
    /// True if the reader may miss messages: it joins late, or the stream does not wait for it.
    has_gaps: bool,
}

impl Received {
    /// For a reader that joins before the first message.
    pub(crate) fn from_the_beginning() -> Received {
        Received::default()
    }

    /// For a reader that joins an active stream or may miss messages.
    pub(crate) fn with_gaps() -> Received {
        Received {
            has_gaps: true,
            ..Received::default()
        }
    }

    /// Checks a message; the error describes the first difference.
    pub(crate) fn take(&mut self, message: &[u8]) -> Result<(), String> {
        if message.len() < HEADER_LENGTH {
            return Err(format!("a message of {} bytes", message.len()));
        }
        let field = |at: usize| u64::from_le_bytes(message[at..at + 8].try_into().unwrap());
        let (producer, sequence, length) = (field(0), field(8), field(16));
        if length != message.len() as u64 {
            return Err(format!(
                "message {sequence} of {producer:x} says {length} bytes and has {}",
                message.len()
            ));
        }
        let wrong = (HEADER_LENGTH..message.len())
            .find(|&index| message[index] != expected(producer, sequence, index));
        if let Some(index) = wrong {
            return Err(format!(
                "byte {index} of message {sequence} of {producer:x} is {}",
                message[index]
            ));
        }
        let next = self.next.entry(producer).or_insert(0);
        if sequence < *next || (sequence > *next && !self.has_gaps) {
            return Err(format!(
                "message {sequence} of {producer:x} in place of {next}"
            ));
        }
        *next = sequence + 1;
        self.messages += 1;
        Ok(())
    }

    /// Returns the number of messages of one producer.
    pub(crate) fn of(&self, producer: u64) -> u64 {
        self.next.get(&producer).copied().unwrap_or(0)
    }
}

/// The checker detects damage, gaps and duplicates.
#[test]
fn checker_detects_damage_gaps_and_duplicates() {
    let mut producer = Producer::new(7);
    let mut message = [0; 100];
    producer.write(&mut message);
    let mut damaged = message;
    damaged[99] ^= 1;
    let mut received = Received::from_the_beginning();
    assert!(received.take(&damaged).unwrap_err().contains("byte 99"));
    assert!(
        received
            .take(&message[..99])
            .unwrap_err()
            .contains("says 100")
    );
    received.take(&message).unwrap();
    assert!(
        received
            .take(&message)
            .unwrap_err()
            .contains("in place of 1")
    );
    producer.accepted();
    producer.accepted();
    producer.write(&mut message);
    assert!(received.take(&message).unwrap_err().contains("message 2"));
    assert_eq!((received.of(7), producer.sent()), (1, 2));
}
