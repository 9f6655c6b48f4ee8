// SPDX-License-Identifier: Apache-2.0
//! Unknown keys whose datagrams have ended a wait of the conductor lately.

use taran_secure::derive::KeyId;

use super::keeper_sender::SealClock;

/// Keys that are remembered, and that end a wait, until the clock advances: it does so up to three times in a second.
const KEYS_MAX: usize = 16;

/// Tells which datagrams under unknown keys are worth a wake-up: the first under each key, and few in a flood of ever other
/// keys, so that one port does not use up the wake-ups that handshakes need.
#[derive(Debug)]
pub(super) struct UnknownKeys {
    keys: [KeyId; KEYS_MAX],
    count: usize,
    /// Time of the agents when the first of them was seen.
    since: u64,
}

impl Default for UnknownKeys {
    fn default() -> Self {
        Self {
            keys: [KeyId::NONE; KEYS_MAX],
            count: 0,
            since: 0,
        }
    }
}

impl UnknownKeys {
    /// Returns true if a datagram under this key is the first one since the clock advanced, and not too many were.
    pub(super) fn is_first(&mut self, id: KeyId, clock: SealClock) -> bool {
        if clock.nanos() != self.since {
            self.since = clock.nanos();
            self.count = 0;
        }
        if self.count == KEYS_MAX || self.keys[..self.count].contains(&id) {
            return false;
        }
        self.keys[self.count] = id;
        self.count += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_first_is_true_once_for_each_key_until_the_clock_advances() {
        let mut keys = UnknownKeys::default();
        for second in 1..=3 {
            let clock = SealClock::at(second);
            let mut first = |number: u8| keys.is_first(KeyId([number; 8]), clock);
            assert_eq!(
                [1, 2, 1, 2, 1].map(&mut first),
                [true, true, false, false, false]
            );
        }
    }

    #[test]
    fn is_first_in_a_flood_of_other_keys_is_true_a_bounded_number_of_times() {
        let mut keys = UnknownKeys::default();
        for second in 1..=2 {
            let clock = SealClock::at(second);
            let firsts = (0..10_000_u64).filter(|n| keys.is_first(KeyId(n.to_le_bytes()), clock));
            assert_eq!(firsts.count(), KEYS_MAX);
        }
    }
}
