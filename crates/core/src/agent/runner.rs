// SPDX-License-Identifier: Apache-2.0
//! An agent on its own thread.

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

#[cfg(not(loom))]
use super::ThreadWaker;
use super::waker::ThreadWaits;
use super::{Agent, AgentEnd, AgentEvent, AgentEventHandler, AgentStartHook, guard};
use crate::affinity;
use crate::clock::Clock;
use crate::idle::IdleStrategy;

/// Longest park that results from the park multiplier of an agent.
const MAX_LONG_PARK: Duration = Duration::from_millis(100);

/// Configuration of an agent's thread.
pub struct AgentRunner<A, C, I> {
    agent: A,
    clock: C,
    idle: I,
    handler: AgentEventHandler,
    thread_name: String,
    cpu: Option<usize>,
    start_hook: Option<AgentStartHook>,
}

impl<A, C, I> AgentRunner<A, C, I>
where
    A: Agent + 'static,
    C: Clock + 'static,
    I: IdleStrategy + 'static,
{
    /// A runner of `agent` with the time of `clock` and the idle strategy `idle`. `handler` is called on the agent's
    /// thread.
    pub fn new(agent: A, clock: C, idle: I, handler: AgentEventHandler) -> Self {
        let thread_name = agent.role_name().to_owned();
        Self {
            agent,
            clock,
            idle,
            handler,
            thread_name,
            cpu: None,
            start_hook: None,
        }
    }

    /// Names the thread other than by the agent's role. Linux shows the first 15 bytes.
    #[must_use]
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        self.thread_name = name.into();
        self
    }

    /// Pins the thread to a CPU, counted from 0. If that fails, the agent runs unpinned and the failure is reported.
    #[must_use]
    pub fn cpu(mut self, cpu: Option<usize>) -> Self {
        self.cpu = cpu;
        self
    }

    /// Sets a function that the thread calls before the agent starts, with the agent's role name. Its panic
    /// counts as one of the agent in `on_start`.
    #[must_use]
    pub fn start_hook(mut self, hook: Option<AgentStartHook>) -> Self {
        self.start_hook = hook;
        self
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// The operating system cannot create a thread.
    pub fn start(self) -> io::Result<RunningAgent> {
        let role_name = self.agent.role_name().to_owned();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let waits = Arc::<ThreadWaits>::default();
        let own_waits = Arc::clone(&waits);
        // A name with a zero byte in it is the only one that std refuses (by a panic).
        let name = self.thread_name.replace('\0', "");
        let thread = thread::Builder::new().name(name).spawn(move || {
            own_waits.become_current();
            self.run(&stopped);
        })?;
        Ok(RunningAgent {
            role_name,
            stop,
            waits,
            thread: Some(thread),
        })
    }

    fn run(mut self, stop: &AtomicBool) {
        affinity::set_min_timer_slack();
        if let Some(Err(source)) = self.cpu.map(affinity::pin_current_thread) {
            let agent = self.agent.role_name().to_owned();
            let source = Arc::new(source);
            self.handler
                .handle(&AgentEvent::NotPinned { agent, source });
        }
        let started = guard::call(|| {
            if let Some(hook) = &self.start_hook {
                hook(self.agent.role_name());
            }
            self.agent.on_start();
        });
        match started {
            Ok(()) => match guard::call(|| self.run_duty_cycles(stop)) {
                Ok(None) => {}
                Ok(Some(end)) => {
                    let agent = self.agent.role_name().to_owned();
                    self.handler.handle(&AgentEvent::Ended { agent, end });
                }
                Err(panic) => self.panicked("do_work", &*panic),
            },
            Err(panic) => self.panicked("on_start", &*panic),
        }
        guard::close(self.agent, true, &self.handler);
    }

    /// Runs duty cycles until the agent is stopped, or ends by itself for the reason that is returned.
    fn run_duty_cycles(&mut self, stop: &AtomicBool) -> Option<AgentEnd> {
        let Self {
            agent, clock, idle, ..
        } = self;
        // Acquire: partner of the release in `RunningAgent::stop`.
        while !stop.load(Ordering::Acquire) {
            let work = match agent.do_work(clock.now()) {
                Ok(work) => work,
                Err(end) => return Some(end),
            };
            idle.idle(work, &mut |max| {
                let long = max
                    .saturating_mul(agent.park_multiplier())
                    .min(MAX_LONG_PARK);
                if long > max {
                    agent.on_long_park();
                }
                agent.park(long.max(max));
            });
        }
        None
    }

    fn panicked(&self, during: &'static str, panic: &(dyn Any + Send)) {
        let event = AgentEvent::panicked(self.agent.role_name(), during, panic);
        self.handler.handle(&event);
    }
}

