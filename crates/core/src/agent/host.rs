// SPDX-License-Identifier: Apache-2.0
//! Agents that run on the thread of another agent.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use thiserror::Error;

use super::{Agent, AgentEnd, AgentEvent, AgentEventHandler, AgentWaker, guard};
use crate::clock::Now;

/// An agent whose thread also runs *hosted agents*, which are added and closed while it runs.
///
/// Contract: each duty cycle first executes the requests of [`AgentHost`], then runs the host agent, then the hosted
/// agents in order of their addition. Hosted agents start in the duty cycle that adopts them, and close in reverse order,
/// before the host agent. The end or panic of a hosted agent closes only that one, and is reported to the handler. A
/// panic or end of the host agent closes all. A duty cycle allocates nothing unless an agent is added or ends.
pub struct HostingAgent<A> {
    agent: A,
    hosted: Vec<Hosted>,
    shared: Arc<Shared>,
    handler: AgentEventHandler,
}

/// Adds agents to a [`HostingAgent`] and closes them, from any thread. Clones refer to the same host.
#[derive(Clone)]
pub struct AgentHost(Arc<Shared>);

/// Identifies a hosted agent within its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostedId(u64);

/// The agent was not added, because the host has ended.
#[derive(Error)]
#[error("the thread that was to run agent `{agent}` has ended")]
#[non_exhaustive]
pub struct HostEnded {
    /// The role name of the agent.
    pub agent: String,
}

crate::debug_is_display!(HostEnded);

struct Hosted {
    id: HostedId,
    agent: Box<dyn Agent>,
}

#[derive(Default)]
struct Shared {
    /// True if there may be requests. Written under the lock.
    has_requests: AtomicBool,
    state: Mutex<State>,
    /// Signalled when an agent has closed and when the host ends.
    changed: Condvar,
    waker: AgentWaker,
}

#[derive(Default)]
struct State {
    next_id: u64,
    requests: Vec<Request>,
    /// Agents that were added and have not closed yet.
    open: Vec<HostedId>,
    has_ended: bool,
    thread: Option<ThreadId>,
}

enum Request {
    Add(Hosted),
    Close(HostedId),
}

impl<A: Agent> HostingAgent<A> {
    /// Creates a host without hosted agents; `handler` receives what happens to them.
    pub fn new(agent: A, handler: AgentEventHandler) -> Self {
        Self {
            agent,
            hosted: Vec::new(),
            shared: Arc::default(),
            handler,
        }
    }

    /// Returns a handle that adds and closes agents.
    pub fn host(&self) -> AgentHost {
        AgentHost(Arc::clone(&self.shared))
    }

    /// Returns the host agent.
    pub fn agent_mut(&mut self) -> &mut A {
        &mut self.agent
    }

    /// Closes one hosted agent, on the calling thread: for a host that is invoked, where [`AgentHost::close`] would wait for
    /// the caller itself. Does nothing if the agent is closed.
    pub fn close_hosted(&mut self, id: HostedId) {
        self.execute_requests();
        if let Some(index) = self.hosted.iter().position(|hosted| hosted.id == id) {
            self.close_at(index);
        }
    }

    #[cold]
    fn execute_requests(&mut self) -> usize {
        let requests = {
            let mut state = self.shared.lock();
            // Relaxed: the lock orders it.
            self.shared.has_requests.store(false, Ordering::Relaxed);
            std::mem::take(&mut state.requests)
        };
        let count = requests.len();
        for request in requests {
            match request {
                Request::Add(hosted) => self.start(hosted),
                Request::Close(id) => {
                    if let Some(index) = self.hosted.iter().position(|hosted| hosted.id == id) {
                        self.close_at(index);
                    }
                }
            }
        }
        count
    }

    fn start(&mut self, mut hosted: Hosted) {
        let started = guard::call(|| hosted.agent.on_start());
        self.hosted.push(hosted);
        if let Err(panic) = started {
            self.panicked_at(self.hosted.len() - 1, "on_start", &*panic);
        }
    }

    fn run_hosted(&mut self, now: Now) -> usize {
        let (mut work, mut index) = (0, 0);
        while let Some(hosted) = self.hosted.get_mut(index) {
            match guard::call(|| hosted.agent.do_work(now)) {
                Ok(Ok(done)) => {
                    work += done;
                    index += 1;
                }
                Ok(Err(end)) => self.ended_at(index, end),
                Err(panic) => self.panicked_at(index, "do_work", &*panic),
            }
        }
        work
    }

