// SPDX-License-Identifier: Apache-2.0
//! Lengths and contents of messages.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// Distribution of message lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lengths {
    /// Less than 100 bytes.
    Small,
    /// At most one frame.
    Framed,
    /// Any valid length, with boundary lengths more often.
    #[default]
    Any,
    /// A fixed length.
    Fixed(usize),
}

impl Lengths {
    /// Returns the length of the next message, for frames of at most `max_payload` bytes and messages of at most
    /// `max_message`.
    pub(crate) fn next(
        self,
        random: &mut fastrand::Rng,
        max_payload: usize,
        max_message: usize,
    ) -> usize {
        match self {
            Self::Small => random.usize(0..100),
            Self::Framed => random.usize(0..=max_payload),
            Self::Fixed(length) => length,
            Self::Any => match random.u32(0..16) {
                0 => 0,
                1..6 => random.usize(0..64),
                6..12 => random.usize(0..=max_payload),
                12 => (max_payload - 2 + random.usize(0..5)).min(max_message),
                13 => (2 * max_payload - 2 + random.usize(0..5)).min(max_message),
                14 => random.usize(0..=max_message),
                _ => max_message - random.usize(0..2),
            },
        }
    }
}

/// Length of the table of random bytes from which messages are copied; generating each message would be slower.
const TABLE_LENGTH: usize = 64 * 1024;

fn table() -> &'static [u8] {
    static TABLE: OnceLock<Vec<u8>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = vec![0; TABLE_LENGTH];
        fastrand::Rng::with_seed(1).fill(&mut table);
        table
    })
}

/// Fills `content` with the message at this index of the stream with this tag.
pub(crate) fn fill(tag: u64, index: usize, length: usize, content: &mut Vec<u8>) {
    let word = (tag << 40 ^ index as u64 ^ 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut from = (word >> 32) as usize % TABLE_LENGTH;
    content.clear();
    while content.len() < length {
        let until = TABLE_LENGTH.min(from + length - content.len());
        content.extend_from_slice(&table()[from..until]);
        from = 0;
    }
    // Messages that start at the same table offset differ in their first 8 bytes.
    for (byte, other) in content.iter_mut().zip(word.to_le_bytes()) {
        *byte ^= other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_differ_by_stream_and_index() {
        let made = |tag, index| {
            let mut content = Vec::new();
            fill(tag, index, 19, &mut content);
            content
        };
        assert_eq!(made(1, 2).len(), 19);
        assert_eq!(made(1, 2), made(1, 2));
        assert_ne!(made(1, 2), made(1, 3));
        assert_ne!(made(1, 2), made(2, 2));
    }

    #[test]
    fn lengths_stay_within_what_is_possible() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..10_000 {
            assert!(Lengths::Any.next(&mut random, 1376, 8192) <= 8192);
            assert!(Lengths::Any.next(&mut random, 8160, 8192) <= 8192);
        }
    }
}
