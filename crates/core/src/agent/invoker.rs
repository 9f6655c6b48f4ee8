//! An agent whose turns are taken by its user's own loop.

use super::Agent;
use crate::clock::Clock;

/// Runs an agent turn by turn on the caller's thread. A panic of the agent reaches the caller; the
/// agent takes no turn after that.
pub struct AgentInvoker<A: Agent, C: Clock> {
    agent: A,
    clock: C,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    Running,
    /// In a call to the agent; still so afterwards if that panicked.
    Calling,
    Closed,
}

impl<A: Agent, C: Clock> AgentInvoker<A, C> {
    /// An agent that has not started yet.
    pub fn new(agent: A, clock: C) -> Self {
        Self {
            agent,
            clock,
            state: State::New,
        }
    }

    /// Starts the agent, unless it has started already.
    pub fn start(&mut self) {
        if self.state == State::New {
            self.state = State::Calling;
            self.agent.on_start();
            self.state = State::Running;
        }
    }

    /// One turn; starts the agent if need be. After the close, zero.
    pub fn invoke(&mut self) -> usize {
        self.start();
        if self.state != State::Running {
            return 0;
        }
        let now = self.clock.now();
        self.state = State::Calling;
        let work = self.agent.do_work(now);
        self.state = State::Running;
        work
    }

    /// Closes the agent; repeated calls do nothing. Dropping does the same.
    pub fn close(&mut self) {
        let started = self.state != State::New;
        if self.state != State::Closed {
            self.state = State::Closed;
            if started {
                self.agent.on_close();
            }
        }
    }

    /// True after [`Self::close`].
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// The agent, for its other methods.
    pub fn agent(&self) -> &A {
        &self.agent
    }

    /// The agent, for its other methods.
    pub fn agent_mut(&mut self) -> &mut A {
        &mut self.agent
    }
}

impl<A: Agent, C: Clock> Drop for AgentInvoker<A, C> {
    fn drop(&mut self) {
        // In an unwinding thread a second panic would end the process: a half-done agent that lies
        // on the way of the first one is left alone.
        if !(self.state == State::Calling && std::thread::panicking()) {
            self.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{self, AssertUnwindSafe};

    use super::super::testing::{Journal, Probe};
    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn first_turn_starts_and_drop_closes() {
        let journal = Journal::default();
        let probe = Probe {
            work: 4,
            ..Probe::new("agent", &journal)
        };
        let mut invoker = AgentInvoker::new(probe, ManualClock::default());
        assert_eq!(invoker.invoke(), 4);
        assert_eq!(invoker.invoke(), 4);
        drop(invoker);
        assert_eq!(
            journal.entries(),
            ["agent start", "agent work", "agent work", "agent close"]
        );
    }

    #[test]
    fn closed_agent_does_no_more_work() {
        let journal = Journal::default();
        let mut invoker = AgentInvoker::new(Probe::new("agent", &journal), ManualClock::default());
        invoker.start();
        invoker.close();
        invoker.close();
        assert_eq!(invoker.invoke(), 0);
        assert!(invoker.is_closed());
        drop(invoker);
        assert_eq!(journal.entries(), ["agent start", "agent close"]);
    }

    #[test]
    fn agent_that_never_started_is_not_closed() {
        let journal = Journal::default();
        drop(AgentInvoker::new(
            Probe::new("agent", &journal),
            ManualClock::default(),
        ));
        assert!(journal.entries().is_empty());
    }

    #[test]
    fn panic_reaches_the_caller_and_ends_the_turns() {
        let journal = Journal::default();
        let probe = Probe {
            panic_in: Some("work"),
            ..Probe::new("agent", &journal)
        };
        let mut invoker = AgentInvoker::new(probe, ManualClock::default());
        assert!(panic::catch_unwind(AssertUnwindSafe(|| invoker.invoke())).is_err());
        assert_eq!(invoker.invoke(), 0);
        invoker.close();
        assert_eq!(
            journal.entries(),
            ["agent start", "agent work", "agent close"]
        );
    }
}
