//! The agents of a driver whose user runs them.
//!
//! Whoever runs a driver turn by turn does so between two looks at his own streams: what a turn costs that finds nothing is
//! what he waits. Much of it is the conductor's, which is on nobody's road. So where a whole turn has found nothing, the
//! conductor looks around only every few microseconds, unless somebody wants something of it.

use std::panic::{self, AssertUnwindSafe};
use std::time::Duration;

use taran_core::agent::Agent;
use taran_core::clock::Now;

use crate::conductor::Conductor;
use crate::poll_backoff::PollBackoff;

/// Where there is nothing to do the conductor looks around once in such a time. By then a dozen idle turns have gone by, so
/// that its share is next to nothing; and what it does later by so much (moving the limit of a publisher that has used up
/// half a term, freeing room in a log) is nothing beside what has to happen before it.
const SKIP_NS: i64 = 4_000;

/// An agent that need not always have a turn.
pub(crate) trait SkippableAgent: Agent {
    /// Nobody has asked it for anything, and it awaits nothing.
    fn can_skip(&self) -> bool;
}

impl SkippableAgent for Conductor {
    fn can_skip(&self) -> bool {
        Conductor::is_idle(self)
    }
}

/// The conductor, and sender and receiver behind it, as one agent.
pub(crate) struct InvokerAgent<C, N> {
    conductor: C,
    network: N,
    role_name: String,
    /// Behind turns of the conductor since which nobody has found anything to do.
    backoff: PollBackoff,
    /// It had none in the last turn.
    conductor_skipped: bool,
}

impl<C: SkippableAgent, N: Agent> InvokerAgent<C, N> {
    pub(crate) fn new(conductor: C, network: N) -> Self {
        let role_name = format!("[{}, {}]", conductor.role_name(), network.role_name());
        Self {
            conductor,
            network,
            role_name,
            backoff: PollBackoff::new(SKIP_NS),
            conductor_skipped: false,
        }
    }
}

impl<C: SkippableAgent, N: Agent> Agent for InvokerAgent<C, N> {
    fn do_work(&mut self, now: Now) -> usize {
        self.conductor_skipped = self.backoff.is_active(now.nanos) && self.conductor.can_skip();
        if self.conductor_skipped {
            let work = self.network.do_work(now);
            if work > 0 {
                // What sender and receiver did may be of interest to the conductor.
                self.backoff.reset();
            }
            return work;
        }
        let work = self.conductor.do_work(now) + self.network.do_work(now);
        self.backoff.on_poll(now.nanos, work > 0);
        work
    }

    fn role_name(&self) -> &str {
        &self.role_name
    }

    fn on_start(&mut self) {
        self.conductor.on_start();
        self.network.on_start();
    }

    /// Closes both, even if the first one panics.
    fn on_close(&mut self) {
        // Whoever panicked is not used again, and the conductor does not share its state.
        let closed = panic::catch_unwind(AssertUnwindSafe(|| self.network.on_close()));
        self.conductor.on_close();
        if let Err(payload) = closed {
            panic::resume_unwind(payload);
        }
    }

    /// What arrives ends it. Nobody goes to sleep before the conductor has looked around: the next turn does.
    fn park(&mut self, max: Duration) {
        if self.conductor_skipped {
            self.backoff.reset();
        } else {
            self.network.park(max);
        }
    }

    fn park_multiplier(&self) -> u32 {
        self.conductor
            .park_multiplier()
            .min(self.network.park_multiplier())
    }

    fn on_long_park(&mut self) {
        self.conductor.on_long_park();
        self.network.on_long_park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP_NS: i64 = SKIP_NS / 10;

    /// Counts its turns and parks.
    #[derive(Default)]
    struct FakeAgent {
        cycles: usize,
        parks: usize,
        work: usize,
        is_needed: bool,
        is_closed: bool,
        panics: bool,
    }

    impl Agent for FakeAgent {
        fn do_work(&mut self, _now: Now) -> usize {
            self.cycles += 1;
            self.work
        }

        fn role_name(&self) -> &'static str {
            "fake"
        }

        fn on_close(&mut self) {
            self.is_closed = true;
            assert!(!self.panics, "told to");
        }

        fn park(&mut self, _max: Duration) {
            self.parks += 1;
        }
    }

