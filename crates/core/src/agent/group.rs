// SPDX-License-Identifier: Apache-2.0
//! Several agents, each on a thread of its own.

use std::io;
use std::sync::Arc;

use super::{Agent, AgentEventHandler, AgentRunner, RunningAgent};
use crate::clock::SystemClock;
use crate::idle::IdleStrategy;

/// Settings of an agent's thread: its idle strategy, name and CPU.
#[derive(Debug)]
pub struct AgentThread {
    idle: Box<dyn IdleStrategy>,
    name: Option<String>,
    cpu: Option<usize>,
}

impl AgentThread {
    /// Creates a thread's configuration with this idle strategy. The thread has the name of the agent's role and is not
    /// pinned.
    pub fn new(idle: impl IdleStrategy + 'static) -> Self {
        Self {
            idle: Box::new(idle),
            name: None,
            cpu: None,
        }
    }

    /// Names the thread. Linux shows the first 15 bytes.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Pins the thread to a CPU, counted from 0. If that fails, the agent runs unpinned and an event says so.
    #[must_use]
    pub fn cpu(mut self, cpu: Option<usize>) -> Self {
        self.cpu = cpu;
        self
    }

    /// Starts an agent on such a thread, with the time of the system. `handler` is called on the thread, and so is `hook`,
    /// before the agent starts.
    ///
    /// # Errors
    /// The operating system cannot create a thread; the agent is dropped.
    pub fn start(
        self,
        agent: impl Agent + 'static,
        handler: AgentEventHandler,
        hook: Option<AgentStartHook>,
    ) -> io::Result<RunningAgent> {
        let mut runner = AgentRunner::new(agent, SystemClock::new(), self.idle, handler)
            .cpu(self.cpu)
            .start_hook(hook);
        if let Some(name) = self.name {
            runner = runner.thread_name(name);
        }
        runner.start()
    }
}

/// Function that is called on the thread of an agent before the agent starts, with its role name.
pub type AgentStartHook = Arc<dyn Fn(&str) + Send + Sync>;

/// Agents that run on a thread each. They start in order of [`start`](Self::start), and are closed one after the other in
/// reverse order, each on its own thread.
///
/// ```
/// use taran_core::agent::{Agent, AgentEnd, AgentEventHandler, AgentGroup, AgentThread};
/// use taran_core::clock::Now;
/// use taran_core::idle::Yield;
///
/// struct Recorder(usize);
///
/// impl Agent for Recorder {
///     fn do_work(&mut self, _now: Now) -> Result<usize, AgentEnd> {
///         self.0 += 1;
///         if self.0 == 3 { Err(AgentEnd::Finished) } else { Ok(1) }
///     }
///
///     fn role_name(&self) -> &str {
///         "recorder"
///     }
/// }
///
/// let mut agents = AgentGroup::new(AgentEventHandler::new(|event| println!("{event}")));
/// agents.start(Recorder(0), AgentThread::new(Yield).name("archive-recorder"))?;
/// agents.close();
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct AgentGroup {
    running: Vec<RunningAgent>,
    handler: AgentEventHandler,
    start_hook: Option<AgentStartHook>,
}

impl AgentGroup {
    /// Creates a group without agents; `handler` receives what happens to them.
    pub fn new(handler: AgentEventHandler) -> Self {
        Self {
            running: Vec::new(),
            handler,
            start_hook: None,
        }
    }

    /// Sets a function that each thread calls before its agent starts.
    #[must_use]
    pub fn start_hook(mut self, hook: Option<AgentStartHook>) -> Self {
        self.start_hook = hook;
        self
    }

    /// Starts an agent on a thread of its own.
    ///
    /// # Errors
    /// The operating system cannot create a thread; the agent is dropped.
    pub fn start(&mut self, agent: impl Agent + 'static, thread: AgentThread) -> io::Result<()> {
        let running = thread.start(agent, self.handler.clone(), self.start_hook.clone())?;
        self.running.push(running);
        Ok(())
    }

    /// Returns the agents in order of their start, including those that have ended.
    pub fn agents(&self) -> &[RunningAgent] {
        &self.running
    }

    /// Closes the agents, the last one first; each is closed and dropped before the next one is stopped. Dropping the group
    /// does the same.
    pub fn close(&mut self) {
        while let Some(agent) = self.running.pop() {
            agent.close();
        }
    }
}

impl Drop for AgentGroup {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for AgentGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentGroup")
            .field("running", &self.running)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::super::testing::{Journal, Probe};
    use super::*;
    use crate::idle::Yield;

    #[test]
    fn agents_close_in_reverse_order_after_the_end_of_the_one_before() {
        let journal = Journal::default();
        let mut group = AgentGroup::new(AgentEventHandler::new(|_| ()));
        for name in ["first", "second", "third"] {
            let thread = AgentThread::new(Yield).name(name);
            group.start(Probe::new(name, &journal), thread).unwrap();
            let started = format!("{name} start");
            while !journal.entries().contains(&started) {
                thread::yield_now();
            }
        }
        let names: Vec<_> = group.agents().iter().map(RunningAgent::role_name).collect();
        assert_eq!(names, ["first", "second", "third"]);
        group.close();
        assert!(group.agents().is_empty());
        let mut entries = journal.entries();
        entries.retain(|entry| entry.ends_with("close"));
        assert_eq!(entries, ["third close", "second close", "first close"]);
    }

    #[test]
    fn hook_runs_on_each_thread() {
        let journal = Journal::default();
        let seen = journal.clone();
        let hook: AgentStartHook = Arc::new(move |role| seen.record(format!("hook of {role}")));
        let handler = AgentEventHandler::new(|_| ());
        let mut group = AgentGroup::new(handler).start_hook(Some(hook));
        for name in ["first", "second"] {
            let thread = AgentThread::new(Yield);
            group.start(Probe::new(name, &journal), thread).unwrap();
        }
        drop(group);
        let entries = journal.entries();
        for name in ["first", "second"] {
            let position = |text: String| entries.iter().position(|entry| *entry == text).unwrap();
            assert!(position(format!("hook of {name}")) < position(format!("{name} start")));
        }
    }
}
