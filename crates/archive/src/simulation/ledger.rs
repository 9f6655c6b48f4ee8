// SPDX-License-Identifier: Apache-2.0
//! Messages that were published, against which recorded and replayed frames are checked.

use std::collections::BTreeMap;

/// Length of the header of a frame in bytes.
const HEADER: i64 = 32;
/// Longest message with its headers, in bytes.
const MESSAGE_SPAN_MAX: i64 = 16 << 10;

/// A message as it was published. Its payload follows from its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) length: usize,
    pub(super) key: u64,
    /// Bytes of its frames in the stream.
    span: i64,
    mtu: i64,
}

/// Returns the byte of a payload at an offset.
fn byte(key: u64, offset: usize) -> u8 {
    let word = key ^ (offset as u64 / 8).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (word ^ word >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed >> (offset % 8 * 8)) as u8
}

impl Message {
    pub(super) fn new(length: usize, key: u64, mtu: usize) -> Self {
        let most = mtu as i64 - HEADER;
        let full = length as i64 / most;
        let rest = length as i64 % most;
        let last = if rest > 0 || full == 0 {
            (HEADER + rest + 31) / 32 * 32
        } else {
            0
        };
        Self {
            length,
            key,
            span: full * mtu as i64 + last,
            mtu: mtu as i64,
        }
    }

    pub(super) fn span(&self) -> i64 {
        self.span
    }

    pub(super) fn payload(&self) -> Vec<u8> {
        (0..self.length)
            .map(|offset| byte(self.key, offset))
            .collect()
    }

    /// Returns true if the frame at this distance from the start of the message has this payload.
    fn has_frame(&self, distance: i64, payload: &[u8]) -> bool {
        if distance % self.mtu != 0 || distance >= self.span {
            return false;
        }
        let most = (self.mtu - HEADER) as usize;
        let begin = (distance / self.mtu) as usize * most;
        let length = (self.length - begin).min(most);
        payload.len() == length
            && payload
                .iter()
                .enumerate()
                .all(|(at, found)| *found == byte(self.key, begin + at))
    }
}

/// Messages of a stream by position and session, because a stream that extends a recording begins where the recording ended
/// and not where its publisher did.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    messages: BTreeMap<(i64, i32), Message>,
}

impl Ledger {
    pub(super) fn add(&mut self, start: i64, session_id: i32, message: Message) {
        self.messages.insert((start, session_id), message);
    }

    /// Checks a frame that was recorded or replayed.
    pub(super) fn check(&self, position: i64, payload: &[u8]) -> Result<(), String> {
        let from = (position - MESSAGE_SPAN_MAX, i32::MIN);
        let mut candidates = self.messages.range(from..=(position, i32::MAX));
        if candidates.any(|((start, _), message)| message.has_frame(position - start, payload)) {
            return Ok(());
        }
        Err(format!(
            "the frame at position {position} with {} bytes is none that was published",
            payload.len()
        ))
    }

    /// Returns the positions at which messages begin.
    pub(super) fn starts(&self) -> impl Iterator<Item = i64> {
        self.messages.keys().map(|(start, _)| *start)
    }
}

mod tests {
    use super::*;

    #[test]
    fn ledger_accepts_each_fragment_and_nothing_else() {
        let mut ledger = Ledger::default();
        let message = Message::new(3_000, 7, 1_408);
        assert_eq!(message.span(), 2 * 1_408 + 288);
        ledger.add(64, 1, message);
        let payload = message.payload();
        let frames = [&payload[..1_376], &payload[1_376..2_752], &payload[2_752..]];
        for (at, frame) in frames.into_iter().enumerate() {
            let position = 64 + at as i64 * 1_408;
            assert!(ledger.check(position, frame).is_ok());
            assert!(ledger.check(position + 32, frame).is_err());
            let mut damaged = frame.to_vec();
            damaged[100] ^= 1;
            assert!(ledger.check(position, &damaged).is_err());
            assert!(ledger.check(position, &frame[..frame.len() - 1]).is_err());
        }
    }
}
