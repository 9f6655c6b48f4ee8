// SPDX-License-Identifier: Apache-2.0
//! Progress of positions from sample to sample.
//!
//! Contract: [`History::observe`] takes the positions of a sample, whose time is not before that of the one before, and
//! returns the progress of each; [`History::end_sample`] follows and forgets what the sample did not contain.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

/// Progress of the positions with keys of type `K`.
#[derive(Debug)]
pub(super) struct History<K> {
    entries: HashMap<K, Entry>,
}

#[derive(Debug)]
struct Entry {
    position: i64,
    sampled: Duration,
    moved: Duration,
    rate: Option<f64>,
}

/// Progress of a position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Progress {
    /// Time for which it has not moved, as far as it was observed; `None` if it is moving, or was sampled only once.
    pub(super) still: Option<Duration>,
    /// Bytes per second when it moved last, if it has moved.
    pub(super) rate: Option<f64>,
}

impl<K: Eq + Hash> History<K> {
    pub(super) fn new() -> Self {
        Self {
            entries: HashMap::new(),
        }
    }

    /// Takes a position of the sample at `now`.
    pub(super) fn observe(&mut self, key: K, position: i64, now: Duration) -> Progress {
        let Some(entry) = self.entries.get_mut(&key) else {
            let entry = Entry {
                position,
                sampled: now,
                moved: now,
                rate: None,
            };
            self.entries.insert(key, entry);
            return Progress {
                still: None,
                rate: None,
            };
        };
        let elapsed = now.saturating_sub(entry.sampled);
        if position != entry.position {
            let moved = position.saturating_sub(entry.position).max(0);
            if !elapsed.is_zero() {
                entry.rate = Some(moved as f64 / elapsed.as_secs_f64());
            }
            entry.moved = now;
        }
        (entry.position, entry.sampled) = (position, now);
        let still = now.saturating_sub(entry.moved);
        Progress {
            still: (!still.is_zero()).then_some(still),
            rate: entry.rate,
        }
    }

    /// Forgets positions that the sample at `now` did not contain.
    pub(super) fn end_sample(&mut self, now: Duration) {
        self.entries.retain(|_, entry| entry.sampled == now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn observe_moving_then_still_position_keeps_the_rate() {
        let mut history = History::new();
        let unknown = Progress {
            still: None,
            rate: None,
        };
        assert_eq!(history.observe("a", 100, SECOND), unknown);
        let moving = Progress {
            still: None,
            rate: Some(500.0),
        };
        assert_eq!(history.observe("a", 1_100, 3 * SECOND), moving);
        let still = Progress {
            still: Some(4 * SECOND),
            rate: Some(500.0),
        };
        assert_eq!(history.observe("a", 1_100, 7 * SECOND), still);
        // Set back, for example by another stream with the same ids.
        assert_eq!(history.observe("a", 0, 8 * SECOND).rate, Some(0.0));
    }

    #[test]
    fn end_sample_forgets_what_was_not_observed() {
        let mut history = History::new();
        history.observe("a", 1, SECOND);
        history.observe("b", 1, SECOND);
        history.end_sample(SECOND);
        history.observe("a", 1, 2 * SECOND);
        history.end_sample(2 * SECOND);
        assert_eq!(history.observe("b", 1, 3 * SECOND).still, None);
        assert_eq!(history.observe("a", 1, 3 * SECOND).still, Some(2 * SECOND));
    }
}
