// SPDX-License-Identifier: Apache-2.0
//! Due times of messages at a fixed rate, independent of how earlier messages were handled.

use std::time::Duration;

/// A schedule of batches: `batch` messages are due at the same time, so that the average rate is as requested.
///
/// A message that is sent late keeps its due time, and its round trip is measured from there: a stall counts against
/// every message that it delays (no coordinated omission).
#[derive(Debug, Clone)]
pub struct Schedule {
    start_ns: i64,
    batch: u64,
    /// Messages per second. Due times are computed by multiplication, so that no rounding error accumulates.
    rate: u64,
}

impl Schedule {
    /// Creates a schedule of `rate` messages per second from `start_ns` on, in batches of `batch`. Both are at least 1.
    #[must_use]
    pub fn new(start_ns: i64, rate: u64, batch: u64) -> Schedule {
        Schedule {
            start_ns,
            batch: batch.max(1),
            rate: rate.max(1),
        }
    }

    /// Returns the time, in nanoseconds, at which message `index` (from 0) is due.
    #[must_use]
    #[inline]
    pub fn due_ns(&self, index: u64) -> i64 {
        let batch_start = index - index % self.batch;
        let offset = u128::from(batch_start) * 1_000_000_000 / u128::from(self.rate);
        self.start_ns
            .saturating_add(i64::try_from(offset).unwrap_or(i64::MAX))
    }

    /// Returns the number of messages that are due within `duration`: a whole number of batches.
    #[must_use]
    pub fn messages_in(&self, duration: Duration) -> u64 {
        let exact = duration.as_nanos() * u128::from(self.rate) / 1_000_000_000;
        let exact = u64::try_from(exact).unwrap_or(u64::MAX);
        exact.div_ceil(self.batch).saturating_mul(self.batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_ns_spaces_messages_evenly() {
        let schedule = Schedule::new(1_000, 100_000, 1);
        assert_eq!(schedule.due_ns(0), 1_000);
        assert_eq!(schedule.due_ns(1), 11_000);
        assert_eq!(schedule.due_ns(100_000), 1_000_001_000);
    }

    #[test]
    fn due_ns_of_a_batch_is_equal_and_the_rate_is_met() {
        let schedule = Schedule::new(0, 1_000, 10);
        assert!((0..10).all(|index| schedule.due_ns(index) == 0));
        assert!((10..20).all(|index| schedule.due_ns(index) == 10_000_000));
        assert_eq!(schedule.messages_in(Duration::from_secs(3)), 3_000);
    }

    #[test]
    fn due_ns_at_odd_rate_does_not_drift() {
        let schedule = Schedule::new(0, 300_007, 1);
        assert_eq!(schedule.due_ns(300_007 * 3_600), 3_600_000_000_000);
    }

    #[test]
    fn messages_in_rounds_up_to_whole_batches() {
        let schedule = Schedule::new(0, 100, 7);
        assert_eq!(schedule.messages_in(Duration::from_secs(1)), 105);
    }
}