/// A running agent. Closing or dropping it stops the agent and waits until `on_close` has returned and the agent is
/// dropped: no method of it is called afterwards. (A drop on the agent's own thread cannot wait; the agent then stops
/// after the current duty cycle.)
#[derive(Debug)]
pub struct RunningAgent {
    role_name: String,
    stop: Arc<AtomicBool>,
    waits: Arc<ThreadWaits>,
    thread: Option<JoinHandle<()>>,
}

impl RunningAgent {
    /// The agent's role name.
    pub fn role_name(&self) -> &str {
        &self.role_name
    }

    /// Returns true if the thread has ended, also after a panic of the agent or its own end.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Returns a handle that ends the agent's wait early. (Loom has its own threads.)
    #[cfg(not(loom))]
    pub fn waker(&self) -> Option<ThreadWaker> {
        self.thread
            .as_ref()
            .map(|thread| ThreadWaker::new(thread.thread().clone(), Arc::clone(&self.waits)))
    }

    /// Requests the end of the agent and returns at once: the agent closes after its current duty cycle.
    /// [`is_finished`](Self::is_finished) tells when it has ended. For a caller that must do something else meanwhile, such
    /// as running what the agent needs for its close.
    pub fn stop(&self) {
        // Release: partner of the acquire in `run_duty_cycles`; the agent's last calls see what its
        // owner did before closing.
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
            self.waits.wake();
        }
    }

    /// Stops the agent and waits until it has ended.
    pub fn close(mut self) {
        self.shut_down();
    }

    fn shut_down(&mut self) {
        self.stop();
        let Some(thread) = self.thread.take() else {
            return;
        };
        if thread.thread().id() != thread::current().id() {
            // Panics of the agent were reported on its thread; a panic of the failure handler cannot be reported.
            drop(thread.join());
        }
    }
}

impl Drop for RunningAgent {
    fn drop(&mut self) {
        self.shut_down();
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::sync::mpsc;
    use std::time::Instant;

    use super::super::AgentWaker;
    use super::super::testing::{Journal, Probe};
    use super::*;
    use crate::clock::{ManualClock, Now};
    use crate::idle::{Sleep, Yield};

    fn start(probe: Probe) -> (RunningAgent, mpsc::Receiver<(bool, String)>) {
        let (handler, events) = events();
        let runner = AgentRunner::new(probe, ManualClock::default(), Yield, handler);
        (runner.start().unwrap(), events)
    }

    /// Returns a handler, and the events that it is called with: whether they are failures, and their text.
    fn events() -> (AgentEventHandler, mpsc::Receiver<(bool, String)>) {
        let (sender, receiver) = mpsc::channel();
        let handler = AgentEventHandler::new(move |event| {
            // The receiver may be dropped at the end.
            let _ = sender.send((event.is_failure(), event.to_string()));
        });
        (handler, receiver)
    }

    fn ignore_events() -> AgentEventHandler {
        AgentEventHandler::new(|_| ())
    }

    #[test]
    fn close_waits_for_the_end() {
        let journal = Journal::default();
        let (running, _failures) = start(Probe::new("worker", &journal));
        while journal.entries().len() < 3 {
            thread::yield_now();
        }
        assert_eq!(running.role_name(), "worker");
        assert!(!running.is_finished());
        running.close();
        let entries = journal.entries();
        assert_eq!(entries[0], "worker start");
        assert_eq!(
            entries
                .iter()
                .filter(|entry| *entry == "worker close")
                .count(),
            1
        );
        assert_eq!(entries.last().unwrap(), "worker close");
    }

    #[test]
    fn stop_returns_before_the_agent_has_closed() {
        /// Closes when it is told to.
        struct SlowToClose(mpsc::Receiver<()>);
        impl Agent for SlowToClose {
            fn do_work(&mut self, _now: Now) -> Result<usize, AgentEnd> {
                Ok(0)
            }
            fn role_name(&self) -> &'static str {
                "slow"
            }
            fn on_close(&mut self) {
                self.0.recv().unwrap();
            }
        }
        let (permit, permits) = mpsc::channel();
        let idle = Sleep(Duration::from_secs(3600));
        let agent = SlowToClose(permits);
        let runner = AgentRunner::new(agent, ManualClock::default(), idle, ignore_events());
        let running = runner.start().unwrap();
        running.stop();
        running.stop();
        assert!(!running.is_finished());
        permit.send(()).unwrap();
        while !running.is_finished() {
            thread::yield_now();
        }
        running.close();
    }

