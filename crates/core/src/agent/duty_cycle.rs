//! How long an agent's turns take, seen from outside (docs/spec/shared-memory.md §5.6, counters 26 to 33).

use std::time::Duration;

use crate::clock::saturating_nanos;
use crate::counters::Counter;

/// Watches one agent: the longest time so far in one counter, and in another how often a time went
/// beyond a threshold.
///
/// A turn is counted from its start to the start of the next one, as Aeron does: that costs no
/// second clock reading, and it shows a thread that the system did not let run. It contains the time
/// idled, which is a millisecond at most where it matters.
#[derive(Clone, Debug)]
pub struct DutyCycleTracker {
    longest: Counter,
    exceeded: Counter,
    threshold: i64,
    cycle_began: Option<i64>,
}

impl DutyCycleTracker {
    /// A watch that reports to these two counters, of which it is the only writer. They should be
    /// zero.
    pub fn new(longest_ns: Counter, exceeded: Counter, threshold: Duration) -> Self {
        let threshold = saturating_nanos(threshold);
        Self {
            longest: longest_ns,
            exceeded,
            threshold,
            cycle_began: None,
        }
    }

    /// What is between this turn and the next does not count: whoever has nothing to look after may park for long.
    #[inline]
    pub fn pause(&mut self) {
        self.cycle_began = None;
    }

    /// A turn begins; to be called first in each.
    #[inline]
    pub fn begin_cycle(&mut self, now_nanos: i64) {
        if let Some(began) = self.cycle_began.replace(now_nanos) {
            self.record(now_nanos.wrapping_sub(began));
        }
    }

    /// Something took that long, for work that is not done in turns (e.g. one look-up of a name).
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
    fn longest_turn_and_slow_turns_are_counted() {
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
