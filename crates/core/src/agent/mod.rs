// SPDX-License-Identifier: Apache-2.0
//! Agents and the ways to run them.
//!
//! An [`Agent`] is a state machine with a duty cycle. It is independent of what runs it: its own
//! thread ([`AgentRunner`], [`AgentGroup`]), a thread shared with other agents ([`CompositeAgent`], and [`HostingAgent`] for
//! agents that come and go), or the caller's loop ([`AgentInvoker`], the simulator).
//!
//! Contract: `on_start` once, then `do_work` any number of times, then `on_close` once, all on the
//! same thread. After a panic, or after `do_work` has returned an [`AgentEnd`], only `on_close` is called.

mod composite;
mod duty_cycle;
mod end;
mod group;
mod guard;
mod host;
mod invoker;
mod runner;
mod waker;

use std::thread;
use std::time::Duration;

pub use composite::CompositeAgent;
pub use duty_cycle::DutyCycleTracker;
pub use end::{AgentEnd, AgentEvent, AgentEventHandler};
pub use group::{AgentGroup, AgentStartHook, AgentThread};
pub use host::{AgentHost, HostEnded, HostedId, HostingAgent};
pub use invoker::AgentInvoker;
pub use runner::{AgentRunner, RunningAgent};
pub use waker::{AgentWaker, ThreadWaker, WaitRegistration, register_wait};

use crate::clock::Now;

/// Something with a duty cycle.
pub trait Agent: Send {
    /// Runs one duty cycle: does the available work, up to a limit, without waiting; returns the amount. Zero means
    /// that the thread may idle.
    ///
    /// # Errors
    /// Not an error of the call: the agent ends by itself, for this reason. What runs it reports the reason and closes
    /// it.
    fn do_work(&mut self, now: Now) -> Result<usize, AgentEnd>;

    /// Returns the name for threads and messages, e.g. `sender`.
    fn role_name(&self) -> &str;

    /// Called once before the first duty cycle, on the thread that runs the duty cycles.
    fn on_start(&mut self) {}

    /// Called once after the last duty cycle, on the same thread.
    fn on_close(&mut self) {}

    /// Waits until there may be work, for at most `max`. The default parks the thread, so that it ends early when a
    /// [`ThreadWaker`] of the thread is used; an agent with sockets waits for them instead, and registers that wait
    /// ([`register_wait`]).
    fn park(&mut self, max: Duration) {
        thread::park_timeout(max);
    }

    /// Returns the factor by which parks may be longer than the idle strategy's. Above 1 only if the agent has no work
    /// sources to poll, and everything that brings work ends its park. A wake-up costs 3 to 40 us of CPU, which is the
    /// whole cost of an idle agent.
    fn park_multiplier(&self) -> u32 {
        1
    }

    /// Called before a park that [`park_multiplier`](Self::park_multiplier) prolongs. The time until the next duty
    /// cycle does not count as a delay.
    fn on_long_park(&mut self) {}

    /// Returns the next time, on the clock of the duty cycles, at which a duty cycle has an effect if nothing from outside
    /// changes before: no datagram, command, event or shared memory. `i64::MAX` stands for never, a time in the past for at
    /// once. `None`, the default, stands for unknown. Called after a duty cycle; a time that is too early costs a duty cycle
    /// without effect, one that is too late delays work.
    fn next_deadline_ns(&self) -> Option<i64> {
        None
    }
}

impl<A: Agent + ?Sized> Agent for Box<A> {
    fn do_work(&mut self, now: Now) -> Result<usize, AgentEnd> {
        (**self).do_work(now)
    }

    fn role_name(&self) -> &str {
        (**self).role_name()
    }

    fn on_start(&mut self) {
        (**self).on_start();
    }

    fn on_close(&mut self) {
        (**self).on_close();
    }

    fn park(&mut self, max: Duration) {
        (**self).park(max);
    }

    fn park_multiplier(&self) -> u32 {
        (**self).park_multiplier()
    }

    fn on_long_park(&mut self) {
        (**self).on_long_park();
    }

    fn next_deadline_ns(&self) -> Option<i64> {
        (**self).next_deadline_ns()
    }
}

#[cfg(test)]
mod testing {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Calls to agents, in order.
    #[derive(Clone, Debug, Default)]
    pub(super) struct Journal(Arc<Mutex<Vec<String>>>);

    impl Journal {
        pub(super) fn record(&self, entry: String) {
            self.0.lock().unwrap().push(entry);
        }

        pub(super) fn entries(&self) -> Vec<String> {
            self.0.lock().unwrap().clone()
        }
    }

    /// An agent that records its calls, and panics on request.
    pub(super) struct Probe {
        pub(super) name: &'static str,
        pub(super) journal: Journal,
        pub(super) work: usize,
        pub(super) panic_in: Option<&'static str>,
        /// Taken by the next duty cycle.
        pub(super) end: Option<AgentEnd>,
    }

    impl Probe {
        pub(super) fn new(name: &'static str, journal: &Journal) -> Self {
            Self {
                name,
                journal: journal.clone(),
                work: 0,
                panic_in: None,
                end: None,
            }
        }

        fn record(&self, what: &'static str) {
            self.journal.record(format!("{} {what}", self.name));
            assert_ne!(self.panic_in, Some(what), "requested panic");
        }
    }

    impl Agent for Probe {
        fn do_work(&mut self, _now: Now) -> Result<usize, AgentEnd> {
            self.record("work");
            self.end.take().map_or(Ok(self.work), Err)
        }

        fn role_name(&self) -> &str {
            self.name
        }

        fn on_start(&mut self) {
            self.record("start");
        }

        fn on_close(&mut self) {
            self.record("close");
        }

        fn park(&mut self, _max: Duration) {
            self.record("park");
        }
    }
}
