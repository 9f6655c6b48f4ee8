// SPDX-License-Identifier: Apache-2.0
//! The agent that wakes waiting tasks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use taran_core::agent::{
    Agent, AgentEnd, AgentEventHandler, AgentRunner, AgentWaker, RunningAgent,
};
use taran_core::clock::{Now, SystemClock};
use taran_core::idle::{Adaptive, IdleStrategy};

use super::watch::{Checked, Watch};

/// Wakes the tasks that wait for messages, or for room to send them.
///
/// One reactor serves any number of [`AsyncSubscription`](crate::AsyncSubscription)s and
/// [`AsyncPublication`](crate::AsyncPublication)s, of any number of clients. Its duty cycle takes time in proportion to
/// the number of tasks that wait. It ends when its last clone is dropped; each subscription and publication that uses it
/// has one.
///
/// # Latency
///
/// A message that finds its task waiting is delivered after at most one duty cycle of the reactor, or the rest of its
/// sleep, and the time that the runtime needs to resume the task. With the default idle strategy the reactor spins
/// across the gaps of a live flow (up to 1.2 ms), and yields the processor while it does; after that it sleeps for a
/// sixteenth of the silence so far, at most 1 ms. [`start_with`](Self::start_with) takes another strategy. A message
/// that has arrived before its task asks for it does not involve the reactor. While no task waits the reactor sleeps.
///
/// A new image is known to its subscription when the client conductor has processed the driver's response; see
/// [`ClientBuilder::idle_sleep`](crate::ClientBuilder::idle_sleep).
///
/// ```
/// # use std::pin::pin;
/// # use std::task::{Context, Poll, Waker};
/// use taran::{Client, Reactor};
/// # use taran_driver::{DriverContext, MediaDriver};
///
/// # fn main() -> Result<(), taran::Error> {
/// # let driver = MediaDriver::launch_embedded(DriverContext::new().ipc_term_buffer_length(65_536)).unwrap();
/// # let client = Client::builder().aeron_dir(driver.aeron_dir()).connect()?;
/// let reactor = Reactor::start()?;
/// let task = async {
///     let mut subscription = client.async_add_subscription("aeron:ipc", 1001)?.await?.into_async(&reactor);
///     let mut publication = client.async_add_publication("aeron:ipc", 1001)?.await?.into_async(&reactor);
///     publication.offer(b"hello").await?;
///     subscription.poll(|message, _| assert_eq!(message, b"hello"), 10).await?;
///     Ok::<_, taran::Error>(())
/// };
/// // Any runtime runs the task; `crates/client/examples/tokio_streams.rs` uses tokio.
/// # let mut task = pin!(task);
/// # loop {
/// #     match task.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
/// #         Poll::Ready(outcome) => break outcome,
/// #         Poll::Pending => std::thread::yield_now(),
/// #     }
/// # }
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Reactor(Arc<Running>);

/// Reason why a [`Reactor`] could not be started.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReactorError {
    /// The operating system did not start the thread.
    #[error(
        "the reactor's thread could not be started: {0}; raise the limit of threads (ulimit -u, pids.max), or run the \
         reactor in a loop of the application with Reactor::invoked"
    )]
    Thread(String),
}

taran_core::debug_is_display!(ReactorError);

#[derive(Debug)]
struct Running {
    inbox: Arc<Inbox>,
    mode: Mode,
}

#[derive(Debug)]
enum Mode {
    /// Held for its drop, which stops the thread.
    Thread {
        _agent: RunningAgent,
    },
    Invoked(Mutex<ReactorAgent>),
}

impl Reactor {
    /// Starts a reactor on a thread of its own, with the idle strategy [`Adaptive`].
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn start() -> Result<Self, ReactorError> {
        Self::start_with(Adaptive::default())
    }

