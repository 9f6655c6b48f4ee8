// SPDX-License-Identifier: Apache-2.0
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
    /// An agent of the driver panicked or ended; the driver does not work any more.
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

/// Reason for closing the driver, observed by all waiting threads. The first one stays, but the failure of an added agent
/// gives way to any other, because the driver works on after it.
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
        let mut current = self.lock();
        if matches!(*current, None | Some(Termination::AgentFailed(_)))
            && !(current.is_some() && matches!(termination, Termination::AgentFailed(_)))
        {
            *current = Some(termination);
        }
        drop(current);
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

#[cfg(test)]
mod tests {
    use taran_core::agent::AgentEnd;

    use super::*;

    fn failed(agent: &str) -> AgentEvent {
        AgentEvent::Ended {
            agent: agent.to_owned(),
            end: AgentEnd::failed(std::io::Error::other("no space")),
        }
    }

    #[test]
    fn signal_after_failure_of_added_agent_becomes_any_other_reason() {
        let signal = ShutdownSignal::default();
        signal.agent_failed(failed("first"));
        signal.agent_failed(failed("second"));
        let Some(Termination::AgentFailed(event)) = signal.get() else {
            panic!("{:?}", signal.get());
        };
        assert_eq!(event.agent(), "first");

        signal.request();
        signal.agent_failed(failed("third"));
        signal.fail("receiver panicked".to_owned());
        assert!(matches!(signal.get(), Some(Termination::Requested)));
    }
}
