//! Whether a client is still in use, and if not, why.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{AddError, Lost, OfferError, PollError};

/// How a client ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEnd {
    /// Closed by its owner.
    Closed,
    /// Without anybody asking for it.
    Lost(Lost),
}

/// Open, then ended for ever. The first end counts.
#[derive(Debug, Default)]
pub(crate) struct Life {
    end: OnceLock<ClientEnd>,
    over: AtomicBool,
}

impl Life {
    pub(crate) fn is_over(&self) -> bool {
        // Acquire: partner of the release in `end`.
        self.over.load(Ordering::Acquire)
    }

    pub(crate) fn check(&self) -> Result<(), ClientEnd> {
        if self.is_over() {
            Err(self.reason())
        } else {
            Ok(())
        }
    }

    /// Why it is over. Asked while it is open, the answer is the owner's close: whoever asks has closed its own
    /// handle.
    pub(crate) fn reason(&self) -> ClientEnd {
        self.end.get().copied().unwrap_or(ClientEnd::Closed)
    }

    /// Ends it; false if it was over already.
    pub(crate) fn end(&self, end: ClientEnd) -> bool {
        let first = self.end.set(end).is_ok();
        // Release: who sees the end sees its reason.
        self.over.store(true, Ordering::Release);
        first
    }
}

impl From<ClientEnd> for AddError {
    fn from(end: ClientEnd) -> Self {
        match end {
            ClientEnd::Closed => Self::Closed,
            ClientEnd::Lost(lost) => Self::DriverLost(lost),
        }
    }
}

impl From<ClientEnd> for OfferError {
    fn from(end: ClientEnd) -> Self {
        match end {
            ClientEnd::Closed => Self::Closed,
            ClientEnd::Lost(lost) => Self::DriverLost(lost),
        }
    }
}

impl From<ClientEnd> for PollError {
    fn from(end: ClientEnd) -> Self {
        match end {
            ClientEnd::Closed => Self::Closed,
            ClientEnd::Lost(lost) => Self::DriverLost(lost),
        }
    }
}
