// SPDX-License-Identifier: Apache-2.0
//! Counters that applications allocate.

use std::sync::Arc;

use taran_core::counters::Counter as SharedCounter;

use crate::client_core::ClientCore;
use crate::client_state::CloseReason;
use crate::close_mark::CloseMark;
use crate::error::CommandError;
use crate::pending::Pending;
use crate::removal::ResourceKind;

/// State shared by the conductor and the user's handles of a counter.
#[derive(Debug)]
pub(crate) struct CounterState {
    registration_id: i64,
    closed: CloseMark,
}

impl CounterState {
    pub(crate) fn new(registration_id: i64) -> Self {
        Self {
            registration_id,
            closed: CloseMark::default(),
        }
    }

    /// Marks the counter as closed. Returns true on the first call.
    pub(crate) fn mark_closed(&self, reason: CloseReason) -> bool {
        self.closed.close(reason)
    }
}

#[derive(Debug)]
pub(crate) struct CounterHandle {
    client: Arc<ClientCore>,
    state: Arc<CounterState>,
    counter: SharedCounter,
    is_static: bool,
}

impl Drop for CounterHandle {
    fn drop(&mut self) {
        // An error means that it was closed before, or with its client.
        drop(self.close());
    }
}

impl CounterHandle {
    fn close(&self) -> Result<Option<Pending<()>>, CommandError> {
        if self.is_static {
            self.state.mark_closed(CloseReason::Closed);
            return Ok(None);
        }
        self.client.close_counter(&self.state).map(Some)
    }
}

impl ClientCore {
    /// Closes a counter and requests its removal. The result is available when the driver has freed the counter.
    pub(crate) fn close_counter(
        self: &Arc<Self>,
        state: &CounterState,
    ) -> Result<Pending<()>, CommandError> {
        if !state.mark_closed(CloseReason::Closed) {
            let reason = state.closed.reason().unwrap_or(CloseReason::Closed);
            return Err(reason.into());
        }
        drop(self.registry().counters.remove(&state.registration_id));
        self.request_removal(ResourceKind::Counter, state.registration_id, false)
    }
}

/// A 64-bit counter in shared memory that this client has allocated and every process on the machine can read.
///
/// A handle is cheap to clone; all clones refer to the same counter. The driver frees the counter when it is closed,
/// when the last clone is dropped, or when the client closes; a static counter stays allocated. After the close, reads
/// return the last value and writes have no effect, because the memory may belong to another counter.
///
/// ```
/// # fn main() -> Result<(), taran::Error> {
/// # let driver = taran_driver::MediaDriver::launch_embedded(
/// #     taran_driver::DriverContext::new().ipc_term_buffer_length(65_536),
/// # ).unwrap();
/// # let directory = driver.aeron_dir();
/// # let client = taran::Client::builder().aeron_dir(directory).connect()?;
/// let orders = client.add_counter(1_101, b"desk 7", "orders")?;
/// orders.increment();
/// orders.add(41);
/// assert_eq!(orders.get(), 42);
/// // Any process can read it.
/// assert_eq!(client.counters().value(orders.id()), Some(42));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[doc(alias = "AtomicCounter")]
pub struct Counter(Arc<CounterHandle>);

impl Counter {
    pub(crate) fn new(
        client: Arc<ClientCore>,
        state: Arc<CounterState>,
        counter: SharedCounter,
        is_static: bool,
    ) -> Self {
        Self(Arc::new(CounterHandle {
            client,
            state,
            counter,
            is_static,
        }))
    }

    pub(crate) fn from_handle(handle: Arc<CounterHandle>) -> Self {
        Self(handle)
    }

    pub(crate) fn handle(&self) -> &Arc<CounterHandle> {
        &self.0
    }

    /// Returns the counter unless it is closed.
    #[inline]
    fn writable(&self) -> Option<&SharedCounter> {
        // A write that races with a close changes a counter that the driver does not reuse for another second.
        (!self.0.state.closed.is_closed()).then_some(&self.0.counter)
    }

