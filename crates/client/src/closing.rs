// SPDX-License-Identifier: Apache-2.0
//! Closing a client, by the application or because the driver was lost.
//!
//! In both cases all resources of the client are closed first, then the close handlers run, then all callbacks are
//! disabled. Only the first close takes effect; a concurrent call of `close` waits until the first has finished with
//! callbacks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use taran_protocol::command::Command;

use crate::callback::thread_token;
use crate::client_core::ClientCore;
use crate::client_state::CloseReason;
use crate::error::{ClientError, CommandError, Lost};
use crate::image::ImageView;
use crate::registry::Registry;
use crate::subscription::SubscriptionState;
use crate::trace::event;

/// Correlation id of a command without a response.
const NO_RESPONSE: i64 = -1;

/// Makes a concurrent call of `close` wait for the first.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    /// Token of the thread that closes the client; 0 before.
    closing_thread: AtomicUsize,
    is_done: Mutex<bool>,
    done: Condvar,
}

impl Closing {
    fn begin(&self) {
        self.closing_thread.store(thread_token(), Ordering::Relaxed);
    }

    fn finish(&self) {
        *self.is_done.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.done.notify_all();
    }

    fn is_closing_thread(&self) -> bool {
        // Relaxed: only this thread can have stored its own token.
        self.closing_thread.load(Ordering::Relaxed) == thread_token()
    }

    fn wait(&self) {
        let is_done = self.is_done.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.done.wait_while(is_done, |is_done| !*is_done));
    }
}

impl ClientCore {
    /// Closes the client for the application. After this has returned no callback runs, except that a callback that
    /// closes the client finishes its own call.
    pub(crate) fn close(&self) {
        let in_callback = self.is_in_duty_cycle();
        if self.state.close(CloseReason::Closed) {
            event!(info, "client closed", client_id = self.client_id);
            self.closing.begin();
            self.close_by_application(in_callback);
            self.closing.finish();
        } else if !in_callback {
            self.wait_for_duty_cycle();
            // A loss is processed within a duty cycle, which has ended; a close by the application may still be in
            // progress.
            if self.state.close_reason() == CloseReason::Closed && !self.closing.is_closing_thread()
            {
                self.closing.wait();
            }
        }
        self.stop_thread();
    }

    fn close_by_application(&self, in_callback: bool) {
        let closed = self.close_resources(CloseReason::Closed);
        if !in_callback {
            self.wait_for_duty_cycle();
        }
        for (subscription, _) in &closed {
            subscription.end_callbacks();
        }
        self.handlers
            .run_all("close", &self.handlers.close, |handler| {
                handler(CloseReason::Closed);
            });
        self.handlers.disable();
        if !self.settings.close_linger.is_zero() {
            std::thread::sleep(self.settings.close_linger);
        }
        // If the buffer stays full the driver removes the client when its heartbeat stops.
        self.send_best_effort(&Command::ClientClose {
            client_id: self.client_id,
            correlation_id: NO_RESPONSE,
        });
        self.resource_linger.release_all();
    }

    /// Closes a client whose driver is gone or has timed it out. Called by the conductor.
    pub(crate) fn lose(&self, lost: Lost) {
        let reason = CloseReason::Lost(lost);
        if !self.state.close(reason) {
            return;
        }
        event!(
            warn,
            "media driver lost",
            client_id = self.client_id,
            reason = lost
        );
        for (subscription, images) in self.close_resources(reason) {
            for image in images {
                subscription.notify_unavailable(&self.handlers, &image);
            }
            subscription.end_callbacks();
        }
        self.handlers.report(&ClientError::Lost(lost));
        self.handlers
            .run_all("close", &self.handlers.close, |handler| handler(reason));
        self.handlers.disable();
        self.resource_linger.release_all();
    }

    /// Closes all resources and fails all pending commands. Returns the subscriptions with the images that they had.
    fn close_resources(
        &self,
        reason: CloseReason,
    ) -> Vec<(Arc<SubscriptionState>, Vec<ImageView>)> {
        let registry = {
            let mut registry = self.registry();
            let taken = std::mem::take(&mut *registry);
            self.update_pending_commands(&registry);
            taken
        };
        let Registry {
            in_flight,
            publications,
            subscriptions,
            counters,
            static_counters,
            ..
        } = registry;
        for entry in publications.values() {
            entry.state.mark_closed(reason);
        }
        for entry in counters.values() {
            entry.state.mark_closed(reason);
        }
        for counter in static_counters.iter().filter_map(std::sync::Weak::upgrade) {
            counter.mark_closed(reason);
        }
        let closed = subscriptions.into_values().map(|subscription| {
            let images = subscription.close(reason);
            (subscription, images)
        });
        let closed = closed.collect();
        let error = CommandError::from(reason);
        for in_flight in in_flight.into_values() {
            in_flight.request.fail(error.clone());
        }
        closed
    }
}
