//! Agents: things that work in turns, and the ways to run them.
//!
//! An [`Agent`] is a state machine with a duty cycle. It does not know what runs it: a thread of its
//! own ([`AgentRunner`]), a thread shared with other agents ([`CompositeAgent`]), or its user, turn by
//! turn ([`AgentInvoker`], the simulator).
//!
//! Contract: `on_start` once, then `do_work` any number of times, then `on_close` once, all by the
//! same thread. After a panic only `on_close` is called.

mod composite;
mod duty_cycle;
mod invoker;
mod runner;
mod waker;

use std::thread;
use std::time::Duration;

pub use composite::CompositeAgent;
pub use duty_cycle::DutyCycleTracker;
pub use invoker::AgentInvoker;
pub use runner::{AgentFailure, AgentRunner, RunningAgent};
pub use waker::{AgentWaker, ThreadWaker};

use crate::clock::Now;

/// Something with a duty cycle.
pub trait Agent: Send {
    /// One turn: does what there is to do, up to a limit, without waiting; returns how much it was.
    /// Zero means that the thread may idle.
    fn do_work(&mut self, now: Now) -> usize;

    /// What to call it in thread names and messages, e.g. `sender`.
    fn role_name(&self) -> &str;

    /// Called once before the first turn, by the thread that will take the turns.
    fn on_start(&mut self) {}

    /// Called once after the last turn, by the same thread.
    fn on_close(&mut self) {}

    /// Waits until there may be work, for at most `max`. The default ends early for a [`ThreadWaker`] of
    /// the thread; an agent with sockets waits for them instead.
    fn park(&mut self, max: Duration) {
        thread::park_timeout(max);
    }

    /// How many times longer than others it may park now: more than once only if it has nothing to
    /// look after, and its park is ended by what brings it work. A wake-up costs 3 to 40 us of CPU,
    /// which is all that an idle agent costs.
    fn park_multiplier(&self) -> u32 {
        1
    }

    /// Called before a park that patience makes longer: until the next turn nothing is late.
    fn on_long_park(&mut self) {}
}

impl<A: Agent + ?Sized> Agent for Box<A> {
    fn do_work(&mut self, now: Now) -> usize {
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
}

#[cfg(test)]
mod testing {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// What happened to agents, in order.
    #[derive(Clone, Debug, Default)]
    pub(super) struct Journal(Arc<Mutex<Vec<String>>>);

    impl Journal {
        pub(super) fn note(&self, entry: String) {
            self.0.lock().unwrap().push(entry);
        }

        pub(super) fn entries(&self) -> Vec<String> {
            self.0.lock().unwrap().clone()
        }
    }

    /// An agent that writes down what happens to it, and panics when told.
    pub(super) struct Probe {
        pub(super) name: &'static str,
        pub(super) journal: Journal,
        pub(super) work: usize,
        pub(super) panic_in: Option<&'static str>,
    }

    impl Probe {
        pub(super) fn new(name: &'static str, journal: &Journal) -> Self {
            Self {
                name,
                journal: journal.clone(),
                work: 0,
                panic_in: None,
            }
        }

        fn note(&self, what: &'static str) {
            self.journal.note(format!("{} {what}", self.name));
            assert_ne!(self.panic_in, Some(what), "told to");
        }
    }

    impl Agent for Probe {
        fn do_work(&mut self, _now: Now) -> usize {
            self.note("work");
            self.work
        }

        fn role_name(&self) -> &str {
            self.name
        }

        fn on_start(&mut self) {
            self.note("start");
        }

        fn on_close(&mut self) {
            self.note("close");
        }

        fn park(&mut self, _max: Duration) {
            self.note("park");
        }
    }
}