    impl SkippableAgent for FakeAgent {
        fn can_skip(&self) -> bool {
            !self.is_needed
        }
    }

    /// The agents, and the time.
    struct InvokerFixture(InvokerAgent<FakeAgent, FakeAgent>, i64);

    impl InvokerFixture {
        /// One turn has found nothing.
        fn idle() -> Self {
            let mut fixture = Self(
                InvokerAgent::new(FakeAgent::default(), FakeAgent::default()),
                7,
            );
            assert_eq!(
                fixture.conductor_cycles(1, 0),
                1,
                "the first turn is everybody's"
            );
            fixture
        }

        /// How many of so many cycles, each so much later, the conductor had.
        fn conductor_cycles(&mut self, count: usize, nanos: i64) -> usize {
            let (conductor, network) = (self.0.conductor.cycles, self.0.network.cycles);
            for _ in 0..count {
                self.1 += nanos;
                self.0.do_work(Now {
                    nanos: self.1,
                    epoch_millis: 0,
                });
            }
            assert_eq!(self.0.network.cycles - network, count);
            self.0.conductor.cycles - conductor
        }
    }

    #[test]
    fn who_has_nothing_to_do_looks_around_now_and_then() {
        let mut fixture = InvokerFixture::idle();
        assert_eq!(fixture.conductor_cycles(9, STEP_NS), 0);
        assert_eq!(fixture.conductor_cycles(91, STEP_NS), 10);
    }

    #[test]
    fn who_is_asked_for_something_is_there_at_once() {
        let mut fixture = InvokerFixture::idle();
        fixture.conductor_cycles(1, STEP_NS);
        fixture.0.conductor.is_needed = true;
        assert_eq!(fixture.conductor_cycles(3, STEP_NS), 3);
    }

    #[test]
    fn work_of_one_is_seen_by_the_other() {
        let mut fixture = InvokerFixture::idle();
        fixture.0.network.work = 1;
        assert_eq!(fixture.conductor_cycles(1, STEP_NS), 0);
        assert_eq!(fixture.conductor_cycles(3, STEP_NS), 3);
        fixture.0.network.work = 0;
        assert_eq!(
            fixture.conductor_cycles(1, STEP_NS),
            1,
            "after the last of it"
        );
        fixture.0.conductor.work = 1;
        assert_eq!(fixture.conductor_cycles(1, SKIP_NS), 1);
        assert_eq!(fixture.conductor_cycles(3, STEP_NS), 3);
    }

    #[test]
    fn turns_that_are_far_apart_are_whole() {
        let mut fixture = InvokerFixture::idle();
        for nanos in [SKIP_NS, SKIP_NS + 1, i64::from(u32::MAX)] {
            assert_eq!(fixture.conductor_cycles(5, nanos), 5);
        }
        assert_eq!(
            fixture.conductor_cycles(5, 0),
            5,
            "a clock that stands still"
        );
    }

    #[test]
    fn nobody_sleeps_before_all_have_looked() {
        let mut fixture = InvokerFixture::idle();
        fixture.0.park(Duration::ZERO);
        assert_eq!(fixture.0.network.parks, 1);
        assert_eq!(fixture.conductor_cycles(1, STEP_NS), 0);
        fixture.0.park(Duration::ZERO);
        assert_eq!(fixture.0.network.parks, 1, "the conductor was left out");
        assert_eq!(fixture.conductor_cycles(1, STEP_NS), 1);
        fixture.0.park(Duration::ZERO);
        assert_eq!(fixture.0.network.parks, 2);
    }

    #[test]
    fn all_are_closed_even_if_one_panics() {
        let mut agents = InvokerAgent::new(FakeAgent::default(), FakeAgent::default());
        agents.network.panics = true;
        let closed = panic::catch_unwind(AssertUnwindSafe(|| agents.on_close()));
        assert!(closed.is_err());
        assert!(agents.network.is_closed && agents.conductor.is_closed);
    }
}
