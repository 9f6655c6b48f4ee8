// SPDX-License-Identifier: Apache-2.0
//! The strategy of the `balanced` profile: low latency while traffic flows, low CPU use when it does not.
//!
//! It measures the gaps between work. While most gaps are short enough to be spun through, the flow is *live*, and the
//! strategy spins for that long in a silence. After that, and immediately if the flow is not live, it yields for a
//! while and then parks for a sixteenth of the silence so far: a wait that is late by a few percent of its length, and
//! soon as cheap as the longest park. All of it is counted in time, not in cycles, because a cycle costs 50 ns in one
//! agent and 5 us in another.
//!
//! Spinning does not starve other threads: it yields every 5 us, and on each cycle while other threads use the yielded
//! core (more threads spin than there are cores). With five agents in a row on two cores a message takes a tenth of the
//! time at p99 that it takes with Aeron's back-off, and a five-hundredth of what it takes with agents that spin
//! regardless.

use std::fmt;
use std::hint;
use std::thread;
use std::time::Duration;

use super::IdleStrategy;
use super::args::Shortest;
use crate::clock::{Clock, SystemClock, saturating_nanos};

/// Time between yields during a spin.
const YIELD_INTERVAL_NS: i64 = 5_000;
/// A yield longer than this means that another thread ran meanwhile; otherwise it takes a few hundred nanoseconds.
const CONTENDED_YIELD_NS: i64 = 1_500;
/// A park lasts the silence so far divided by this.
const SILENCE_PER_PARK: i64 = 16;
/// Evidence for a live flow: a gap that spinning covers adds one, a longer one takes four away. So
/// up to one long gap in five still counts as live.
const LONG_GAP_COST: u8 = 4;
const MAX_EVIDENCE: u8 = 16;

/// The four times of an [`Adaptive`] strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveLimits {
    /// Time to spin in a silence of a live flow; a flow is live while most gaps between work are
    /// shorter than this.
    pub spin: Duration,
    /// Time to yield after that.
    pub yielding: Duration,
    /// The shortest park.
    pub min_park: Duration,
    /// The longest park.
    pub max_park: Duration,
}

impl Default for AdaptiveLimits {
    fn default() -> Self {
        Self {
            // A little more than the gap of a flow of 1,000 messages a second.
            spin: Duration::from_micros(1200),
            yielding: Duration::from_micros(50),
            min_park: Duration::from_micros(5),
            max_park: Duration::from_millis(1),
        }
    }
}

impl fmt::Display for AdaptiveLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [spin, yielding, min, max] =
            [self.spin, self.yielding, self.min_park, self.max_park].map(Shortest);
        write!(f, "{spin}-{yielding}-{min}-{max}")
    }
}

/// Spins while traffic flows, then yields, then parks for longer and longer.
#[derive(Clone, Debug)]
pub struct Adaptive<C = SystemClock> {
    clock: C,
    phases: Phases,
}

impl Adaptive {
    /// A strategy that measures gaps with the system's clock.
    pub fn new(limits: AdaptiveLimits) -> Self {
        Self::with_clock(limits, SystemClock::new())
    }
}

impl Default for Adaptive {
    fn default() -> Self {
        Self::new(AdaptiveLimits::default())
    }
}

impl<C: Clock> Adaptive<C> {
    /// A strategy that measures gaps with `clock`.
    pub fn with_clock(limits: AdaptiveLimits, clock: C) -> Self {
        Self {
            clock,
            phases: Phases::new(limits),
        }
    }
}

impl<C: Clock + fmt::Debug> IdleStrategy for Adaptive<C> {
    fn idle(&mut self, work: usize, park: &mut dyn FnMut(Duration)) {
        if work > 0 {
            // A busy agent pays for the clock only at the first work after a silence.
            if self.phases.silent {
                self.phases.silence_ended(self.clock.now().nanos);
            }
            return;
        }
        let now = self.clock.now().nanos;
        match self.phases.next(now) {
            Step::Spin => hint::spin_loop(),
            Step::Yield => {
                thread::yield_now();
                self.phases.yielded(now, self.clock.now().nanos);
            }
            Step::Park(time) => park(time),
        }
    }

