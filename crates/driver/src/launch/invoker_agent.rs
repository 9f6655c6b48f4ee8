// SPDX-License-Identifier: Apache-2.0
//! Agents of a driver in INVOKER mode.
//!
//! A user that invokes the driver does so between polls of its own streams, so each cycle adds to its latency. A large
//! part of that cost is the conductor, which is not on the data path. After a cycle of the conductor the next ones are
//! therefore skipped for a few microseconds, unless there is a request for it.

use std::panic::{self, AssertUnwindSafe};
use std::time::Duration;

use taran_core::agent::{Agent, AgentEnd};
use taran_core::clock::Now;

use crate::conductor::Conductor;
use crate::poll_backoff::PollBackoff;

/// Time for which the conductor is skipped: about a dozen idle cycles, which makes its share negligible. The delay is small
/// compared to what it affects: moving the limit of a publisher after half a term, or freeing terms of a log.
const SKIP_NS: i64 = 10_000;

/// Agent that may be skipped.
pub(crate) trait SkippableAgent: Agent {
    /// Returns true if the agent has no pending request and waits for nothing.
    fn can_skip(&self) -> bool;
}

impl SkippableAgent for Conductor {
    fn can_skip(&self) -> bool {
        Conductor::is_idle(self)
    }
}

/// Composite of the conductor and of the sender and receiver.
pub(crate) struct InvokerAgent<C, N> {
    conductor: C,
    network: N,
    role_name: String,
    /// Time since the last cycle of the conductor.
    backoff: PollBackoff,
    /// The conductor was skipped in the last cycle.
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
    fn do_work(&mut self, now: Now) -> Result<usize, AgentEnd> {
        self.conductor_skipped = self.backoff.is_active(now.nanos) && self.conductor.can_skip();
        if self.conductor_skipped {
            return self.network.do_work(now);
        }
        let work = self.conductor.do_work(now)?;
        // Also after work: what is left to do is a request, or can wait.
        self.backoff.on_poll(now.nanos, false);
        Ok(work + self.network.do_work(now)?)
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
        // A panicked agent is not used again, and the conductor does not share its state.
        let closed = panic::catch_unwind(AssertUnwindSafe(|| self.network.on_close()));
        self.conductor.on_close();
        if let Err(payload) = closed {
            panic::resume_unwind(payload);
        }
    }

    /// Returns early when a datagram arrives. If the conductor was skipped, returns at once so that the next cycle
    /// includes it.
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

    /// The first deadline of both, if each knows its own. If the conductor was skipped: at once, so that the next cycle
    /// includes it.
    fn next_deadline_ns(&self) -> Option<i64> {
        let conductor_ns = self.conductor.next_deadline_ns()?;
        let network_ns = self.network.next_deadline_ns()?;
        Some(if self.conductor_skipped {
            i64::MIN
        } else {
            conductor_ns.min(network_ns)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP_NS: i64 = SKIP_NS / 10;

    /// Counts its cycles and parks.
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
        fn do_work(&mut self, _now: Now) -> Result<usize, AgentEnd> {
            self.cycles += 1;
            Ok(self.work)
        }

        fn role_name(&self) -> &'static str {
            "fake"
        }

        fn on_close(&mut self) {
            self.is_closed = true;
            assert!(!self.panics, "panics on request");
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

    /// The agents and the current time.
    struct InvokerFixture(InvokerAgent<FakeAgent, FakeAgent>, i64);

    impl InvokerFixture {
        /// Returns a fixture after one cycle without work.
        fn idle() -> Self {
            let mut fixture = Self(
                InvokerAgent::new(FakeAgent::default(), FakeAgent::default()),
                7,
            );
            assert_eq!(
                fixture.conductor_cycles(1, 0),
                1,
                "the first cycle includes the conductor"
            );
            fixture
        }

        /// Runs `count` cycles, `nanos` apart. Returns in how many of them the conductor was not skipped.
        fn conductor_cycles(&mut self, count: usize, nanos: i64) -> usize {
            let (conductor, network) = (self.0.conductor.cycles, self.0.network.cycles);
            for _ in 0..count {
                self.1 += nanos;
                let now = Now {
                    nanos: self.1,
                    epoch_millis: 0,
                };
                self.0.do_work(now).unwrap();
            }
            assert_eq!(self.0.network.cycles - network, count);
            self.0.conductor.cycles - conductor
        }
    }

    #[test]
    fn idle_conductor_runs_every_tenth_cycle() {
        let mut fixture = InvokerFixture::idle();
        assert_eq!(fixture.conductor_cycles(9, STEP_NS), 0);
        assert_eq!(fixture.conductor_cycles(91, STEP_NS), 10);
    }

    #[test]
    fn conductor_with_request_is_not_skipped() {
        let mut fixture = InvokerFixture::idle();
        fixture.conductor_cycles(1, STEP_NS);
        fixture.0.conductor.is_needed = true;
        assert_eq!(fixture.conductor_cycles(3, STEP_NS), 3);
    }

    #[test]
    fn work_of_either_agent_does_not_end_skipping() {
        let mut fixture = InvokerFixture::idle();
        (fixture.0.conductor.work, fixture.0.network.work) = (1, 1);
        assert_eq!(fixture.conductor_cycles(9, STEP_NS), 0);
        assert_eq!(fixture.conductor_cycles(1, STEP_NS), 1, "after the time");
        assert_eq!(fixture.conductor_cycles(9, STEP_NS), 0);
    }

    #[test]
    fn conductor_is_not_skipped_in_infrequent_cycles() {
        let mut fixture = InvokerFixture::idle();
        for nanos in [SKIP_NS, SKIP_NS + 1, i64::from(u32::MAX)] {
            assert_eq!(fixture.conductor_cycles(5, nanos), 5);
        }
        assert_eq!(
            fixture.conductor_cycles(5, 0),
            5,
            "with a clock that does not advance"
        );
    }

    #[test]
    fn park_after_skipped_conductor_returns_at_once() {
        let mut fixture = InvokerFixture::idle();
        fixture.0.park(Duration::ZERO);
        assert_eq!(fixture.0.network.parks, 1);
        assert_eq!(fixture.conductor_cycles(1, STEP_NS), 0);
        fixture.0.park(Duration::ZERO);
        assert_eq!(fixture.0.network.parks, 1, "the conductor was skipped");
        assert_eq!(fixture.conductor_cycles(1, STEP_NS), 1);
        fixture.0.park(Duration::ZERO);
        assert_eq!(fixture.0.network.parks, 2);
    }

    #[test]
    fn on_close_closes_both_agents_if_one_panics() {
        let mut agents = InvokerAgent::new(FakeAgent::default(), FakeAgent::default());
        agents.network.panics = true;
        let closed = panic::catch_unwind(AssertUnwindSafe(|| agents.on_close()));
        assert!(closed.is_err());
        assert!(agents.network.is_closed && agents.conductor.is_closed);
    }
}
