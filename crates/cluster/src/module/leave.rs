// SPDX-License-Identifier: Apache-2.0
//! The end of a member that is prepared by its agent, between the thread that ends the member and that of the agent.
//!
//! [`Leave::request`] asks the agent, and waits for [`Leave::complete`], which the agent calls once it is prepared or has ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A request to prepare the end.
#[derive(Debug, Default)]
pub(super) struct Leave {
    is_requested: AtomicBool,
    is_complete: Mutex<bool>,
    completed: Condvar,
}

impl Leave {
    /// Asks the agent to prepare its end, and waits until it has, up to `limit`. `wake` ends a pause of the agent.
    pub(super) fn request(&self, limit: Duration, wake: impl FnOnce()) {
        self.is_requested.store(true, Ordering::Release);
        wake();
        let is_complete = self.is_complete.lock();
        let is_complete = is_complete.unwrap_or_else(PoisonError::into_inner);
        // The member ends anyway, prepared or not.
        drop(
            self.completed
                .wait_timeout_while(is_complete, limit, |complete| !*complete),
        );
    }

    /// Returns true if the end is requested.
    pub(super) fn is_requested(&self) -> bool {
        self.is_requested.load(Ordering::Acquire)
    }

    /// Ends the wait of the thread that has asked.
    pub(super) fn complete(&self) {
        let is_complete = self.is_complete.lock();
        *is_complete.unwrap_or_else(PoisonError::into_inner) = true;
        self.completed.notify_all();
    }
}
