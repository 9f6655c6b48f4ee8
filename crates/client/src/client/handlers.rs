// SPDX-License-Identifier: Apache-2.0
//! Handlers that are added and removed while the client is open.

use taran_core::counters::CountersReader;

use super::Client;
use crate::callback::CallbackList;
use crate::client_state::CloseReason;
use crate::error::CommandError;
use crate::handlers::HandlerId;

/// Any number of handlers can be added to those of the [`ClientBuilder`](crate::ClientBuilder). They are called after the handler
/// of the builder, in the order in which they were added.
impl Client {
    /// Calls `handler` whenever a counter of any client was allocated. Its arguments are the counters, the registration
    /// id and the counter id. Existing counters are found with [`counters`](Self::counters).
    ///
    /// # Errors
    /// The client is closed.
    pub fn add_available_counter_handler(
        &self,
        handler: impl FnMut(&CountersReader, i64, i32) + Send + 'static,
    ) -> Result<HandlerId, CommandError> {
        self.add_handler(&self.core().handlers.available_counter, Box::new(handler))
    }

    /// Calls `handler` whenever a counter of any client is about to be freed. Its arguments are the counters, the
    /// registration id and the counter id.
    ///
    /// # Errors
    /// The client is closed.
    pub fn add_unavailable_counter_handler(
        &self,
        handler: impl FnMut(&CountersReader, i64, i32) + Send + 'static,
    ) -> Result<HandlerId, CommandError> {
        self.add_handler(&self.core().handlers.unavailable_counter, Box::new(handler))
    }

    /// Calls `handler` once when the client is closed or lost.
    ///
    /// # Errors
    /// The client is closed already.
    pub fn add_close_handler(
        &self,
        handler: impl FnMut(CloseReason) + Send + 'static,
    ) -> Result<HandlerId, CommandError> {
        self.add_handler(&self.core().handlers.close, Box::new(handler))
    }

    /// Removes a handler. After this has returned the handler does not run, except that a handler that removes itself
    /// finishes its own call. Returns false if the handler was removed before or the client is closed.
    pub fn remove_handler(&self, id: HandlerId) -> bool {
        let (handlers, HandlerId(id)) = (&self.core().handlers, id);
        handlers.available_counter.remove(id)
            || handlers.unavailable_counter.remove(id)
            || handlers.close.remove(id)
    }

    fn add_handler<F: ?Sized>(
        &self,
        list: &CallbackList<F>,
        handler: Box<F>,
    ) -> Result<HandlerId, CommandError> {
        let state = &self.core().state;
        state.check_open()?;
        let id = self.next_correlation_id();
        if list.add(id, handler) {
            Ok(HandlerId(id))
        } else {
            Err(state.close_reason().into())
        }
    }
}
