// SPDX-License-Identifier: Apache-2.0
//! An agent that runs in the caller's loop.

use super::{Agent, AgentEnd, AgentStartHook};
use crate::clock::Clock;

/// Runs the duty cycles of an agent on the caller's thread. A panic of the agent propagates to the caller; the agent
/// runs no duty cycle after that, nor after it has ended by itself.
pub struct AgentInvoker<A: Agent, C: Clock> {
    agent: A,
    clock: C,
    state: State,
    start_hook: Option<AgentStartHook>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    Running,
    /// In a call to the agent; remains so if the call panicked.
    Calling,
    Ended,
    Closed,
}

impl<A: Agent, C: Clock> AgentInvoker<A, C> {
    /// An agent that has not started yet.
    pub fn new(agent: A, clock: C) -> Self {
        Self {
            agent,
            clock,
            state: State::New,
            start_hook: None,
        }
    }

    /// Sets a function that is called before the agent starts, on the same thread, with the agent's role name.
    #[must_use]
    pub fn start_hook(mut self, hook: Option<AgentStartHook>) -> Self {
        self.start_hook = hook;
        self
    }

    /// Starts the agent, unless it has started already.
    #[inline]
    pub fn start(&mut self) {
        if !self.is_started() {
            self.start_new();
        }
    }

    #[cold]
    fn start_new(&mut self) {
        self.state = State::Calling;
        if let Some(hook) = self.start_hook.take() {
            hook(self.agent.role_name());
        }
        self.agent.on_start();
        self.state = State::Running;
    }

    /// Returns true once the start of the agent has begun.
    #[inline]
    pub fn is_started(&self) -> bool {
        self.state != State::New
    }

    /// Runs one duty cycle; starts the agent if necessary. Returns zero after the agent's end and after the close.
    ///
    /// # Errors
    /// The agent has ended by itself in this duty cycle. It is still to be closed.
    pub fn invoke(&mut self) -> Result<usize, AgentEnd> {
        self.start();
        if self.state != State::Running {
            return Ok(0);
        }
        let now = self.clock.now();
        self.state = State::Calling;
        let work = self.agent.do_work(now);
        self.state = if work.is_ok() {
            State::Running
        } else {
            State::Ended
        };
        work
    }

    /// Closes the agent; repeated calls do nothing. Dropping does the same.
    pub fn close(&mut self) {
        let started = self.is_started();
        if self.state != State::Closed {
            self.state = State::Closed;
            if started {
                self.agent.on_close();
            }
        }
    }

    /// Returns true after [`Self::close`].
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Returns the agent.
    pub fn agent(&self) -> &A {
        &self.agent
    }

    /// Returns the agent.
    pub fn agent_mut(&mut self) -> &mut A {
        &mut self.agent
    }
}

impl<A: Agent, C: Clock> Drop for AgentInvoker<A, C> {
    fn drop(&mut self) {
        // A second panic in an unwinding thread would abort the process, so an agent that is dropped during its own
        // panic is not closed.
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
    fn first_invoke_starts_and_drop_closes() {
        let journal = Journal::default();
        let probe = Probe {
            work: 4,
            ..Probe::new("agent", &journal)
        };
        let mut invoker = AgentInvoker::new(probe, ManualClock::default());
        assert_eq!(invoker.invoke().unwrap(), 4);
        assert_eq!(invoker.invoke().unwrap(), 4);
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
        assert_eq!(invoker.invoke().unwrap(), 0);
        assert!(invoker.is_closed());
        drop(invoker);
        assert_eq!(journal.entries(), ["agent start", "agent close"]);
    }

    #[test]
    fn ended_agent_runs_no_more_and_is_closed() {
        let journal = Journal::default();
        let probe = Probe {
            end: Some(AgentEnd::Finished),
            ..Probe::new("agent", &journal)
        };
        let mut invoker = AgentInvoker::new(probe, ManualClock::default());
        assert!(matches!(invoker.invoke(), Err(AgentEnd::Finished)));
        assert_eq!(invoker.invoke().unwrap(), 0);
        drop(invoker);
        assert_eq!(
            journal.entries(),
            ["agent start", "agent work", "agent close"]
        );
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
    fn panic_propagates_and_ends_the_duty_cycles() {
        let journal = Journal::default();
        let probe = Probe {
            panic_in: Some("work"),
            ..Probe::new("agent", &journal)
        };
        let mut invoker = AgentInvoker::new(probe, ManualClock::default());
        assert!(panic::catch_unwind(AssertUnwindSafe(|| invoker.invoke())).is_err());
        assert_eq!(invoker.invoke().unwrap(), 0);
        invoker.close();
        assert_eq!(
            journal.entries(),
            ["agent start", "agent work", "agent close"]
        );
    }
}