    #[test]
    fn drop_waits_for_the_end() {
        let journal = Journal::default();
        drop(start(Probe::new("worker", &journal)));
        assert_eq!(journal.entries().last().unwrap(), "worker close");
    }

    #[test]
    fn panic_is_reported_and_the_agent_closed() {
        for (panic_in, during) in [
            ("start", "on_start"),
            ("work", "do_work"),
            ("close", "on_close"),
        ] {
            let journal = Journal::default();
            let probe = Probe {
                panic_in: Some(panic_in),
                ..Probe::new("worker", &journal)
            };
            let (running, failures) = start(probe);
            if panic_in == "close" {
                running.close();
            }
            let (is_failure, text) = failures.recv().unwrap();
            assert!(is_failure);
            let expected = format!("agent `worker` panicked in {during} and has stopped:");
            assert!(text.starts_with(&expected), "{text}");
            assert!(text.contains("requested panic"), "{text}");
            assert!(failures.recv().is_err(), "reported once");
            assert_eq!(journal.entries().last().unwrap(), "worker close");
        }
    }

    #[test]
    fn end_of_the_agent_is_reported_and_the_agent_closed() {
        #[derive(Debug, thiserror::Error)]
        #[error("disk full")]
        struct DiskFull;
        for (end, is_failure, text) in [
            (AgentEnd::Finished, false, "all work is done"),
            (DiskFull.into(), true, "disk full"),
        ] {
            assert_eq!(end.error::<DiskFull>().is_some(), is_failure);
            let journal = Journal::default();
            let probe = Probe {
                end: Some(end),
                ..Probe::new("worker", &journal)
            };
            let (running, events) = start(probe);
            let text = format!("agent `worker` has ended: {text}");
            assert_eq!(events.recv().unwrap(), (is_failure, text));
            assert!(events.recv().is_err(), "reported once");
            running.close();
            let entries = journal.entries();
            assert_eq!(entries, ["worker start", "worker work", "worker close"]);
        }
    }

    #[test]
    fn start_hook_runs_on_the_thread_before_the_agent_starts() {
        let journal = Journal::default();
        let seen = journal.clone();
        let hook: AgentStartHook = Arc::new(move |role| {
            let thread = thread::current().name().unwrap_or("").to_owned();
            seen.record(format!("hook of {role} on {thread}"));
        });
        let probe = Probe::new("worker", &journal);
        let runner = AgentRunner::new(probe, ManualClock::default(), Yield, ignore_events());
        let runner = runner.thread_name("thread-1").start_hook(Some(hook));
        drop(runner.start().unwrap());
        let entries = journal.entries();
        assert_eq!(entries[..2], ["hook of worker on thread-1", "worker start"]);
    }

