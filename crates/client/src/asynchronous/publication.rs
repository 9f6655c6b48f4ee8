// SPDX-License-Identifier: Apache-2.0
//! Sending from asynchronous tasks.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_sink::Sink;

use super::reactor::Reactor;
use super::watch::Registration;
use crate::Position;
use crate::error::OfferError;
use crate::publication::{ExclusivePublication, Publication};

/// Attempts to offer before the task yields to others of its runtime. The second one succeeds after a rotation of the
/// log, unless other publishers have filled the term meanwhile.
const ATTEMPTS_PER_TURN: usize = 3;

/// A publication for asynchronous tasks: a [`Publication`] or an [`ExclusivePublication`]; made by their method
/// `into_async`.
///
/// [`offer`](Self::offer) waits while no subscriber is connected and while the publication is back-pressured. All other
/// errors are returned. To bound the time, use the timeout of the runtime.
///
/// As a [`Sink`] it takes any bytes (`AsRef<[u8]>`). A message that the log cannot take yet is copied and held, at most
/// one; `poll_ready` and `poll_flush` wait until the log has taken it. Flushed means that the message is in the log and
/// that the driver sends it, not that a subscriber has received it.
///
/// # Cancellation
///
/// If the future of `offer` is dropped before it is ready, the message was not sent. If the future of `SinkExt::send` is
/// dropped, the message may be held: it goes out before the next one, or when the sink is flushed, and is lost if the
/// publication is dropped.
///
/// ```
/// # use std::pin::pin;
/// # use std::task::{Context, Poll, Waker};
/// # use taran::{Client, Reactor};
/// # use taran_driver::{DriverContext, MediaDriver};
/// use futures_util::SinkExt;
///
/// # fn main() -> Result<(), taran::Error> {
/// # let driver = MediaDriver::launch_embedded(DriverContext::new().ipc_term_buffer_length(65_536)).unwrap();
/// # let client = Client::builder().aeron_dir(driver.aeron_dir()).connect()?;
/// # let reactor = Reactor::start()?;
/// # let _subscription = client.add_subscription("aeron:ipc", 1001)?;
/// # let task = async {
/// let mut publication = client.async_add_publication("aeron:ipc", 1001)?.await?.into_async(&reactor);
/// let position = publication.offer(b"without a copy").await?;
/// publication.send("as a sink").await?;
/// # assert!(position > 0);
/// # Ok::<_, taran::Error>(())
/// # };
/// # let mut task = pin!(task);
/// # loop {
/// #     match task.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
/// #         Poll::Ready(outcome) => break outcome,
/// #         Poll::Pending => std::thread::yield_now(),
/// #     }
/// # }
/// # }
/// ```
#[derive(Debug)]
pub struct AsyncPublication<P> {
    publication: P,
    registration: Registration,
    /// A message that the sink has accepted but the log has not; empty unless `holds_message`.
    held: Vec<u8>,
    holds_message: bool,
    /// True after the sink was closed.
    closed: bool,
}

mod sealed {
    pub trait Sealed {}
}

use sealed::Sealed;

/// The kinds of publication that an [`AsyncPublication`] can have. Implemented by [`Publication`] and
/// [`ExclusivePublication`]; other types cannot implement it.
pub trait Offer: Sealed + Send + Unpin {
    /// Sends a message without waiting; see [`Publication::offer`].
    ///
    /// # Errors
    /// Nothing was sent; see [`OfferError`] for the causes.
    fn offer(&mut self, message: &[u8]) -> Result<Position, OfferError>;

    /// Returns the stream position after the last message, in bytes.
    fn position(&self) -> Position;
}

impl Sealed for Publication {}

impl Offer for Publication {
    fn offer(&mut self, message: &[u8]) -> Result<Position, OfferError> {
        Publication::offer(self, message)
    }

    fn position(&self) -> Position {
        Publication::position(self)
    }
}

impl Sealed for ExclusivePublication {}

impl Offer for ExclusivePublication {
    fn offer(&mut self, message: &[u8]) -> Result<Position, OfferError> {
        ExclusivePublication::offer(self, message)
    }

    fn position(&self) -> Position {
        ExclusivePublication::position(self)
    }
}

impl Publication {
    /// Converts this handle for asynchronous tasks, which `reactor` wakes. Clones are not affected: each task has its
    /// own.
    #[must_use]
    pub fn into_async(self, reactor: &Reactor) -> AsyncPublication<Self> {
        let registration = Registration::of_publication(self.core(), reactor);
        AsyncPublication::new(self, registration)
    }
}

