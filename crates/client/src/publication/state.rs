//! What the conductor and the user's handle of a publication share.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::callback::Callback;

/// One registration of a publication.
#[derive(Debug)]
pub(crate) struct PublicationState {
    /// Of this registration.
    pub(crate) registration_id: i64,
    /// Of the registration that made the stream; shared publications of one stream have it in common.
    pub(crate) original_registration_id: i64,
    /// Counter id of the channel's status indicator; −1 if it has none.
    pub(crate) status_counter_id: i32,
    closed: AtomicBool,
    /// Held by the conductor while it calls back about this publication.
    gate: Callback<()>,
}

impl PublicationState {
    pub(crate) fn new(
        registration_id: i64,
        original_registration_id: i64,
        status_counter_id: i32,
    ) -> Self {
        Self {
            registration_id,
            original_registration_id,
            status_counter_id,
            closed: AtomicBool::new(false),
            gate: Callback::new(Some(Box::new(()))),
        }
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        // Acquire: partner of the release in `mark_closed`.
        self.closed.load(Ordering::Acquire)
    }

    /// Ends all use of it; true the first time.
    pub(crate) fn mark_closed(&self) -> bool {
        !self.closed.swap(true, Ordering::AcqRel)
    }

    /// Runs a callback about this publication unless it was closed.
    pub(crate) fn call_back(&self, call: impl FnOnce()) {
        // A panic of the user's function is caught where that is called.
        drop(self.gate.call(|()| call()));
    }

    /// Waits for a callback in progress; there is none afterwards.
    pub(crate) fn end_callbacks(&self) {
        self.gate.take_away();
    }
}
