// SPDX-License-Identifier: Apache-2.0
//! Contents of messages, by the same rule as `Pattern.java`, so that either side can detect a wrong byte.

/// Length of the producer and sequence number before a message, if several producers share a publication.
pub(crate) const TAG_LENGTH: usize = 12;

/// Fills `message` as message `sequence` of `producer`.
pub(crate) fn fill(message: &mut [u8], producer: i32, sequence: u64, tagged: bool) {
    let mut from = 0;
    if tagged {
        message[..4].copy_from_slice(&producer.to_le_bytes());
        message[4..TAG_LENGTH].copy_from_slice(&sequence.to_le_bytes());
        from = TAG_LENGTH;
    }
    for (index, byte) in message.iter_mut().enumerate().skip(from) {
        *byte = expected(producer, sequence, index);
    }
}

fn expected(producer: i32, sequence: u64, index: usize) -> u8 {
    (sequence as u8)
        .wrapping_mul(31)
        .wrapping_add((index as u8).wrapping_mul(7))
        .wrapping_add((producer as u8).wrapping_mul(13))
}

/// Checks messages, in order per producer. Panics at the first difference.
pub(crate) struct Check {
    lengths: Vec<usize>,
    next: Vec<u64>,
    tagged: bool,
    pub(crate) received: u64,
}

impl Check {
    /// Creates a checker for `producers` producers, each starting with message `from`.
    pub(crate) fn new(lengths: &[usize], producers: usize, from: u64) -> Check {
        Check {
            lengths: lengths.to_vec(),
            next: vec![from; producers],
            tagged: producers > 1,
            received: 0,
        }
    }

    pub(crate) fn take(&mut self, message: &[u8]) {
        let (producer, sequence) = if self.tagged {
            let producer = i32::from_le_bytes(message[..4].try_into().unwrap());
            let sequence = u64::from_le_bytes(message[4..TAG_LENGTH].try_into().unwrap());
            (producer, sequence)
        } else {
            (0, self.next[0])
        };
        let next = &mut self.next[usize::try_from(producer).unwrap()];
        assert_eq!(sequence, *next, "producer {producer}");
        let length = self.lengths[usize::try_from(sequence).unwrap() % self.lengths.len()];
        assert_eq!(message.len(), length, "length of message {sequence}");
        let from = if self.tagged { TAG_LENGTH } else { 0 };
        for (index, byte) in message.iter().enumerate().skip(from) {
            assert_eq!(
                *byte,
                expected(producer, sequence, index),
                "byte {index} of message {sequence} of producer {producer}"
            );
        }
        *next += 1;
        self.received += 1;
    }
}