impl ExclusivePublication {
    /// Converts the publication for asynchronous tasks, which `reactor` wakes.
    #[must_use]
    pub fn into_async(self, reactor: &Reactor) -> AsyncPublication<Self> {
        let registration = Registration::of_publication(self.core(), reactor);
        AsyncPublication::new(self, registration)
    }
}

impl<P: Offer> AsyncPublication<P> {
    fn new(publication: P, registration: Registration) -> Self {
        Self {
            publication,
            registration,
            held: Vec::new(),
            holds_message: false,
            closed: false,
        }
    }

    /// Sends a message, without copying it elsewhere than into the log; waits while no subscriber is connected and while
    /// the publication is back-pressured. Returns the stream position after the message, in bytes. A message that the
    /// sink holds goes first.
    ///
    /// # Errors
    /// Nothing was sent; see [`OfferError`]. The error is not [retryable](OfferError::is_retryable).
    pub async fn offer(&mut self, message: &[u8]) -> Result<Position, OfferError> {
        if self.closed {
            return Err(OfferError::Closed);
        }
        let waiting = Waiting(self);
        poll_fn(|context| {
            ready!(waiting.0.poll_held(context))?;
            waiting.0.poll_offer(context, message)
        })
        .await
    }

    /// Waits until the log has taken a message that the sink holds. The same as `SinkExt::flush`, which needs a type for
    /// the messages.
    ///
    /// # Errors
    /// The held message was not sent and is discarded; see [`OfferError`].
    pub async fn flush(&mut self) -> Result<(), OfferError> {
        let waiting = Waiting(self);
        poll_fn(|context| waiting.0.poll_held(context)).await
    }

    /// Returns the publication.
    #[must_use]
    pub fn get_ref(&self) -> &P {
        &self.publication
    }

    /// Returns the publication, for instance to offer without waiting. A message that the sink holds is sent after it.
    pub fn get_mut(&mut self) -> &mut P {
        &mut self.publication
    }

    /// Returns the publication. A message that the sink holds is discarded.
    #[must_use]
    pub fn into_inner(self) -> P {
        self.publication
    }

    fn poll_offer(
        &mut self,
        context: &Context<'_>,
        message: &[u8],
    ) -> Poll<Result<Position, OfferError>> {
        for _ in 0..ATTEMPTS_PER_TURN {
            match self.publication.offer(message) {
                Err(OfferError::AdminAction) => {}
                Err(error) if error.is_retryable() => {
                    let position = self.publication.position();
                    self.registration.arm_at(context.waker(), position);
                    return Poll::Pending;
                }
                outcome => return Poll::Ready(outcome),
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Sends the held message.
    pub(super) fn poll_held(&mut self, context: &Context<'_>) -> Poll<Result<(), OfferError>> {
        if !self.holds_message {
            return Poll::Ready(Ok(()));
        }
        let held = std::mem::take(&mut self.held);
        let polled = self.poll_offer(context, &held);
        self.held = held;
        let outcome = ready!(polled);
        self.held.clear();
        self.holds_message = false;
        Poll::Ready(outcome.map(drop))
    }
}

impl<P: Offer, M: AsRef<[u8]>> Sink<M> for AsyncPublication<P> {
    type Error = OfferError;

    fn poll_ready(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), OfferError>> {
        if self.closed {
            return Poll::Ready(Err(OfferError::Closed));
        }
        self.poll_held(context)
    }

    fn start_send(mut self: Pin<&mut Self>, message: M) -> Result<(), OfferError> {
        let this = &mut *self;
        if this.closed {
            return Err(OfferError::Closed);
        }
        if this.holds_message {
            // The caller has not waited until the sink is ready.
            return Err(OfferError::BackPressured);
        }
        match this.publication.offer(message.as_ref()) {
            Err(error) if error.is_retryable() => {
                this.held.extend_from_slice(message.as_ref());
                this.holds_message = true;
                Ok(())
            }
            outcome => outcome.map(drop),
        }
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), OfferError>> {
        self.poll_held(context)
    }

    /// Flushes, and accepts no message afterwards. The publication is closed when it is dropped.
    fn poll_close(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), OfferError>> {
        ready!(self.poll_held(context))?;
        self.closed = true;
        Poll::Ready(Ok(()))
    }
}

/// Forgets the task when its future is dropped.
struct Waiting<'a, P>(&'a mut AsyncPublication<P>);

impl<P> Drop for Waiting<'_, P> {
    fn drop(&mut self) {
        self.0.registration.disarm();
    }
}
