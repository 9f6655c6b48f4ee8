//! Shutdown signal from the agents to the threads that wait for it.

use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use taran_core::agent::AgentEvent;

/// Reason for closing a driver.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Termination {
    /// A permitted request of a client.
    Requested,
    /// An agent panicked; the driver does not work any more.
    Failed(String),
    /// An agent added by [`MediaDriver::add_agent`](crate::MediaDriver::add_agent) panicked or failed, and was closed. The
    /// driver itself works.
    AgentFailed(AgentEvent),
}

impl fmt::Display for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requested => f.write_str("a client requested termination"),
            Self::Failed(text) => f.write_str(text),
            Self::AgentFailed(event) => event.fmt(f),
        }
    }
}

/// Reason for closing the driver; set once, and observed by all waiting threads.
#[derive(Debug, Default)]
pub(crate) struct ShutdownSignal {
    termination: Mutex<Option<Termination>>,
    changed: Condvar,
}

impl ShutdownSignal {
    pub(crate) fn request(&self) {
        self.set(Termination::Requested);
    }

    pub(crate) fn fail(&self, reason: String) {
        self.set(Termination::Failed(reason));
    }

    pub(crate) fn agent_failed(&self, event: AgentEvent) {
        self.set(Termination::AgentFailed(event));
    }

    fn set(&self, termination: Termination) {
        self.lock().get_or_insert(termination);
        self.changed.notify_all();
    }

    pub(crate) fn get(&self) -> Option<Termination> {
        self.lock().clone()
    }

    /// Waits for a reason, for `timeout` at most.
    pub(crate) fn wait(&self, timeout: Duration) -> Option<Termination> {
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), timeout, |termination| termination.is_none());
        let (guard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        guard.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Termination>> {
        // No update can be left incomplete by a panic.
        self.termination
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
