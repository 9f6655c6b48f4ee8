//! Handlers that come and go while the client is in use.

use taran_core::counters::CountersReader;

use super::Client;
use crate::callback::CallbackList;
use crate::error::AddError;
use crate::handlers::HandlerId;
use crate::life::ClientEnd;

/// Besides the handlers set with the [`Context`](crate::Context) there may be any number of others, which are called
/// after them in the order in which they were added.
impl Client {
    /// From now on calls `handler` with the counters, the registration id and the id when any client's counter is
    /// allocated. Counters that there are already can be found with [`counters`](Self::counters).
    ///
    /// # Errors
    /// The client has ended.
    pub fn add_available_counter_handler(
        &self,
        handler: impl FnMut(&CountersReader, i64, i32) + Send + 'static,
    ) -> Result<HandlerId, AddError> {
        self.add_handler(&self.link().handlers.available_counter, Box::new(handler))
    }

    /// From now on calls `handler` with the counters, the registration id and the id when any client's counter is about
    /// to be freed.
    ///
    /// # Errors
    /// The client has ended.
    pub fn add_unavailable_counter_handler(
        &self,
        handler: impl FnMut(&CountersReader, i64, i32) + Send + 'static,
    ) -> Result<HandlerId, AddError> {
        self.add_handler(&self.link().handlers.unavailable_counter, Box::new(handler))
    }

    /// Calls `handler` once, when the client has ended.
    ///
    /// # Errors
    /// The client has ended already.
    pub fn add_close_handler(
        &self,
        handler: impl FnMut(ClientEnd) + Send + 'static,
    ) -> Result<HandlerId, AddError> {
        self.add_handler(&self.link().handlers.close, Box::new(handler))
    }

    /// Removes a handler; when it has returned the handler does not run, and never will again, unless it was called by
    /// the handler itself. False if it was removed before, or the client has ended.
    pub fn remove_handler(&self, id: HandlerId) -> bool {
        let (handlers, HandlerId(id)) = (&self.link().handlers, id);
        handlers.available_counter.remove(id)
            || handlers.unavailable_counter.remove(id)
            || handlers.close.remove(id)
    }

    fn add_handler<F: ?Sized>(
        &self,
        list: &CallbackList<F>,
        handler: Box<F>,
    ) -> Result<HandlerId, AddError> {
        let life = &self.link().life;
        life.check()?;
        let id = self.next_correlation_id();
        if list.add(id, handler) {
            Ok(HandlerId(id))
        } else {
            Err(life.reason().into())
        }
    }
}
