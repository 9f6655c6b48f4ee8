//! An agent on its own thread.

use std::any::Any;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use thiserror::Error;

use super::Agent;
#[cfg(not(loom))]
use super::ThreadWaker;
use crate::affinity::{self, AffinityError};
use crate::clock::Clock;
use crate::idle::IdleStrategy;

/// Longest park that results from the park multiplier of an agent.
const MAX_LONG_PARK: Duration = Duration::from_millis(100);

/// Failure of an agent's thread. Exhaustive, so that a new kind does not compile until each program of agents handles it.
#[derive(Debug, Error)]
pub enum AgentFailure {
    /// The agent panicked: it runs no more duty cycles, was closed, and its thread has ended.
    #[error("agent `{agent}` panicked in {during} and has stopped: {message}")]
    Panicked {
        /// The agent's role name.
        agent: String,
        /// `on_start`, `do_work`, `on_close` or `drop`.
        during: &'static str,
        /// The text of the panic.
        message: String,
    },
    /// The agent runs, but not on the requested CPU.
    #[error("agent `{agent}` is not pinned: {source}")]
    NotPinned {
        /// The agent's role name.
        agent: String,
        /// The reason.
        source: AffinityError,
    },
}

/// Configuration of an agent's thread.
pub struct AgentRunner<A, C, I> {
    agent: A,
    clock: C,
    idle: I,
    on_failure: Box<dyn FnMut(AgentFailure) + Send>,
    thread_name: String,
    cpu: Option<usize>,
}

