//! What the conductor and the user's handle of a publication share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use taran_protocol::log::LogBuffers;

use crate::callback::Callback;
use crate::error::AddError;
use crate::link::Link;
use crate::pending::Pending;
use crate::removal::Kind;

/// One registration of a publication.
#[derive(Debug)]
pub(crate) struct PublicationState {
    /// Of this registration.
    pub(crate) registration_id: i64,
    /// Of the registration that made the stream; shared publications of one stream have it in common.
    pub(crate) original_registration_id: i64,
    /// Counter id of the channel's status indicator; −1 if it has none.
    pub(crate) status_counter_id: i32,
    log: Arc<LogBuffers>,
    closed: AtomicBool,
    /// Whether closing it ends the stream at once.
    revoke_on_close: AtomicBool,
    /// Held by the conductor while it calls back about this publication.
    gate: Callback<()>,
}

impl PublicationState {
    pub(crate) fn new(
        registration_id: i64,
        original_registration_id: i64,
        status_counter_id: i32,
        log: Arc<LogBuffers>,
    ) -> Self {
        Self {
            registration_id,
            original_registration_id,
            status_counter_id,
            log,
            closed: AtomicBool::new(false),
            revoke_on_close: AtomicBool::new(false),
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

    pub(crate) fn revoke_on_close(&self) {
        // Relaxed: read by the thread that closes, which is told by the user's own ordering.
        self.revoke_on_close.store(true, Ordering::Relaxed);
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

impl Link {
    /// Closes one registration of a publication; the driver ends the stream when its last one is gone. Answers when it
    /// has heard.
    pub(crate) fn close_publication(
        self: &Arc<Self>,
        state: &PublicationState,
    ) -> Result<Pending<()>, AddError> {
        let is_first = state.mark_closed();
        state.end_callbacks();
        if !is_first {
            return Err(self.life.reason().into());
        }
        self.lingering.keep(Arc::clone(&state.log));
        let registration_id = state.registration_id;
        drop(self.registry().publications.remove(&registration_id));
        let revoke = state.revoke_on_close.load(Ordering::Relaxed);
        self.give_back(Kind::Publication, registration_id, revoke)
    }
}
