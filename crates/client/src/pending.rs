// SPDX-License-Identifier: Apache-2.0
//! Results of commands that the driver has not answered yet.
//!
//! The user holds a [`Pending`], the conductor the corresponding [`Completer`]. The conductor completes each one
//! exactly once, without holding a lock. If the [`Pending`] was dropped the result is dropped there, which returns the
//! resource to the driver.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use crate::client_core::ClientCore;
use crate::error::CommandError;

/// Maximum time that a waiting thread sleeps before it checks the result again.
const WAIT_SLICE: Duration = Duration::from_millis(50);
/// Sleep between two duty cycles of an invoked conductor or driver while a response is awaited.
const INVOKER_PAUSE: Duration = Duration::from_micros(100);

/// State of a command. `Taken`: the result was returned, or the [`Pending`] was dropped.
#[derive(Debug)]
enum State<T> {
    Waiting(Option<Waker>),
    Done(Result<T, CommandError>),
    Taken,
}

impl<T> State<T> {
    /// Returns the outcome, once.
    fn take(&mut self) -> Option<Result<T, CommandError>> {
        match std::mem::replace(self, Self::Taken) {
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

/// The conductor's half of a [`Pending`].
#[derive(Debug)]
pub(crate) struct Completer<T>(Arc<Slot<T>>);

impl<T> Completer<T> {
    /// Stores the outcome and wakes the waiting thread or task. Must be called without a lock held: an outcome whose
    /// [`Pending`] was dropped is dropped here.
    pub(crate) fn complete(self, outcome: Result<T, CommandError>) {
        let mut state = self.0.lock();
        let unclaimed = match &mut *state {
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
            State::Done(_) | State::Taken => outcome,
        };
        drop(state);
        drop(unclaimed);
    }
}

/// The result of a command that the driver may not have answered yet; returned by the `async_` methods.
///
/// Check it with [`poll`](Pending::poll), block with [`wait`](Pending::wait), or `.await` it: it is a [`Future`] that
/// the client conductor wakes. Dropping it before the response arrives removes the resource as soon as the driver has
/// created it.
///
/// ```
/// # fn main() -> Result<(), taran::Error> {
/// # let driver = taran_driver::MediaDriver::launch_embedded(
/// #     taran_driver::DriverContext::new().ipc_term_buffer_length(65_536),
/// # ).unwrap();
/// # let directory = driver.aeron_dir();
/// # let client = taran::Client::builder().aeron_dir(directory).connect()?;
/// // Both commands are sent at once.
/// let publication = client.async_add_publication("aeron:ipc", 1001)?;
/// let subscription = client.async_add_subscription("aeron:ipc", 1001)?;
/// let (publication, subscription) = (publication.wait()?, subscription.wait()?);
/// # drop((publication, subscription));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping it removes the resource"]
pub struct Pending<T> {
    slot: Arc<Slot<T>>,
    client: Arc<ClientCore>,
    correlation_id: i64,
}

impl<T> Pending<T> {
    pub(crate) fn new(client: &Arc<ClientCore>, correlation_id: i64) -> (Self, Completer<T>) {
        let slot = Arc::new(Slot {
            state: Mutex::new(State::Waiting(None)),
            done: Condvar::new(),
        });
        let pending = Self {
            slot: Arc::clone(&slot),
            client: Arc::clone(client),
            correlation_id,
        };
        (pending, Completer(slot))
    }

    /// Returns the correlation id of the command. For an added resource or destination this is its registration id.
    #[must_use]
    pub fn registration_id(&self) -> i64 {
        self.correlation_id
    }

    /// Returns the result if the driver has answered; `None` if it has not, or if the result was returned before. Never
    /// blocks. In invoker mode [`Client::invoke`](crate::Client::invoke) must be called to process responses.
    pub fn poll(&mut self) -> Option<Result<T, CommandError>> {
        self.slot.lock().take()
    }

    /// Waits for the result. The command fails with [`CommandError::Timeout`] after the driver timeout. In invoker mode
    /// this method runs the conductor itself; a driver set with
    /// [`ClientBuilder::driver_invoker`](crate::ClientBuilder::driver_invoker) is run as well.
    ///
    /// # Errors
    /// The error of the command; [`CommandError::CalledFromCallback`] inside a callback, where waiting would deadlock.
    pub fn wait(mut self) -> Result<T, CommandError> {
        loop {
            if let Some(outcome) = self.poll() {
                return outcome;
            }
            if self.client.is_in_duty_cycle() {
                return Err(CommandError::CalledFromCallback);
            }
            if let Some(work) = self.client.run_invoked() {
                if work == 0 {
                    std::thread::sleep(INVOKER_PAUSE);
                }
            } else {
                let state = self.slot.lock();
                if matches!(*state, State::Waiting(_)) {
                    // The loop checks the result, woken or not.
                    drop(self.slot.done.wait_timeout(state, WAIT_SLICE));
                }
            }
        }
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T, CommandError>;

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
        // Dropped after the lock was released.
        let unclaimed = std::mem::replace(&mut *self.slot.lock(), State::Taken);
        drop(unclaimed);
    }
}