    fn reset(&mut self) {
        self.phases.silent = false;
    }
}

/// Action of an idle cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Spin,
    Yield,
    Park(Duration),
}

/// The decisions, apart from the waiting. All times are nanoseconds.
#[derive(Clone, Debug)]
struct Phases {
    spin: i64,
    yielding: i64,
    min_park: i64,
    max_park: i64,
    silent: bool,
    silent_since: i64,
    last_yield: i64,
    contended: bool,
    evidence: u8,
}

impl Phases {
    fn new(limits: AdaptiveLimits) -> Self {
        Self {
            spin: saturating_nanos(limits.spin),
            yielding: saturating_nanos(limits.yielding),
            min_park: saturating_nanos(limits.min_park),
            max_park: saturating_nanos(limits.max_park),
            silent: false,
            silent_since: 0,
            last_yield: 0,
            contended: false,
            evidence: 0,
        }
    }

    fn silence_ended(&mut self, now: i64) {
        self.silent = false;
        self.evidence = if now - self.silent_since <= self.spin {
            (self.evidence + 1).min(MAX_EVIDENCE)
        } else {
            self.evidence.saturating_sub(LONG_GAP_COST)
        };
    }

    fn next(&mut self, now: i64) -> Step {
        if !self.silent {
            self.silent = true;
            self.silent_since = now;
            self.last_yield = now;
        }
        let silence = now - self.silent_since;
        let spin = if self.evidence > 0 { self.spin } else { 0 };
        if silence < spin {
            let yields = self.contended || now - self.last_yield >= YIELD_INTERVAL_NS;
            if yields { Step::Yield } else { Step::Spin }
        } else if silence < spin.saturating_add(self.yielding) {
            Step::Yield
        } else {
            let park = (silence / SILENCE_PER_PARK)
                .max(self.min_park)
                .min(self.max_park);
            Step::Park(Duration::from_nanos(park.unsigned_abs()))
        }
    }

