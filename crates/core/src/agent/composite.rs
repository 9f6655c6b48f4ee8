// SPDX-License-Identifier: Apache-2.0
//! Several agents on one thread.

use std::panic::{self, AssertUnwindSafe};
use std::thread;
use std::time::Duration;

use super::{Agent, AgentEnd};
use crate::clock::Now;

/// Several agents as one agent; each duty cycle runs those of all. They start in order and close in reverse order. The
/// end of one ends all; a [`HostingAgent`](super::HostingAgent) runs agents that end each for itself.
pub struct CompositeAgent {
    agents: Vec<Box<dyn Agent>>,
    role_name: String,
    parks: Option<usize>,
}

impl CompositeAgent {
    /// Combines the agents, in the order of their duty cycles. The role name is `[first, second]`.
    pub fn new(agents: Vec<Box<dyn Agent>>) -> Self {
        let names: Vec<_> = agents.iter().map(Agent::role_name).collect();
        let role_name = format!("[{}]", names.join(", "));
        Self {
            agents,
            role_name,
            parks: None,
        }
    }

    /// Parks through the agent of that index, whose work should end a park early; otherwise the thread parks. An index
    /// out of range is ignored.
    #[must_use]
    pub fn park_through(mut self, index: usize) -> Self {
        self.parks = (index < self.agents.len()).then_some(index);
        self
    }
}

impl Agent for CompositeAgent {
    fn do_work(&mut self, now: Now) -> Result<usize, AgentEnd> {
        let mut work = 0;
        for agent in &mut self.agents {
            work += agent.do_work(now)?;
        }
        Ok(work)
    }

    fn role_name(&self) -> &str {
        &self.role_name
    }

    fn on_start(&mut self) {
        for agent in &mut self.agents {
            agent.on_start();
        }
    }

    /// Closes all agents, even if one panics; then resumes the first panic.
    fn on_close(&mut self) {
        let mut first_panic = None;
        for agent in self.agents.iter_mut().rev() {
            // An agent that panicked is not used again, and the others do not share its state.
            let closed = panic::catch_unwind(AssertUnwindSafe(|| agent.on_close()));
            if let Err(payload) = closed {
                first_panic.get_or_insert(payload);
            }
        }
        if let Some(payload) = first_panic {
            panic::resume_unwind(payload);
        }
    }

    fn park(&mut self, max: Duration) {
        match self.parks {
            Some(index) => self.agents[index].park(max),
            None => thread::park_timeout(max),
        }
    }

    /// The smallest multiplier, so that no agent is delayed.
    fn park_multiplier(&self) -> u32 {
        let each = self.agents.iter().map(Agent::park_multiplier);
        each.min().unwrap_or(1)
    }

    fn on_long_park(&mut self) {
        for agent in &mut self.agents {
            agent.on_long_park();
        }
    }

    /// The first deadline, if each agent knows its own.
    fn next_deadline_ns(&self) -> Option<i64> {
        let mut deadlines = self.agents.iter().map(Agent::next_deadline_ns);
        deadlines.try_fold(i64::MAX, |next, deadline| Some(next.min(deadline?)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Journal, Probe};
    use super::*;

    fn composite(journal: &Journal, close_panics: bool) -> CompositeAgent {
        let first = Probe {
            work: 2,
            ..Probe::new("first", journal)
        };
        let panic_in = close_panics.then_some("close");
        let second = Probe {
            work: 3,
            panic_in,
            ..Probe::new("second", journal)
        };
        CompositeAgent::new(vec![Box::new(first), Box::new(second)])
    }

    #[test]
    fn agents_run_in_order_and_close_in_reverse_order() {
        let journal = Journal::default();
        let mut both = composite(&journal, false).park_through(1);
        assert_eq!(both.role_name(), "[first, second]");
        both.on_start();
        assert_eq!(both.do_work(Now::default()).unwrap(), 5);
        both.park(Duration::from_millis(1));
        both.on_close();
        let expected = [
            "first start",
            "second start",
            "first work",
            "second work",
            "second park",
            "second close",
            "first close",
        ];
        assert_eq!(journal.entries(), expected);
    }

    #[test]
    fn end_of_one_agent_ends_the_duty_cycle_of_all() {
        let journal = Journal::default();
        let ending = Probe {
            end: Some(AgentEnd::Finished),
            ..Probe::new("first", &journal)
        };
        let second = Probe::new("second", &journal);
        let mut both = CompositeAgent::new(vec![Box::new(ending), Box::new(second)]);
        let end = both.do_work(Now::default()).unwrap_err();
        assert!(matches!(end, AgentEnd::Finished));
        assert_eq!(journal.entries(), ["first work"]);
    }

    #[test]
    fn park_multiplier_is_the_smallest_of_all_agents() {
        struct Idler(u32);
        impl Agent for Idler {
            fn do_work(&mut self, _now: Now) -> Result<usize, AgentEnd> {
                Ok(0)
            }

            fn role_name(&self) -> &str {
                "idler"
            }

            fn park_multiplier(&self) -> u32 {
                self.0
            }
        }
        let park_multiplier = |each: [u32; 2]| {
            let agents =
                each.map(|park_multiplier| Box::new(Idler(park_multiplier)) as Box<dyn Agent>);
            CompositeAgent::new(agents.into()).park_multiplier()
        };
        assert_eq!((park_multiplier([16, 1]), park_multiplier([16, 8])), (1, 8));
    }

    #[test]
    fn panic_of_one_close_does_not_stop_the_others() {
        let journal = Journal::default();
        let mut both = composite(&journal, true);
        let closed = panic::catch_unwind(AssertUnwindSafe(|| both.on_close()));
        assert!(closed.is_err());
        assert_eq!(journal.entries(), ["second close", "first close"]);
    }
}