    #[cold]
    fn ended_at(&mut self, index: usize, end: AgentEnd) {
        let agent = self.hosted[index].agent.role_name().to_owned();
        self.handler.handle(&AgentEvent::Ended { agent, end });
        self.close_at(index);
    }

    #[cold]
    fn panicked_at(&mut self, index: usize, during: &'static str, panic: &(dyn Any + Send)) {
        let event = AgentEvent::panicked(self.hosted[index].agent.role_name(), during, panic);
        self.handler.handle(&event);
        self.close_at(index);
    }

    fn close_at(&mut self, index: usize) {
        let Hosted { id, agent } = self.hosted.remove(index);
        guard::close(agent, true, &self.handler);
        self.shared.closed(id);
    }

    /// Closes all hosted agents; requests after this are refused.
    fn end(&mut self) {
        let requests = {
            let mut state = self.shared.lock();
            state.has_ended = true;
            std::mem::take(&mut state.requests)
        };
        while !self.hosted.is_empty() {
            self.close_at(self.hosted.len() - 1);
        }
        for request in requests.into_iter().rev() {
            if let Request::Add(Hosted { id, agent }) = request {
                guard::close(agent, false, &self.handler);
                self.shared.closed(id);
            }
        }
    }
}

impl<A: Agent> Agent for HostingAgent<A> {
    fn do_work(&mut self, now: Now) -> Result<usize, AgentEnd> {
        let mut work = 0;
        // Relaxed: the lock orders the requests. A request that is missed here is executed in the next duty cycle.
        if self.shared.has_requests.load(Ordering::Relaxed) {
            work += self.execute_requests();
        }
        work += self.agent.do_work(now)?;
        Ok(work + self.run_hosted(now))
    }

    fn role_name(&self) -> &str {
        self.agent.role_name()
    }

    fn on_start(&mut self) {
        self.shared.waker.register();
        self.shared.lock().thread = Some(thread::current().id());
        self.agent.on_start();
    }

    fn on_close(&mut self) {
        self.end();
        self.agent.on_close();
    }

    /// Parks through the host agent.
    fn park(&mut self, max: Duration) {
        self.agent.park(max);
    }

    /// The smallest multiplier, so that no agent is delayed.
    fn park_multiplier(&self) -> u32 {
        let hosted = self
            .hosted
            .iter()
            .map(|hosted| hosted.agent.park_multiplier());
        hosted.fold(self.agent.park_multiplier(), u32::min)
    }

    fn on_long_park(&mut self) {
        self.agent.on_long_park();
        for hosted in &mut self.hosted {
            hosted.agent.on_long_park();
        }
    }

    /// The first deadline of the host agent and the hosted agents, if each knows its own.
    fn next_deadline_ns(&self) -> Option<i64> {
        let mut hosted = self
            .hosted
            .iter()
            .map(|hosted| hosted.agent.next_deadline_ns());
        let first = self.agent.next_deadline_ns()?;
        hosted.try_fold(first, |next, deadline| Some(next.min(deadline?)))
    }
}

impl<A> Drop for HostingAgent<A> {
    fn drop(&mut self) {
        // `on_close` has closed the hosted agents, unless the host never started or is dropped during its own panic.
        for hosted in self.hosted.drain(..) {
            let _ = guard::call(|| drop(hosted));
        }
        let mut state = self.shared.lock();
        state.has_ended = true;
        state.requests.clear();
        state.open.clear();
        drop(state);
        self.shared.changed.notify_all();
    }
}

impl<A: fmt::Debug> fmt::Debug for HostingAgent<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostingAgent")
            .field("agent", &self.agent)
            .field("hosted", &self.hosted.len())
            .finish_non_exhaustive()
    }
}

impl AgentHost {
    /// Adds an agent: it starts in the next duty cycle of the host, on the host's thread.
    ///
    /// # Errors
    /// The host has ended; the agent is dropped.
    pub fn add(&self, agent: impl Agent + 'static) -> Result<HostedId, HostEnded> {
        let mut state = self.0.lock();
        if state.has_ended {
            drop(state);
            return Err(HostEnded {
                agent: agent.role_name().to_owned(),
            });
        }
        let id = HostedId(state.next_id);
        state.next_id += 1;
        state.open.push(id);
        let agent = Box::new(agent);
        self.0
            .request(&mut state, Request::Add(Hosted { id, agent }));
        drop(state);
        self.0.waker.wake();
        Ok(id)
    }

