// SPDX-License-Identifier: Apache-2.0
//! Duration of an agent's duty cycles, in counters (docs/spec/shared-memory.md §5.6, counters 26 to 33).

use std::time::Duration;

use crate::clock::saturating_nanos;
use crate::counters::Counter;

/// Measures the duty cycles of one agent: the longest time in one counter, and in another the number of times above a
/// threshold.
///
/// A duty cycle lasts from its start to the start of the next one, as in Aeron: that needs no second clock reading, and
/// includes times in which the system did not schedule the thread. It also includes idle time, except that of long
/// parks ([`Agent::on_long_park`](super::Agent::on_long_park)).
#[doc(alias = "DutyCycleStallTracker")]
#[derive(Clone, Debug)]
pub struct DutyCycleTracker {
    longest: Counter,
    exceeded: Counter,
    threshold: i64,
    cycle_began: Option<i64>,
}

impl DutyCycleTracker {
    /// A tracker that is the only writer of these two counters, which should be zero.
    pub fn new(longest_ns: Counter, exceeded: Counter, threshold: Duration) -> Self {
        let threshold = saturating_nanos(threshold);
        Self {
            longest: longest_ns,
            exceeded,
            threshold,
            cycle_began: None,
        }
    }

    /// Excludes the time until the next duty cycle, for an agent that parks for long.
    #[inline]
    pub fn pause(&mut self) {
        self.cycle_began = None;
    }

    /// Records the start of a duty cycle; to be called first in each.
    #[inline]
    pub fn begin_cycle(&mut self, now_nanos: i64) {
        if let Some(began) = self.cycle_began.replace(now_nanos) {
            self.record(now_nanos.wrapping_sub(began));
        }
    }

    /// Records a duration of work that is not a duty cycle (e.g. a name lookup).
    #[inline]
    pub fn record(&mut self, nanos: i64) {
        self.longest.propose_max(nanos);
        if nanos > self.threshold {
            self.exceeded.add_exclusive(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_and_slow_duty_cycles_are_counted() {
        let (longest, exceeded) = (Counter::detached(), Counter::detached());
        let threshold = Duration::from_nanos(100);
        let mut cycle = DutyCycleTracker::new(longest.clone(), exceeded.clone(), threshold);
        let mut seen = Vec::new();
        for now in [1_000_000, 1_000_040, 1_000_140, 1_000_241, 1_000_250] {
            cycle.begin_cycle(now);
            seen.push((longest.get(), exceeded.get()));
        }
        assert_eq!(seen, [(0, 0), (40, 0), (100, 0), (101, 1), (101, 1)]);
        cycle.pause();
        cycle.begin_cycle(2_000_000);
        assert_eq!((longest.get(), exceeded.get()), (101, 1));
        cycle.record(500);
        assert_eq!((longest.get(), exceeded.get()), (500, 2));
    }
}