    fn yielded(&mut self, before: i64, after: i64) {
        self.last_yield = after;
        self.contended = after - before > CONTENDED_YIELD_NS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{ManualClock, Now};

    const MICRO: i64 = 1_000;
    const MILLI: i64 = 1_000_000;

    /// A clock that advances by a microsecond per reading, as the duration of a duty cycle.
    #[derive(Debug)]
    struct Ticking(ManualClock);

    impl Clock for Ticking {
        fn now(&mut self) -> Now {
            self.0.advance(Duration::from_micros(1));
            self.0.read()
        }
    }

    /// Runs a flow with work every `gap_us` for `count` gaps; the longest park in each gap.
    fn flow(strategy: &mut Adaptive<Ticking>, gap_us: i64, count: usize) -> Vec<Duration> {
        let clock = strategy.clock.0.clone();
        let longest_park = |_| {
            let mut longest = Duration::ZERO;
            let next_work = clock.read().nanos + gap_us * MICRO;
            while clock.read().nanos < next_work {
                strategy.idle(0, &mut |max| {
                    longest = longest.max(max);
                    clock.advance(max);
                });
            }
            strategy.idle(1, &mut |_| panic!("there was work"));
            longest
        };
        (0..count).map(longest_park).collect()
    }

    fn strategy() -> Adaptive<Ticking> {
        Adaptive::with_clock(AdaptiveLimits::default(), Ticking(ManualClock::default()))
    }

    #[test]
    fn live_flow_is_spun_through() {
        let parks = flow(&mut strategy(), 100, 50);
        // In the first gap the flow is not live yet.
        assert!(parks[1..].iter().all(Duration::is_zero), "{parks:?}");
    }

    #[test]
    fn pause_does_not_end_a_live_flow() {
        let mut strategy = strategy();
        flow(&mut strategy, 100, 50);
        flow(&mut strategy, 5_000_000, 1);
        assert!(flow(&mut strategy, 100, 50).iter().all(Duration::is_zero));
    }

    #[test]
    fn slow_flow_is_not_spun_through() {
        let mut strategy = strategy();
        flow(&mut strategy, 100, 50);
        flow(&mut strategy, 100_000, 5);
        let now = strategy.clock.now().nanos;
        assert_eq!(strategy.phases.next(now), Step::Yield);
        assert!(matches!(
            strategy.phases.next(now + 50 * MICRO),
            Step::Park(_)
        ));
    }

    #[test]
    fn silence_is_parked_through_for_longer_and_longer() {
        let mut phases = Phases::new(AdaptiveLimits::default());
        assert_eq!(phases.next(0), Step::Yield);
        assert_eq!(phases.next(49 * MICRO), Step::Yield);
        assert_eq!(
            phases.next(50 * MICRO),
            Step::Park(Duration::from_micros(5))
        );
        assert_eq!(
            phases.next(160 * MICRO),
            Step::Park(Duration::from_micros(10))
        );
        assert_eq!(
            phases.next(8 * MILLI),
            Step::Park(Duration::from_micros(500))
        );
        assert_eq!(
            phases.next(16 * MILLI),
            Step::Park(Duration::from_millis(1))
        );
        assert_eq!(phases.next(i64::MAX), Step::Park(Duration::from_millis(1)));
    }

    #[test]
    fn idle_thread_wakes_about_a_thousand_times_a_second() {
        let mut strategy = strategy();
        let clock = strategy.clock.0.clone();
        flow(&mut strategy, 100, 50);
        let mut wake_ups = 0;
        while clock.read().nanos < 1000 * MILLI {
            strategy.idle(0, &mut |max| {
                clock.advance(max);
                wake_ups += 1;
            });
        }
        assert!(wake_ups < 1100, "{wake_ups}");
    }

    #[test]
    fn spinning_yields_at_intervals() {
        let mut phases = Phases {
            evidence: 1,
            ..Phases::new(AdaptiveLimits::default())
        };
        assert_eq!(phases.next(0), Step::Spin);
        assert_eq!(phases.next(4 * MICRO), Step::Spin);
        assert_eq!(phases.next(5 * MICRO), Step::Yield);
        phases.yielded(5 * MICRO, 6 * MICRO);
        assert_eq!(phases.next(10 * MICRO), Step::Spin);
        assert_eq!(phases.next(11 * MICRO), Step::Yield);
    }

    #[test]
    fn spinning_yields_on_each_cycle_while_the_core_is_contended() {
        let mut phases = Phases {
            evidence: 1,
            ..Phases::new(AdaptiveLimits::default())
        };
        assert_eq!(phases.next(20 * MICRO), Step::Spin);
        assert_eq!(phases.next(40 * MICRO), Step::Yield);
        phases.yielded(40 * MICRO, 42 * MICRO);
        assert_eq!(phases.next(43 * MICRO), Step::Yield);
        phases.yielded(43 * MICRO, 44 * MICRO);
        assert_eq!(phases.next(45 * MICRO), Step::Spin);
    }

    #[test]
    fn extreme_limits_do_not_overflow() {
        let longest = Duration::MAX;
        let limits = AdaptiveLimits {
            spin: longest,
            yielding: longest,
            min_park: longest,
            max_park: longest,
        };
        let mut phases = Phases {
            evidence: 1,
            ..Phases::new(limits)
        };
        phases.next(0);
        assert_eq!(phases.next(i64::MAX - 1), Step::Yield);
        assert!(matches!(phases.next(i64::MAX), Step::Park(_)));
    }

    #[test]
    fn limits_print_as_they_are_written() {
        assert_eq!(AdaptiveLimits::default().to_string(), "1200us-50us-5us-1ms");
    }
}
