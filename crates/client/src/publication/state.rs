// SPDX-License-Identifier: Apache-2.0
//! State shared by the conductor and the user's handles of a publication.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use taran_protocol::log::LogBuffers;

use crate::callback::Callback;
use crate::client_core::ClientCore;
use crate::client_state::CloseReason;
use crate::close_mark::CloseMark;
use crate::error::CommandError;
use crate::pending::Pending;
use crate::removal::ResourceKind;

/// State of one registration of a publication.
#[derive(Debug)]
pub(crate) struct PublicationState {
    /// Registration id of this publication.
    pub(crate) registration_id: i64,
    /// Registration id of the publication that created the stream; the same for all publications that share it.
    pub(crate) original_registration_id: i64,
    /// Counter id of the channel's status indicator; −1 if it has none.
    pub(crate) status_counter_id: i32,
    log: Arc<LogBuffers>,
    closed: CloseMark,
    /// Set if closing the publication revokes the stream.
    revoke_on_close: AtomicBool,
    /// Held by the conductor while it runs a callback about this publication.
    callback_gate: Callback<()>,
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
            closed: CloseMark::default(),
            revoke_on_close: AtomicBool::new(false),
            callback_gate: Callback::new(Some(Box::new(()))),
        }
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_closed()
    }

    /// Returns why the publication is closed; [`CloseReason::Closed`] while it is open.
    pub(crate) fn close_reason(&self) -> CloseReason {
        self.closed.reason().unwrap_or(CloseReason::Closed)
    }

    /// Marks the publication as closed. Returns true on the first call.
    pub(crate) fn mark_closed(&self, reason: CloseReason) -> bool {
        self.closed.close(reason)
    }

    pub(crate) fn revoke_on_close(&self) {
        // Relaxed: the application orders this call before the close, which reads it.
        self.revoke_on_close.store(true, Ordering::Relaxed);
    }

    /// Runs a callback about this publication unless it is closed.
    pub(crate) fn run_callback(&self, call: impl FnOnce()) {
        // A panic of the user's function is caught where the function is called.
        drop(self.callback_gate.call(|()| call()));
    }

    /// Waits for a callback in progress; none runs afterwards.
    pub(crate) fn end_callbacks(&self) {
        self.callback_gate.disable();
    }
}

impl ClientCore {
    /// Closes one registration of a publication; the driver ends the stream when its last registration is closed. The
    /// result is available when the driver has removed the registration.
    pub(crate) fn close_publication(
        self: &Arc<Self>,
        state: &PublicationState,
    ) -> Result<Pending<()>, CommandError> {
        let is_first = state.mark_closed(CloseReason::Closed);
        state.end_callbacks();
        if !is_first {
            return Err(state.close_reason().into());
        }
        self.resource_linger.add(Arc::clone(&state.log));
        let registration_id = state.registration_id;
        drop(self.registry().publications.remove(&registration_id));
        let revoke = state.revoke_on_close.load(Ordering::Relaxed);
        self.request_removal(ResourceKind::Publication, registration_id, revoke)
    }
}
