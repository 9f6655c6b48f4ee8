// SPDX-License-Identifier: Apache-2.0
//! State of a client: open, or closed for a reason.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{CommandError, Lost, OfferError, PollError};

/// Reason why a client or a counter is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// The application closed it or dropped its last clone, or closed the client of the counter.
    Closed,
    /// The client lost its driver, or the driver timed it out, while it was open.
    Lost(Lost),
}

impl CloseReason {
    /// Returns the reason of the loss; `None` if the application closed the client or the counter.
    #[must_use]
    pub fn lost(&self) -> Option<Lost> {
        match self {
            Self::Closed => None,
            Self::Lost(lost) => Some(*lost),
        }
    }
}

impl std::fmt::Display for CloseReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed => f.write_str("the application has closed it"),
            Self::Lost(lost) => lost.fmt(f),
        }
    }
}

/// Open, then closed for good. The first reason is kept.
#[derive(Debug, Default)]
pub(crate) struct ClientState {
    reason: OnceLock<CloseReason>,
    closed: AtomicBool,
}

impl ClientState {
    pub(crate) fn is_closed(&self) -> bool {
        // Acquire: pairs with the release in `close`.
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn check_open(&self) -> Result<(), CloseReason> {
        if self.is_closed() {
            Err(self.close_reason())
        } else {
            Ok(())
        }
    }

    /// Returns the reason of the close. While the client is open this is [`CloseReason::Closed`]: a handle that gets an
    /// error although its client is open was closed by the application.
    pub(crate) fn close_reason(&self) -> CloseReason {
        self.reason.get().copied().unwrap_or(CloseReason::Closed)
    }

    /// Closes the client. Returns false if it was closed already.
    pub(crate) fn close(&self, reason: CloseReason) -> bool {
        let is_first = self.reason.set(reason).is_ok();
        // Release: a thread that reads `closed` as true also reads the reason.
        self.closed.store(true, Ordering::Release);
        is_first
    }
}

impl From<CloseReason> for CommandError {
    fn from(reason: CloseReason) -> Self {
        match reason {
            CloseReason::Closed => Self::Closed,
            CloseReason::Lost(lost) => Self::DriverLost(lost),
        }
    }
}

impl From<CloseReason> for OfferError {
    fn from(reason: CloseReason) -> Self {
        match reason {
            CloseReason::Closed => Self::Closed,
            CloseReason::Lost(lost) => Self::DriverLost(lost),
        }
    }
}

impl From<CloseReason> for PollError {
    fn from(reason: CloseReason) -> Self {
        match reason {
            CloseReason::Closed => Self::Closed,
            CloseReason::Lost(lost) => Self::DriverLost(lost),
        }
    }
}