    /// Closes an agent on the host's thread and waits until it is dropped. Does nothing if it is closed. On the host's own
    /// thread it cannot wait: the agent then closes in the next duty cycle.
    ///
    /// The host has to run: for one that is invoked by the caller, use [`HostingAgent::close_hosted`].
    pub fn close(&self, id: HostedId) {
        let mut state = self.0.lock();
        if !state.open.contains(&id) {
            return;
        }
        self.0.request(&mut state, Request::Close(id));
        let on_own_thread = state.thread == Some(thread::current().id());
        drop(state);
        self.0.waker.wake();
        if !on_own_thread {
            let state = self.0.lock();
            let is_open = |state: &mut State| state.open.contains(&id);
            drop(self.0.changed.wait_while(state, is_open));
        }
    }

    /// Returns true while an agent has not ended and is not closed.
    pub fn is_open(&self, id: HostedId) -> bool {
        self.0.lock().open.contains(&id)
    }
}

impl fmt::Debug for AgentHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentHost")
            .field("open", &self.0.lock().open)
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No update can be left incomplete by a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(&self, state: &mut State, request: Request) {
        state.requests.push(request);
        self.has_requests.store(true, Ordering::Relaxed);
    }

    fn closed(&self, id: HostedId) {
        self.lock().open.retain(|open| *open != id);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::super::testing::{Journal, Probe};
    use super::super::{AgentInvoker, AgentRunner};
    use super::*;
    use crate::clock::ManualClock;
    use crate::idle::Yield;

    type Host = AgentInvoker<HostingAgent<Probe>, ManualClock>;

    /// Returns a host that is invoked, and its journal, which events go to as well.
    fn invoked() -> (Host, AgentHost, Journal) {
        let journal = Journal::default();
        let events = journal.clone();
        let handler = AgentEventHandler::new(move |event| events.record(event.to_string()));
        let agent = HostingAgent::new(Probe::new("host", &journal), handler);
        let host = agent.host();
        (
            AgentInvoker::new(agent, ManualClock::default()),
            host,
            journal,
        )
    }

    #[test]
    fn hosted_agents_start_run_and_close_in_order() {
        let (mut invoker, host, journal) = invoked();
        let first = host.add(Probe::new("first", &journal)).unwrap();
        let second = Probe {
            work: 7,
            ..Probe::new("second", &journal)
        };
        let second = host.add(second).unwrap();
        assert!(host.is_open(first) && host.is_open(second));
        // Two requests and the work of the second agent.
        assert_eq!(invoker.invoke().unwrap(), 9);
        assert_eq!(invoker.invoke().unwrap(), 7);
        invoker.close();
        assert!(!host.is_open(first) && !host.is_open(second));
        let late = host.add(Probe::new("late", &journal)).unwrap_err();
        assert!(late.to_string().contains("`late`"), "{late}");
        let expected = [
            "host start",
            "first start",
            "second start",
            "host work",
            "first work",
            "second work",
            "host work",
            "first work",
            "second work",
            "second close",
            "first close",
            "host close",
        ];
        assert_eq!(journal.entries(), expected);
    }

    #[test]
    fn end_of_hosted_agent_closes_only_that_one() {
        let (mut invoker, host, journal) = invoked();
        let ending = Probe {
            end: Some(AgentEnd::Finished),
            ..Probe::new("ending", &journal)
        };
        let ending = host.add(ending).unwrap();
        host.add(Probe::new("other", &journal)).unwrap();
        invoker.invoke().unwrap();
        assert!(!host.is_open(ending));
        // Closing an agent that has ended does not wait.
        host.close(ending);
        let expected = [
            "host start",
            "ending start",
            "other start",
            "host work",
            "ending work",
            "agent `ending` has ended: all work is done",
            "ending close",
            "other work",
        ];
        assert_eq!(journal.entries(), expected);
    }

    #[test]
    fn panic_of_hosted_agent_closes_only_that_one() {
        for (panic_in, during) in [("start", "on_start"), ("work", "do_work")] {
            let (mut invoker, host, journal) = invoked();
            let panicking = Probe {
                panic_in: Some(panic_in),
                ..Probe::new("panicking", &journal)
            };
            host.add(panicking).unwrap();
            host.add(Probe::new("other", &journal)).unwrap();
            invoker.invoke().unwrap();
            let entries = journal.entries();
            let text = format!("agent `panicking` panicked in {during} and has stopped: ");
            let reported = entries.iter().position(|entry| entry.starts_with(&text));
            assert_eq!(entries[reported.unwrap() + 1], "panicking close");
            assert_eq!(entries.last().unwrap(), "other work");
        }
    }

    #[test]
    fn panic_of_host_closes_hosted_agents() {
        let (mut invoker, host, journal) = invoked();
        let hosted = host.add(Probe::new("hosted", &journal)).unwrap();
        invoker.invoke().unwrap();
        invoker.agent_mut().agent_mut().panic_in = Some("work");
        assert!(guard::call(|| invoker.invoke()).is_err());
        assert!(host.is_open(hosted));
        drop(invoker);
        assert!(!host.is_open(hosted));
        let entries = journal.entries();
        assert_eq!(entries[entries.len() - 2..], ["hosted close", "host close"]);
    }

    #[test]
    fn panic_of_close_does_not_stop_the_others() {
        let (mut invoker, host, journal) = invoked();
        host.add(Probe::new("first", &journal)).unwrap();
        let panicking = Probe {
            panic_in: Some("close"),
            ..Probe::new("panicking", &journal)
        };
        host.add(panicking).unwrap();
        invoker.invoke().unwrap();
        invoker.close();
        let entries = journal.entries();
        assert_eq!(entries[entries.len() - 2..], ["first close", "host close"]);
    }

    #[test]
    fn invoked_host_closes_one_agent_at_once() {
        let (mut invoker, host, journal) = invoked();
        let first = host.add(Probe::new("first", &journal)).unwrap();
        host.add(Probe::new("second", &journal)).unwrap();
        invoker.start();
        invoker.agent_mut().close_hosted(first);
        invoker.agent_mut().close_hosted(first);
        assert!(!host.is_open(first));
        let expected = ["host start", "first start", "second start", "first close"];
        assert_eq!(journal.entries(), expected);
    }

    #[test]
    fn agent_that_was_not_adopted_is_dropped_without_close() {
        let (mut invoker, host, journal) = invoked();
        invoker.start();
        let hosted = host.add(Probe::new("hosted", &journal)).unwrap();
        invoker.close();
        assert!(!host.is_open(hosted));
        assert_eq!(journal.entries(), ["host start", "host close"]);
    }

    #[test]
    fn host_that_never_started_ends_with_its_drop() {
        let (invoker, host, journal) = invoked();
        let hosted = host.add(Probe::new("hosted", &journal)).unwrap();
        drop(invoker);
        assert!(!host.is_open(hosted));
        host.close(hosted);
        assert!(journal.entries().is_empty());
    }

    #[test]
    fn close_waits_for_the_host_thread() {
        let journal = Journal::default();
        let handler = AgentEventHandler::new(|_| ());
        let agent = HostingAgent::new(Probe::new("host", &journal), handler.clone());
        let host = agent.host();
        let runner = AgentRunner::new(agent, ManualClock::default(), Yield, handler);
        let running = runner.start().unwrap();
        for _ in 0..100 {
            let hosted = host.add(Probe::new("hosted", &journal)).unwrap();
            host.close(hosted);
            assert!(!host.is_open(hosted));
        }
        running.close();
        let entries = journal.entries();
        let closes = entries.iter().filter(|entry| *entry == "hosted close");
        assert_eq!(closes.count(), 100);
        assert_eq!(entries.last().unwrap(), "host close");
    }

    #[test]
    fn hosted_agent_may_close_itself() {
        struct SelfClosing(
            mpsc::Receiver<(AgentHost, HostedId)>,
            mpsc::Sender<ThreadId>,
        );
        impl Agent for SelfClosing {
            fn do_work(&mut self, _now: Now) -> Result<usize, AgentEnd> {
                for (host, id) in self.0.try_iter() {
                    host.close(id);
                }
                Ok(0)
            }
            fn role_name(&self) -> &str {
                "self-closing"
            }
            fn on_close(&mut self) {
                self.1.send(thread::current().id()).unwrap();
            }
        }
        let (mut invoker, host, _) = invoked();
        let ((handle, handles), (closed, closes)) = (mpsc::channel(), mpsc::channel());
        let id = host.add(SelfClosing(handles, closed)).unwrap();
        handle.send((host.clone(), id)).unwrap();
        invoker.invoke().unwrap();
        assert!(host.is_open(id));
        invoker.invoke().unwrap();
        assert!(!host.is_open(id));
        assert_eq!(closes.recv(), Ok(thread::current().id()));
    }
}
