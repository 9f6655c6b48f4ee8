// SPDX-License-Identifier: Apache-2.0
//! The check, without a lock, that a duty cycle has nothing to do.

use std::sync::atomic::{AtomicI64, Ordering};

use taran_core::broadcast::TailProbe;

/// Tells whether a duty cycle of the conductor would have nothing to do, so that the caller need not take its lock. Most
/// cycles of a client in invoker mode are such: the application invokes it between polls.
///
/// Contract: a duty cycle, which holds the lock, calls [`begin`](Self::begin), then processes responses, and calls
/// [`finish`](Self::finish) if it has processed all. Any thread calls [`is_idle`](Self::is_idle) at any time. A value that
/// is out of date costs a duty cycle without work, or leaves its work to the next call.
#[derive(Debug)]
pub(crate) struct IdleCycle {
    responses: TailProbe,
    /// Tail of the responses up to which all are processed.
    processed: AtomicI64,
    /// Time of the first duty that does not result from a response.
    next_duty_ns: AtomicI64,
    /// Time of the last cycle, `i64::MIN` if there was none.
    last_cycle_ns: AtomicI64,
}

/// Tail of the responses at the beginning of a duty cycle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CycleBegin(i64);

impl IdleCycle {
    pub(crate) fn new(responses: TailProbe) -> Self {
        Self {
            responses,
            processed: AtomicI64::new(0),
            next_duty_ns: AtomicI64::new(i64::MIN),
            last_cycle_ns: AtomicI64::new(i64::MIN),
        }
    }

    /// Returns true if no response has come and no duty is due; that counts as a duty cycle.
    pub(crate) fn is_idle(&self, now_ns: i64) -> bool {
        // Relaxed: the values are compared, and guard nothing.
        let is_idle = now_ns < self.next_duty_ns.load(Ordering::Relaxed)
            && self.responses.tail() == self.processed.load(Ordering::Relaxed);
        if is_idle {
            self.last_cycle_ns.store(now_ns, Ordering::Relaxed);
        }
        is_idle
    }

    /// Returns the time from which on a duty cycle has something to do; in the past if a response has come.
    pub(crate) fn next_deadline_ns(&self) -> i64 {
        // Relaxed: as in `is_idle`.
        if self.responses.tail() == self.processed.load(Ordering::Relaxed) {
            self.next_duty_ns.load(Ordering::Relaxed)
        } else {
            i64::MIN
        }
    }

    /// Begins a duty cycle. Returns also the time since the last one.
    pub(crate) fn begin(&self, now_ns: i64) -> (CycleBegin, i64) {
        let last = self.last_cycle_ns.load(Ordering::Relaxed);
        self.last_cycle_ns.store(now_ns, Ordering::Relaxed);
        let interval = match last {
            i64::MIN => 0,
            last => now_ns.saturating_sub(last),
        };
        // Read before the responses: one that comes meanwhile makes the next cycle not idle.
        (CycleBegin(self.responses.tail()), interval)
    }

    /// Ends a duty cycle that has processed all responses that it began with. The next duty is due at `next_duty_ns`.
    pub(crate) fn finish(&self, begin: CycleBegin, next_duty_ns: i64) {
        let CycleBegin(tail) = begin;
        self.processed.store(tail, Ordering::Relaxed);
        self.next_duty_ns.store(next_duty_ns, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use taran_core::broadcast::{Receiver, TRAILER_LENGTH, Transmitter};
    use taran_core::memory::Region;

    use super::*;

    fn fixture() -> (IdleCycle, Transmitter) {
        let region = Region::anonymous(1024 + TRAILER_LENGTH).unwrap();
        let transmitter = Transmitter::open(&region).unwrap();
        let receiver = Receiver::open(&region).unwrap();
        (IdleCycle::new(receiver.tail_probe()), transmitter)
    }

    fn run(cycle: &IdleCycle, now_ns: i64, next_duty_ns: i64) -> i64 {
        let (begin, interval) = cycle.begin(now_ns);
        cycle.finish(begin, next_duty_ns);
        interval
    }

    #[test]
    fn cycle_is_idle_until_its_next_duty() {
        let (cycle, _) = fixture();
        assert!(!cycle.is_idle(0), "nothing is known yet");
        run(&cycle, 0, 100);
        assert!(cycle.is_idle(1) && cycle.is_idle(99));
        assert!(!cycle.is_idle(100));
    }

    #[test]
    fn response_ends_idle_cycles_until_all_are_processed() {
        let (cycle, mut transmitter) = fixture();
        run(&cycle, 0, 100);
        transmitter.transmit(1, b"first").unwrap();
        assert!(!cycle.is_idle(1));
        let (begin, _) = cycle.begin(1);
        // Comes after the cycle has read its responses.
        transmitter.transmit(1, b"second").unwrap();
        cycle.finish(begin, 100);
        assert!(!cycle.is_idle(2));
        let _unfinished = cycle.begin(2);
        assert!(!cycle.is_idle(3), "that cycle has not processed all");
        run(&cycle, 3, 100);
        assert!(cycle.is_idle(4));
    }

    #[test]
    fn interval_counts_from_the_last_cycle_idle_or_not() {
        let (cycle, _) = fixture();
        assert_eq!(run(&cycle, 1_000, 2_000), 0, "there was none before");
        assert!(cycle.is_idle(1_900));
        assert_eq!(run(&cycle, 2_500, 3_000), 600);
        assert_eq!(run(&cycle, 2_600, 3_000), 100);
    }
}
