// SPDX-License-Identifier: Apache-2.0
use taran::{Client, Counter, Pending};

use super::PersistentOptions;

/// Value of the join difference while it is not known.
const UNKNOWN: i64 = i64::MIN;
/// Maximum length of a label in bytes.
const LABEL_LENGTH_MAX: usize = 380;

/// Counters of a persistent subscription (`docs/spec/archive.md` §7.3), which tools show.
#[derive(Debug)]
pub(super) struct PersistentCounters {
    counters: [Added; 4],
}

/// A counter that is being added; a driver without room for it is no reason to fail.
#[derive(Debug)]
struct Added {
    pending: Option<Pending<Counter>>,
    counter: Option<Counter>,
    value: i64,
}

/// A counter of a persistent subscription.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which {
    State,
    JoinDifference,
    LiveLeft,
    LiveJoined,
}

impl PersistentCounters {
    pub(super) fn add(client: &Client, options: &PersistentOptions) -> Self {
        let counter = |type_id, name: &str, value| {
            let label = format!(
                "Persistent Subscription {name}: {} {} {} {}",
                options.replay_stream_id,
                options.replay_channel,
                options.live_stream_id,
                options.live_channel
            );
            let mut length = label.len().min(LABEL_LENGTH_MAX);
            while !label.is_char_boundary(length) {
                length -= 1;
            }
            Added {
                pending: client
                    .async_add_counter(type_id, &[], &label[..length])
                    .ok(),
                counter: None,
                value,
            }
        };
        Self {
            counters: [
                counter(114, "State", 0),
                counter(115, "Join Difference", UNKNOWN),
                counter(116, "Live Left Count", 0),
                counter(117, "Live Joined Count", 0),
            ],
        }
    }

    pub(super) fn set(&mut self, which: Which, value: i64) {
        let added = &mut self.counters[which as usize];
        if added.value == value {
            return;
        }
        added.value = value;
        if let Some(counter) = &added.counter {
            counter.set(value);
        }
    }

    pub(super) fn increment(&mut self, which: Which) {
        let value = self.counters[which as usize].value + 1;
        self.set(which, value);
    }

    /// Takes the counters that the driver has allocated meanwhile.
    pub(super) fn poll(&mut self) {
        for added in &mut self.counters {
            if let Some(outcome) = added.pending.as_mut().and_then(Pending::poll) {
                added.pending = None;
                added.counter = outcome.ok();
                if let Some(counter) = &added.counter {
                    counter.set(added.value);
                }
            }
        }
    }
}
