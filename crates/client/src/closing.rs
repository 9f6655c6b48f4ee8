//! The end of a client, asked for or not.
//!
//! Whichever way it ends, first everything that was made through it is closed, then the user is told, then no callback
//! is left that could run. The first end counts; a second closer only waits until the first is done with callbacks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use taran_protocol::command::Command;

use crate::callback::thread_token;
use crate::error::{AddError, ClientError, Lost};
use crate::image::ImageView;
use crate::life::ClientEnd;
use crate::link::Link;
use crate::registry::Registry;
use crate::subscription::SubscriptionState;

/// Correlation id of a command that nobody answers.
const NO_ANSWER: i64 = -1;

/// Lets a second closer wait for the first.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    /// Token of the thread that closes; 0 before.
    closer: AtomicUsize,
    is_done: Mutex<bool>,
    done: Condvar,
}

impl Closing {
    fn begin(&self) {
        self.closer.store(thread_token(), Ordering::Relaxed);
    }

    fn finish(&self) {
        *self.is_done.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.done.notify_all();
    }

    fn is_mine(&self) -> bool {
        // Relaxed is enough: only this very thread can have stored its own token.
        self.closer.load(Ordering::Relaxed) == thread_token()
    }

    fn wait(&self) {
        let is_done = self.is_done.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.done.wait_while(is_done, |is_done| !*is_done));
    }
}

impl Link {
    /// The owner's close. Once it has returned nothing is called back, unless it was called inside a callback: then
    /// nothing is after that.
    pub(crate) fn close(&self) {
        let inside = self.is_in_duty_cycle();
        if self.life.end(ClientEnd::Closed) {
            self.closing.begin();
            self.close_as_owner(inside);
            self.closing.finish();
        } else if !inside {
            self.wait_for_turn();
            // A lost client was ended inside a turn; only an owner's close goes on outside.
            if self.life.reason() == ClientEnd::Closed && !self.closing.is_mine() {
                self.closing.wait();
            }
        }
        self.stop_thread();
    }

    fn close_as_owner(&self, inside: bool) {
        let ended = self.end_resources(&ClientEnd::Closed.into());
        if !inside {
            self.wait_for_turn();
        }
        for (subscription, _) in &ended {
            subscription.end_callbacks();
        }
        self.handlers
            .run_all("close", &self.handlers.close, |handler| {
                handler(ClientEnd::Closed);
            });
        self.handlers.take_away();
        if !self.settings.close_linger.is_zero() {
            std::thread::sleep(self.settings.close_linger);
        }
        // If the buffer stays full the driver finds out by the missing heartbeat.
        self.send_now(&Command::ClientClose {
            client_id: self.client_id,
            correlation_id: NO_ANSWER,
        });
        self.lingering.release_all();
    }

    /// The driver is gone, or has given this client up. Called by the conductor.
    pub(crate) fn lose(&self, lost: Lost) {
        let end = ClientEnd::Lost(lost);
        if !self.life.end(end) {
            return;
        }
        for (subscription, images) in self.end_resources(&end.into()) {
            for image in images {
                subscription.tell_unavailable(&self.handlers, &image);
            }
            subscription.end_callbacks();
        }
        self.handlers.report(&ClientError::Lost(lost));
        self.handlers
            .run_all("close", &self.handlers.close, |handler| handler(end));
        self.handlers.take_away();
        self.lingering.release_all();
    }

    /// Closes all that was made through the client and fails what is still waited for. Returns the subscriptions with
    /// the images they had.
    fn end_resources(&self, error: &AddError) -> Vec<(Arc<SubscriptionState>, Vec<ImageView>)> {
        let ended = {
            let mut registry = self.registry();
            let ended = std::mem::take(&mut *registry);
            self.note_in_flight(&registry);
            ended
        };
        let Registry {
            in_flight,
            publications,
            subscriptions,
            counters,
            static_counters,
            ..
        } = ended;
        for entry in publications.values() {
            entry.state.mark_closed();
        }
        for entry in counters.values() {
            entry.state.mark_closed();
        }
        for counter in static_counters.iter().filter_map(std::sync::Weak::upgrade) {
            counter.mark_closed();
        }
        let closed = subscriptions.into_values().map(|subscription| {
            let images = subscription.close();
            (subscription, images)
        });
        let closed = closed.collect();
        for in_flight in in_flight.into_values() {
            in_flight.wish.fail(error.clone());
        }
        closed
    }
}