    /// Like [`start`](Self::start), with the idle strategy that waits between two checks while a task waits.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn start_with(idle: impl IdleStrategy + 'static) -> Result<Self, ReactorError> {
        let inbox = Arc::new(Inbox::default());
        let agent = ReactorAgent::new(Arc::clone(&inbox));
        // A duty cycle does not panic: the wakers, which are not ours, are called in `wake`.
        let handler = AgentEventHandler::new(|_| ());
        let agent = AgentRunner::new(agent, SystemClock::new(), idle, handler)
            .start()
            .map_err(|error| ReactorError::Thread(error.to_string()))?;
        let mode = Mode::Thread { _agent: agent };
        Ok(Self(Arc::new(Running { inbox, mode })))
    }

    /// Creates a reactor without a thread, which wakes tasks when [`invoke`](Self::invoke) is called.
    #[must_use]
    pub fn invoked() -> Self {
        let inbox = Arc::new(Inbox::default());
        let mode = Mode::Invoked(Mutex::new(ReactorAgent::new(Arc::clone(&inbox))));
        Self(Arc::new(Running { inbox, mode }))
    }

    /// Wakes the tasks that have something to do, and returns their number. Does nothing for a reactor with a thread,
    /// and while another thread runs this one.
    pub fn invoke(&self) -> usize {
        let Mode::Invoked(agent) = &self.0.mode else {
            return 0;
        };
        match agent.try_lock() {
            Ok(mut agent) => agent.do_work(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().do_work(),
            Err(TryLockError::WouldBlock) => 0,
        }
    }

    /// Adds an armed watch to the list.
    pub(super) fn add(&self, watch: &Arc<Watch>) {
        let inbox = &self.0.inbox;
        inbox.push(Arc::clone(watch));
        inbox.waker.wake();
    }
}

/// Watches that the agent has not seen yet.
#[derive(Debug, Default)]
struct Inbox {
    armed: Mutex<Vec<Arc<Watch>>>,
    /// True if `armed` is not empty.
    has_new: AtomicBool,
    waker: AgentWaker,
}

impl Inbox {
    fn push(&self, watch: Arc<Watch>) {
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        armed.push(watch);
        // Release: pairs with the acquire in `move_to`.
        self.has_new.store(true, Ordering::Release);
    }

    fn move_to(&self, watches: &mut Vec<Arc<Watch>>) {
        if self.has_new.load(Ordering::Acquire) {
            let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
            watches.append(&mut armed);
            self.has_new.store(false, Ordering::Relaxed);
        }
    }
}

/// Checks the armed watches.
#[derive(Debug)]
struct ReactorAgent {
    inbox: Arc<Inbox>,
    watches: Vec<Arc<Watch>>,
}

impl ReactorAgent {
    fn new(inbox: Arc<Inbox>) -> Self {
        Self {
            inbox,
            watches: Vec::new(),
        }
    }
}

impl ReactorAgent {
    fn do_work(&mut self) -> usize {
        self.inbox.move_to(&mut self.watches);
        let mut woken = 0;
        let mut index = 0;
        while let Some(watch) = self.watches.get(index) {
            match watch.check() {
                Checked::Waiting => index += 1,
                Checked::Ready(waker) => {
                    self.watches.swap_remove(index);
                    wake(waker);
                    woken += 1;
                }
                Checked::Disarmed => drop(self.watches.swap_remove(index)),
            }
        }
        woken
    }
}

impl Agent for ReactorAgent {
    fn do_work(&mut self, _now: Now) -> Result<usize, AgentEnd> {
        Ok(self.do_work())
    }

    fn role_name(&self) -> &'static str {
        "taran-reactor"
    }

    fn on_start(&mut self) {
        self.inbox.waker.register();
    }

    /// Without a watch there is nothing to check, and a new one ends the park.
    fn park_multiplier(&self) -> u32 {
        if self.watches.is_empty() { u32::MAX } else { 1 }
    }
}

/// Wakes a task. A panic in the code of its runtime must not keep the others from being woken; the panic hook has
/// reported it.
fn wake(waker: std::task::Waker) {
    drop(catch_unwind(AssertUnwindSafe(|| waker.wake())));
}
