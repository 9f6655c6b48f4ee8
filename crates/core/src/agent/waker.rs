//! Ending the park of an agent's thread early.

use std::sync::{Arc, PoisonError};

use crate::sync::Mutex;
use crate::sync::thread::{self, Thread};

/// Ends the park of an agent's thread early, so that work handed over from another thread does not
/// wait for the park's end. Cheap while the agent is awake: one atomic swap.
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

    /// Ends the present park, or the next one if the thread is awake.
    pub fn wake(&self) {
        self.0.unpark();
    }
}

/// Ends the parks of an agent that is made before it is known which thread runs it: handed to the agent and to whoever
/// sends it work. Clones are the same one.
///
/// Whoever sends something and then rings is sure that the agent sees it before it parks for long: the lock puts ringing
/// and coming in an order, and what was sent before a ring that found nobody is there for the first turn.
#[derive(Clone, Debug, Default)]
pub struct AgentWaker(Arc<Mutex<Option<ThreadWaker>>>);

impl AgentWaker {
    /// The calling thread comes when it is rung: for an agent's `on_start`.
    pub fn register(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(ThreadWaker::for_current_thread());
    }

    /// Ends the present park of the agent, or the next one. Nothing happens before it was started: its first turn is to
    /// come.
    pub fn wake(&self) {
        let waker = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waker) = &*waker {
            waker.wake();
        }
    }
}
