//! Answers of the driver that have not come yet.
//!
//! A [`Pending`] is what the user waits with, a [`Promise`] what the conductor keeps of it. The conductor keeps each
//! promise exactly once, outside its locks; a value nobody waits for any more is dropped there, which gives the
//! resource back to the driver.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use crate::error::AddError;
use crate::link::Link;

/// How long a waiting thread sleeps at most before it looks whether its client still lives.
const WAIT_SLICE: Duration = Duration::from_millis(50);
/// Sleep between two turns of an invoked conductor while an answer is waited for.
const INVOKER_PAUSE: Duration = Duration::from_micros(100);

#[derive(Debug)]
enum State<T> {
    Waiting(Option<Waker>),
    Done(Result<T, AddError>),
    Over,
}

impl<T> State<T> {
    /// The outcome, once, if it is there.
    fn take(&mut self) -> Option<Result<T, AddError>> {
        match std::mem::replace(self, Self::Over) {
            Self::Done(outcome) => Some(outcome),
            other => {
                *self = other;
                None
            }
        }
    }
}

#[derive(Debug)]
struct Slot<T> {
    state: Mutex<State<T>>,
    done: Condvar,
}

impl<T> Slot<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The conductor's end.
#[derive(Debug)]
pub(crate) struct Promise<T>(Arc<Slot<T>>);

impl<T> Promise<T> {
    /// Hands the outcome over. Call it without holding a lock: an outcome nobody waits for is dropped here.
    pub(crate) fn keep(self, outcome: Result<T, AddError>) {
        let mut state = self.0.lock();
        let unwanted = match &mut *state {
            State::Waiting(waker) => {
                let waker = waker.take();
                *state = State::Done(outcome);
                drop(state);
                self.0.done.notify_all();
                if let Some(waker) = waker {
                    waker.wake();
                }
                return;
            }
            State::Done(_) | State::Over => outcome,
        };
        drop(state);
        drop(unwanted);
    }
}

/// An answer of the driver that may not have come yet: from the `async_` calls of [`Client`](crate::Client).
///
/// Ask with [`poll`](Pending::poll), block with [`wait`](Pending::wait), or `.await` it: it is a [`Future`] that is
/// woken by the client conductor. Dropping it before the answer has come gives the resource back as soon as it comes.
#[derive(Debug)]
#[must_use = "dropping it gives the resource back"]
pub struct Pending<T> {
    slot: Arc<Slot<T>>,
    link: Arc<Link>,
    correlation_id: i64,
}

impl<T> Pending<T> {
    pub(crate) fn new(link: &Arc<Link>, correlation_id: i64) -> (Self, Promise<T>) {
        let slot = Arc::new(Slot {
            state: Mutex::new(State::Waiting(None)),
            done: Condvar::new(),
        });
        let pending = Self {
            slot: Arc::clone(&slot),
            link: Arc::clone(link),
            correlation_id,
        };
        (pending, Promise(slot))
    }

    /// Id of the command; for an added resource its registration id.
    #[must_use]
    pub fn registration_id(&self) -> i64 {
        self.correlation_id
    }

    /// The answer, once, if it has come. Never blocks; in invoker mode it is [`Client::invoke`](crate::Client::invoke)
    /// that takes answers in.
    ///
    /// `None`: not yet, or it was already taken.
    pub fn poll(&mut self) -> Option<Result<T, AddError>> {
        self.slot.lock().take()
    }

    /// Waits for the answer, at most as long as the driver timeout. In invoker mode it invokes the conductor.
    ///
    /// # Errors
    /// As the answer; [`AddError::CalledFromCallback`] inside a callback, which must not wait.
    pub fn wait(mut self) -> Result<T, AddError> {
        loop {
            if let Some(outcome) = self.poll() {
                return outcome;
            }
            if self.link.is_in_duty_cycle() {
                return Err(AddError::CalledFromCallback);
            }
            let driver = self.link.invoke_driver();
            if driver.is_some() || self.link.is_invoked() {
                let own = if self.link.is_invoked() {
                    self.link.invoke()
                } else {
                    0
                };
                if own + driver.unwrap_or_default() == 0 {
                    std::thread::sleep(INVOKER_PAUSE);
                }
            } else {
                let state = self.slot.lock();
                if matches!(*state, State::Waiting(_)) {
                    // Woken or not: the loop looks again.
                    drop(self.slot.done.wait_timeout(state, WAIT_SLICE));
                }
            }
        }
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T, AddError>;

    fn poll(self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let mut state = self.slot.lock();
        if let Some(outcome) = state.take() {
            return Poll::Ready(outcome);
        }
        if let State::Waiting(waker) = &mut *state {
            *waker = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        // The value, if there is one, is dropped after the lock is free.
        let unwanted = std::mem::replace(&mut *self.slot.lock(), State::Over);
        drop(unwanted);
    }
}