    #[test]
    fn thread_carries_the_role_name_and_is_pinned() {
        struct Reporter(mpsc::Sender<(String, Vec<usize>)>);
        impl Agent for Reporter {
            fn do_work(&mut self, _now: Now) -> Result<usize, AgentEnd> {
                let name = thread::current().name().unwrap_or("").to_owned();
                let _ = self.0.send((name, affinity::allowed_cpus()));
                Ok(0)
            }
            fn role_name(&self) -> &'static str {
                "rep\0orter"
            }
        }
        let cpu = affinity::allowed_cpus().first().copied();
        let (sender, receiver) = mpsc::channel();
        let idle = Sleep(Duration::from_secs(3600));
        let reporter = Reporter(sender);
        let runner = AgentRunner::new(reporter, ManualClock::default(), idle, ignore_events());
        let running = runner.cpu(cpu).start().unwrap();
        let (name, cpus) = receiver.recv().unwrap();
        assert_eq!(name, "reporter");
        assert_eq!(cpus.first().copied(), cpu);
        assert!(cpus.len() <= 1);
        // The waker ends the park of an hour, and so does the close.
        running.waker().unwrap().wake();
        receiver.recv().unwrap();
        running.close();
    }

    #[test]
    fn impossible_cpu_is_reported_and_the_agent_runs() {
        let journal = Journal::default();
        let (handler, events) = events();
        let probe = Probe::new("worker", &journal);
        let runner = AgentRunner::new(probe, ManualClock::default(), Yield, handler);
        let running = runner.cpu(Some(usize::MAX)).start().unwrap();
        let (is_failure, text) = events.recv().unwrap();
        assert!(!is_failure && text.contains("is not pinned"), "{text}");
        while !journal.entries().contains(&"worker work".to_owned()) {
            thread::yield_now();
        }
        running.close();
    }

    #[test]
    fn agent_may_drop_its_own_handle() {
        struct SelfClosing(mpsc::Receiver<RunningAgent>, mpsc::Sender<()>);
        impl Agent for SelfClosing {
            fn do_work(&mut self, _now: Now) -> Result<usize, AgentEnd> {
                Ok(self.0.try_iter().count())
            }
            fn role_name(&self) -> &'static str {
                "self-closing"
            }
            fn on_close(&mut self) {
                self.1.send(()).unwrap();
            }
        }
        let (handle, handles) = mpsc::channel();
        let (closed, closes) = mpsc::channel();
        let agent = SelfClosing(handles, closed);
        let runner = AgentRunner::new(agent, ManualClock::default(), Yield, ignore_events());
        handle.send(runner.start().unwrap()).unwrap();
        closes.recv().unwrap();
    }

    /// Much longer than the test takes.
    const LONG_PARK: Duration = Duration::from_secs(60);

    /// Reports its parks.
    struct Sleeper {
        waker: AgentWaker,
        parked: mpsc::Sender<&'static str>,
    }

    impl Agent for Sleeper {
        fn do_work(&mut self, _now: Now) -> Result<usize, AgentEnd> {
            Ok(0)
        }

        fn role_name(&self) -> &str {
            "sleeper"
        }

        fn on_start(&mut self) {
            self.waker.register();
        }

        fn park(&mut self, _max: Duration) {
            // The receiver is dropped at the end.
            let _ = self.parked.send("parks");
            thread::park_timeout(LONG_PARK);
            let _ = self.parked.send("woken");
        }
    }

    #[test]
    fn agent_waker_ends_the_park_of_the_registered_thread() {
        let waker = AgentWaker::default();
        waker.wake(); // no thread is registered yet
        let (parked, seen) = mpsc::channel();
        let agent = Sleeper {
            waker: waker.clone(),
            parked,
        };
        let idle = Sleep(Duration::from_secs(1));
        let running = AgentRunner::new(agent, ManualClock::default(), idle, ignore_events())
            .start()
            .unwrap();
        for _ in 0..3 {
            assert_eq!(seen.recv(), Ok("parks"));
            let woken = Instant::now();
            waker.wake();
            assert_eq!(seen.recv(), Ok("woken"));
            assert!(woken.elapsed() < LONG_PARK, "the park ended by timeout");
        }
        running.close();
    }
}
