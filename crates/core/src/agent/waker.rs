//! Ending the park of an agent's thread early.

use std::sync::{Arc, PoisonError};

use crate::sync::Mutex;
use crate::sync::thread::{self, Thread};

/// Ends the park of an agent's thread early, so that work from another thread does not wait for the end of the park.
/// Costs one atomic swap while the agent is awake.
#[derive(Clone, Debug)]
pub struct ThreadWaker(Thread);

impl ThreadWaker {
    pub(super) fn for_thread(thread: Thread) -> Self {
        Self(thread)
    }

    /// A waker for the calling thread.
    pub fn for_current_thread() -> Self {
        Self::for_thread(thread::current())
    }

    /// Ends the current park, or the next one if the thread is awake.
    pub fn wake(&self) {
        self.0.unpark();
    }
}

/// Ends the parks of an agent that is created before its thread is known: shared by the agent and the senders of its
/// work. Clones are the same waker.
///
/// If a sender enqueues work and then calls [`wake`](Self::wake), the agent sees the work before it parks for long: the
/// lock orders `wake` and [`register`](Self::register), and work enqueued before a `wake` without a registered thread
/// is visible to the first duty cycle.
#[derive(Clone, Debug, Default)]
pub struct AgentWaker(Arc<Mutex<Option<ThreadWaker>>>);

impl AgentWaker {
    /// Registers the calling thread, in an agent's `on_start`.
    pub fn register(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(ThreadWaker::for_current_thread());
    }

    /// Ends the current park of the agent, or the next one. Does nothing before the agent was started: its first duty
    /// cycle is yet to come.
    pub fn wake(&self) {
        let waker = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waker) = &*waker {
            waker.wake();
        }
    }
}
