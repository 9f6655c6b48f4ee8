// SPDX-License-Identifier: Apache-2.0
//! Results of requests that the archive has not answered yet.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::session::{Reply, RequestError};

type Outcome = Result<Reply, RequestError>;

#[derive(Debug)]
enum State {
    Waiting(Option<Waker>),
    Done(Outcome),
    /// The outcome was returned, or the [`Call`] was dropped.
    Taken,
}

#[derive(Debug)]
struct Slot(Mutex<State>);

impl Slot {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connection's half of a [`Call`].
#[derive(Debug)]
pub(crate) struct Completer(Arc<Slot>);

impl Completer {
    /// Stores the outcome and wakes the task that waits. Returns the error of a failed request if the [`Call`] was dropped.
    pub(crate) fn complete(self, outcome: Outcome) -> Option<RequestError> {
        let mut state = self.0.lock();
        let waker = match &mut *state {
            State::Waiting(waker) => waker.take(),
            State::Done(_) | State::Taken => return outcome.err(),
        };
        *state = State::Done(outcome);
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        None
    }
}

/// The result of a request that the archive may not have answered yet.
///
/// Check it with [`poll`](Self::poll) after [`ArchiveConnection::poll`](super::ArchiveConnection::poll), or `.await` it
/// while another task polls the connection. Dropping it does not withdraw the request.
#[must_use = "the request may fail"]
pub struct Call<T> {
    correlation_id: i64,
    slot: Arc<Slot>,
    convert: fn(Outcome) -> Result<T, RequestError>,
}

impl<T> std::fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("correlation_id", &self.correlation_id)
            .finish_non_exhaustive()
    }
}

impl<T> Call<T> {
    pub(crate) fn new(
        correlation_id: i64,
        convert: fn(Outcome) -> Result<T, RequestError>,
    ) -> (Self, Completer) {
        let slot = Arc::new(Slot(Mutex::new(State::Waiting(None))));
        let completer = Completer(Arc::clone(&slot));
        let call = Self {
            correlation_id,
            slot,
            convert,
        };
        (call, completer)
    }

    /// Returns the correlation id of the request. Errors and signals of what the request has started name it.
    #[must_use]
    pub fn correlation_id(&self) -> i64 {
        self.correlation_id
    }

    /// Returns the result if the archive has answered; `None` if it has not, or if the result was returned before. Never
    /// blocks.
    pub fn poll(&mut self) -> Option<Result<T, RequestError>> {
        let mut state = self.slot.lock();
        match std::mem::replace(&mut *state, State::Taken) {
            State::Done(outcome) => {
                drop(state);
                Some((self.convert)(outcome))
            }
            other => {
                *state = other;
                None
            }
        }
    }
}

impl<T> Future for Call<T> {
    type Output = Result<T, RequestError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Some(outcome) = Call::poll(this) {
            return Poll::Ready(outcome);
        }
        if let State::Waiting(waker) = &mut *this.slot.lock() {
            *waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        // Completed meanwhile. A call whose result was returned before stays pending, as a future must not be polled then.
        Call::poll(this).map_or(Poll::Pending, Poll::Ready)
    }
}

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        let unclaimed = std::mem::replace(&mut *self.slot.lock(), State::Taken);
        drop(unclaimed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(outcome: Outcome) -> Result<i64, RequestError> {
        match outcome? {
            Reply::Value(value) => Ok(value),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn call_returns_its_outcome_once() {
        let (mut call, completer) = Call::new(1, value);
        assert_eq!(call.poll(), None);
        assert_eq!(completer.complete(Ok(Reply::Value(7))), None);
        assert_eq!(call.poll(), Some(Ok(7)));
        assert_eq!(call.poll(), None);
    }

    #[test]
    fn error_of_dropped_call_is_returned_to_the_connection() {
        let (call, completer) = Call::new(1, value);
        drop(call);
        assert_eq!(
            completer.complete(Err(RequestError::Disconnected)),
            Some(RequestError::Disconnected)
        );
    }

    #[test]
    fn future_of_completed_call_is_ready() {
        let (mut call, completer) = Call::new(1, value);
        let mut context = Context::from_waker(Waker::noop());
        let mut pinned = Pin::new(&mut call);
        assert!(pinned.as_mut().poll(&mut context).is_pending());
        assert_eq!(completer.complete(Ok(Reply::Value(3))), None);
        assert_eq!(pinned.as_mut().poll(&mut context), Poll::Ready(Ok(3)));
    }
}
