//! That a driver shall end, and why: from its agents to whoever waits for it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Why a driver shall end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Termination {
    /// A client asked for it, and was allowed to.
    Requested,
    /// An agent panicked: the driver does not work any more.
    Failed(String),
}

/// Set once, seen by everybody who waits.
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

    fn set(&self, termination: Termination) {
        self.lock().get_or_insert(termination);
        self.changed.notify_all();
    }

    pub(crate) fn get(&self) -> Option<Termination> {
        self.lock().clone()
    }

    /// Waits until the driver shall end, or for `timeout` at most.
    pub(crate) fn wait(&self, timeout: Duration) -> Option<Termination> {
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), timeout, |termination| termination.is_none());
        let (guard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        guard.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Termination>> {
        // There is nothing to be left half done.
        self.termination
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
