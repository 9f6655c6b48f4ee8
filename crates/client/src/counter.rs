//! Counters of the application.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use taran_core::counters::Counter as SharedCounter;

use crate::error::AddError;
use crate::link::Link;
use crate::pending::Pending;
use crate::removal::Kind;

/// What the conductor and the user's handle of a counter share.
#[derive(Debug)]
pub(crate) struct CounterState {
    registration_id: i64,
    closed: AtomicBool,
}

impl CounterState {
    pub(crate) fn new(registration_id: i64) -> Self {
        Self {
            registration_id,
            closed: AtomicBool::new(false),
        }
    }

    /// Ends all use of it; true the first time.
    pub(crate) fn mark_closed(&self) -> bool {
        !self.closed.swap(true, Ordering::AcqRel)
    }
}

#[derive(Debug)]
pub(crate) struct CounterHandle {
    link: Arc<Link>,
    state: Arc<CounterState>,
    counter: SharedCounter,
    is_static: bool,
}

impl Drop for CounterHandle {
    fn drop(&mut self) {
        // An error says that it was closed before, or with its client.
        drop(self.close());
    }
}

impl CounterHandle {
    fn close(&self) -> Result<Option<Pending<()>>, AddError> {
        if self.is_static {
            self.state.mark_closed();
            return Ok(None);
        }
        self.link.close_counter(&self.state).map(Some)
    }
}

impl Link {
    /// Ends the use of a counter and has the driver free it. Answers when it has.
    pub(crate) fn close_counter(
        self: &Arc<Self>,
        state: &CounterState,
    ) -> Result<Pending<()>, AddError> {
        if !state.mark_closed() {
            return Err(self.life.reason().into());
        }
        drop(self.registry().counters.remove(&state.registration_id));
        self.give_back(Kind::Counter, state.registration_id, false)
    }
}

/// A counter that this client has allocated: 64 bits that every process on the machine can watch.
///
/// A handle is cheap to clone; clones are the same counter. The counter is freed when it is closed, when the last
/// clone is dropped, or when the client ends; a static counter stays. A closed counter keeps its last value for its
/// readers, and its writers have no effect: the memory may belong to another counter by then.
#[derive(Clone, Debug)]
pub struct Counter(Arc<CounterHandle>);

impl Counter {
    pub(crate) fn new(
        link: Arc<Link>,
        state: Arc<CounterState>,
        counter: SharedCounter,
        is_static: bool,
    ) -> Self {
        Self(Arc::new(CounterHandle {
            link,
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

    /// The counter, if this handle may still write it.
    #[inline]
    fn open(&self) -> Option<&SharedCounter> {
        // Relaxed: a write that races with a close goes to a counter that the driver does not give away for another
        // second.
        (!self.0.state.closed.load(Ordering::Relaxed)).then_some(&self.0.counter)
    }

    /// Id under which readers find the counter.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.0.counter.id()
    }

    /// Registration id of the counter.
    #[must_use]
    pub fn registration_id(&self) -> i64 {
        self.0.state.registration_id
    }

    /// The label as other processes see it; `None` once the counter is closed.
    #[must_use]
    pub fn label(&self) -> Option<String> {
        self.open()?;
        self.0
            .link
            .counters()
            .label(self.id())
            .map(|label| label.as_str().to_owned())
    }

    /// Writes behind the label, as far as it then has at most 380 bytes; false if the counter is closed. For one thread.
    pub fn append_label(&self, text: &str) -> bool {
        self.open().is_some() && self.0.link.counters().append_label(self.id(), text)
    }

    /// Replaces the label, cut at 380 bytes; false if the counter is closed. For one thread.
    pub fn set_label(&self, text: &str) -> bool {
        self.open().is_some() && self.0.link.counters().set_label(self.id(), text)
    }

    /// Replaces the key, cut at 112 bytes; false if the counter is closed. For one thread.
    pub fn set_key(&self, key: &[u8]) -> bool {
        self.open().is_some() && self.0.link.counters().set_key(self.id(), key)
    }

    /// The value.
    #[inline]
    #[must_use]
    pub fn get(&self) -> i64 {
        self.0.counter.get()
    }

    /// Sets the value; who reads it sees what was written before.
    #[inline]
    pub fn set(&self, value: i64) {
        if let Some(counter) = self.open() {
            counter.set(value);
        }
    }

    /// Adds one, from any thread; the value before.
    #[inline]
    pub fn increment(&self) -> i64 {
        self.add(1)
    }

    /// Adds, from any thread; wraps around. The value before.
    #[inline]
    pub fn add(&self, delta: i64) -> i64 {
        match self.open() {
            Some(counter) => counter.add(delta),
            None => self.get(),
        }
    }

    /// Sets the value, from any thread; the value before.
    #[inline]
    pub fn swap(&self, value: i64) -> i64 {
        match self.open() {
            Some(counter) => counter.swap(value),
            None => self.get(),
        }
    }

    /// Sets the value to `new` if it is `current`, from any thread.
    ///
    /// # Errors
    /// The present value, if it is another one or the counter is closed.
    #[inline]
    pub fn compare_exchange(&self, current: i64, new: i64) -> Result<i64, i64> {
        match self.open() {
            Some(counter) => counter.compare_exchange(current, new),
            None => Err(self.get()),
        }
    }

    /// Raises the value to `proposed` unless it is that high already; true if it was raised. For one writing thread.
    #[inline]
    pub fn propose_max(&self, proposed: i64) -> bool {
        self.open()
            .is_some_and(|counter| counter.propose_max(proposed))
    }

    /// True once the counter was closed or its client has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.state.closed.load(Ordering::Acquire)
    }

    /// Closes the counter, for all clones. A static counter stays allocated.
    pub fn close(&self) {
        drop(self.async_close());
    }

    /// As [`close`](Self::close), and answers when the driver has freed the counter; `None` for a static one, of which
    /// the driver is told nothing.
    ///
    /// # Errors
    /// It was closed before, or with its client.
    pub fn async_close(&self) -> Result<Option<Pending<()>>, AddError> {
        self.0.close()
    }
}