impl<A, C, I> AgentRunner<A, C, I>
where
    A: Agent + 'static,
    C: Clock + 'static,
    I: IdleStrategy + 'static,
{
    /// A runner of `agent` with the time of `clock` and the idle strategy `idle`. `on_failure` is called on the agent's
    /// thread.
    pub fn new(
        agent: A,
        clock: C,
        idle: I,
        on_failure: impl FnMut(AgentFailure) + Send + 'static,
    ) -> Self {
        let thread_name = agent.role_name().to_owned();
        Self {
            agent,
            clock,
            idle,
            on_failure: Box::new(on_failure),
            thread_name,
            cpu: None,
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

    /// Starts the thread.
    ///
    /// # Errors
    /// The operating system cannot create a thread.
    pub fn start(self) -> io::Result<RunningAgent> {
        let role_name = self.agent.role_name().to_owned();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        // A name with a zero byte in it is the only one that std refuses (by a panic).
        let name = self.thread_name.replace('\0', "");
        let thread = thread::Builder::new()
            .name(name)
            .spawn(move || self.run(&stopped))?;
        Ok(RunningAgent {
            role_name,
            stop,
            thread: Some(thread),
        })
    }

    fn run(mut self, stop: &AtomicBool) {
        affinity::set_min_timer_slack();
        if let Some(Err(source)) = self.cpu.map(affinity::pin_current_thread) {
            let agent = self.agent.role_name().to_owned();
            (self.on_failure)(AgentFailure::NotPinned { agent, source });
        }
        if self.guarded("on_start", |runner| runner.agent.on_start()) {
            self.guarded("do_work", |runner| runner.run_duty_cycles(stop));
        }
        self.guarded("on_close", |runner| runner.agent.on_close());
        let Self {
            agent,
            mut on_failure,
            ..
        } = self;
        let name = agent.role_name().to_owned();
        guarded(&name, "drop", &mut on_failure, || drop(agent));
    }

    fn run_duty_cycles(&mut self, stop: &AtomicBool) {
        let Self {
            agent, clock, idle, ..
        } = self;
        // Acquire: partner of the release in `RunningAgent::shut_down`.
        while !stop.load(Ordering::Acquire) {
            let work = agent.do_work(clock.now());
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
    }

    fn guarded(&mut self, during: &'static str, call: impl FnOnce(&mut Self)) -> bool {
        let result = panic::catch_unwind(AssertUnwindSafe(|| call(self)));
        let agent = self.agent.role_name().to_owned();
        report(&agent, during, &mut self.on_failure, result)
    }
}

/// Calls `call` and reports a panic; returns true if there was none. State that a panic left inconsistent (hence the
/// assertion) is only closed and dropped afterwards.
fn guarded(
    agent: &str,
    during: &'static str,
    on_failure: &mut dyn FnMut(AgentFailure),
    call: impl FnOnce(),
) -> bool {
    report(
        agent,
        during,
        on_failure,
        panic::catch_unwind(AssertUnwindSafe(call)),
    )
}

fn report(
    agent: &str,
    during: &'static str,
    on_failure: &mut dyn FnMut(AgentFailure),
    result: thread::Result<()>,
) -> bool {
    let Err(payload) = result else { return true };
    let message = panic_text(&*payload);
    on_failure(AgentFailure::Panicked {
        agent: agent.to_owned(),
        during,
        message,
    });
    false
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}

/// A running agent. Closing or dropping it stops the agent and waits until `on_close` has returned and the agent is
/// dropped: no method of it is called afterwards. (A drop on the agent's own thread cannot wait; the agent then stops
/// after the current duty cycle.)
#[derive(Debug)]
pub struct RunningAgent {
    role_name: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RunningAgent {
    /// The agent's role name.
    pub fn role_name(&self) -> &str {
        &self.role_name
    }

    /// Returns true if the thread has ended, also after a panic of the agent.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Returns a handle that ends the agent's park early. (Loom has its own threads.)
    #[cfg(not(loom))]
    pub fn waker(&self) -> Option<ThreadWaker> {
        self.thread
            .as_ref()
            .map(|thread| ThreadWaker::for_thread(thread.thread().clone()))
    }

    /// Stops the agent and waits until it has ended.
    pub fn close(mut self) {
        self.shut_down();
    }

    fn shut_down(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        // Release: partner of the acquire in `run_duty_cycles`; the agent's last calls see what its
        // owner did before closing.
        self.stop.store(true, Ordering::Release);
        thread.thread().unpark();
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
mod tests {
    use std::sync::mpsc;
    use std::time::Instant;

    use super::super::AgentWaker;
    use super::super::testing::{Journal, Probe};
    use super::*;
    use crate::clock::{ManualClock, Now};
    use crate::idle::{Sleep, Yield};

    fn start(probe: Probe) -> (RunningAgent, mpsc::Receiver<AgentFailure>) {
        let (sender, receiver) = mpsc::channel();
        let on_failure = move |failure| sender.send(failure).unwrap();
        let runner = AgentRunner::new(probe, ManualClock::default(), Yield, on_failure);
        (runner.start().unwrap(), receiver)
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
            let failure = failures.recv().unwrap();
            let text = failure.to_string();
            let AgentFailure::Panicked {
                agent,
                during: reported,
                message,
            } = failure
            else {
                panic!("{text}")
            };
            assert_eq!((agent.as_str(), reported), ("worker", during));
            assert!(message.contains("requested panic"), "{message}");
            assert!(failures.recv().is_err(), "reported once");
            assert_eq!(journal.entries().last().unwrap(), "worker close");
        }
    }

    #[test]
    fn thread_carries_the_role_name_and_is_pinned() {
        struct Reporter(mpsc::Sender<(String, Vec<usize>)>);
        impl Agent for Reporter {
            fn do_work(&mut self, _now: Now) -> usize {
                let name = thread::current().name().unwrap_or("").to_owned();
                let _ = self.0.send((name, affinity::allowed_cpus()));
                0
            }
            fn role_name(&self) -> &'static str {
                "rep\0orter"
            }
        }
        let cpu = affinity::allowed_cpus().first().copied();
        let (sender, receiver) = mpsc::channel();
        let idle = Sleep(Duration::from_secs(3600));
        let runner = AgentRunner::new(Reporter(sender), ManualClock::default(), idle, |f| {
            panic!("{f}")
        });
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
        let (sender, failures) = mpsc::channel();
        let on_failure = move |failure| sender.send(failure).unwrap();
        let probe = Probe::new("worker", &journal);
        let runner = AgentRunner::new(probe, ManualClock::default(), Yield, on_failure);
        let running = runner.cpu(Some(usize::MAX)).start().unwrap();
        assert!(matches!(
            failures.recv().unwrap(),
            AgentFailure::NotPinned { .. }
        ));
        while !journal.entries().contains(&"worker work".to_owned()) {
            thread::yield_now();
        }
        running.close();
    }

    #[test]
    fn agent_may_drop_its_own_handle() {
        struct SelfClosing(mpsc::Receiver<RunningAgent>, mpsc::Sender<()>);
        impl Agent for SelfClosing {
            fn do_work(&mut self, _now: Now) -> usize {
                self.0.try_iter().count()
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
        let runner = AgentRunner::new(agent, ManualClock::default(), Yield, |f| panic!("{f}"));
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
        fn do_work(&mut self, _now: Now) -> usize {
            0
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
        let running = AgentRunner::new(agent, ManualClock::default(), idle, |_| {})
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