    /// Returns the id of the counter, by which [`CountersReader`](crate::CountersReader) finds it.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.0.counter.id()
    }

    /// Returns the registration id of the counter.
    #[must_use]
    pub fn registration_id(&self) -> i64 {
        self.0.state.registration_id
    }

    /// Returns the label as other processes see it; `None` if the counter is closed.
    #[must_use]
    pub fn label(&self) -> Option<String> {
        self.writable()?;
        self.0
            .client
            .counters()
            .label(self.id())
            .map(|label| label.as_str().to_owned())
    }

    /// Appends to the label, up to a total of 380 bytes. Returns false if the counter is closed. Must not be called by
    /// several threads at once.
    pub fn append_label(&self, text: &str) -> bool {
        self.writable().is_some() && self.0.client.counters().append_label(self.id(), text)
    }

    /// Replaces the label, truncated to 380 bytes. Returns false if the counter is closed. Must not be called by
    /// several threads at once.
    pub fn set_label(&self, text: &str) -> bool {
        self.writable().is_some() && self.0.client.counters().set_label(self.id(), text)
    }

    /// Replaces the key, truncated to 112 bytes. Returns false if the counter is closed. Must not be called by several
    /// threads at once.
    pub fn set_key(&self, key: &[u8]) -> bool {
        self.writable().is_some() && self.0.client.counters().set_key(self.id(), key)
    }

    /// Sets the reference id, whose meaning depends on the type of the counter. Returns false if the counter is closed.
    pub fn set_reference_id(&self, reference_id: i64) -> bool {
        let counter = self.writable();
        if let Some(counter) = counter {
            counter.set_reference_id(reference_id);
        }
        counter.is_some()
    }

    /// Returns the value (acquire).
    #[inline]
    #[must_use]
    pub fn get(&self) -> i64 {
        self.0.counter.get()
    }

    /// Sets the value (release): a process that reads it also sees all earlier writes of this thread.
    #[inline]
    pub fn set(&self, value: i64) {
        if let Some(counter) = self.writable() {
            counter.set(value);
        }
    }

    /// Adds 1 and returns the previous value. Any number of threads may call it at once.
    #[inline]
    pub fn increment(&self) -> i64 {
        self.add(1)
    }

    /// Adds `delta`, wrapping around, and returns the previous value. Any number of threads may call it at once.
    #[inline]
    pub fn add(&self, delta: i64) -> i64 {
        match self.writable() {
            Some(counter) => counter.add(delta),
            None => self.get(),
        }
    }

    /// Sets the value and returns the previous one. Any number of threads may call it at once.
    #[inline]
    pub fn swap(&self, value: i64) -> i64 {
        match self.writable() {
            Some(counter) => counter.swap(value),
            None => self.get(),
        }
    }

    /// Sets the value to `new` if it is `current`, and returns the previous value. Any number of threads may call it at
    /// once.
    ///
    /// # Errors
    /// The actual value, if it differs from `current` or the counter is closed.
    #[inline]
    pub fn compare_exchange(&self, current: i64, new: i64) -> Result<i64, i64> {
        match self.writable() {
            Some(counter) => counter.compare_exchange(current, new),
            None => Err(self.get()),
        }
    }

    /// Raises the value to `proposed` if it is lower. Returns true if it was raised. Must not be called by several
    /// threads at once.
    #[inline]
    pub fn propose_max(&self, proposed: i64) -> bool {
        self.writable()
            .is_some_and(|counter| counter.propose_max(proposed))
    }

    /// Returns true if the counter or its client is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.state.closed.is_closed()
    }

    /// Returns why the counter is closed; `None` while it is open. The first reason is kept: a counter that the
    /// application has closed stays [`CloseReason::Closed`] if the driver is lost later.
    #[must_use]
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.0.state.closed.reason()
    }

    /// Closes the counter for all clones. A static counter stays allocated.
    pub fn close(&self) {
        drop(self.async_close());
    }

    /// Like [`close`](Self::close). The result is available when the driver has freed the counter; `None` for a static
    /// counter, which the driver keeps.
    ///
    /// # Errors
    /// The counter or its client is closed already.
    pub fn async_close(&self) -> Result<Option<Pending<()>>, CommandError> {
        self.0.close()
    }
}
