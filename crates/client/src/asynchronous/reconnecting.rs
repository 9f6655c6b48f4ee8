// SPDX-License-Identifier: Apache-2.0
//! Streams and sinks that go on with the next driver.

use std::fmt::Debug;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::{FusedStream, Stream};
use futures_sink::Sink;

use super::message::Message;
use super::publication::{AsyncPublication, Offer};
use super::reactor::Reactor;
use super::subscription::AsyncSubscription;
use crate::Position;
use crate::client_state::CloseReason;
use crate::error::{CommandError, Lost, OfferError, PollError};
use crate::header::Header;
use crate::publication::{ExclusivePublication, Publication};
use crate::reconnect::Reconnecting;
use crate::subscription::Subscription;

/// A publication or subscription of a [`ReconnectingClient`](crate::ReconnectingClient) for asynchronous tasks; made by
/// [`Reconnecting::into_async`].
///
/// It is a [`Stream`] of messages, or a [`Sink`] for them, over all drivers: while there is no driver, it is pending. The
/// loss of a driver, whose resource was in use, is one item or result with an error whose `lost` is some, of whichever
/// method is called next; after that it goes on with the next driver. A refusal that does not pass by itself is one item or
/// result, too: `Refused`, or the error itself from [`get`](Self::get). [`Reconnecting::failure`] has the reason as well.
///
/// It ends after the client was dropped, or the application has closed the resource: then the stream and
/// [`get`](Self::get) return `None`, and the other methods `Closed`. The end is no error of the stream.
///
/// Messages that the lost driver had not delivered are lost. A message that the sink held is discarded with the error.
/// [`generation`](Self::generation) tells which driver the last item or result is of: the application sends again what it
/// has to.
///
/// A [`ReconnectingClient`](crate::ReconnectingClient) has to be invoked meanwhile, by a thread or a task of its own.
///
/// ```
/// # use std::pin::pin;
/// # use std::task::{Context, Poll, Waker};
/// # use taran::{Client, Reactor, ReconnectingClient};
/// # use taran_driver::{DriverContext, MediaDriver};
/// use futures_util::{SinkExt, StreamExt};
///
/// # fn main() -> Result<(), taran::Error> {
/// # let driver = MediaDriver::launch_embedded(DriverContext::new().ipc_term_buffer_length(65_536)).unwrap();
/// # let directory = driver.aeron_dir().to_path_buf();
/// # let mut client = ReconnectingClient::new(move || Client::builder().aeron_dir(&directory));
/// # let reactor = Reactor::start()?;
/// let mut messages = client.add_subscription("aeron:ipc", 1001).into_async(&reactor);
/// let mut publication = client.add_publication("aeron:ipc", 1001).into_async(&reactor);
/// let task = async move {
///     publication.send("hello").await?;
///     while let Some(message) = messages.next().await {
///         match message {
///             Ok(message) => println!("{} bytes", message.len()),
///             Err(error) => println!("{error}; waiting for the next driver"),
///         }
/// #       break;
///     }
///     Ok::<_, taran::Error>(())
/// };
/// # let mut task = pin!(task);
/// # loop {
/// #     client.invoke()?;
/// #     match task.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
/// #         Poll::Ready(outcome) => break outcome,
/// #         Poll::Pending => std::thread::yield_now(),
/// #     }
/// # }
/// # }
/// ```
#[derive(Debug)]
pub struct AsyncReconnecting<T: IntoAsync> {
    handle: Reconnecting<T>,
    reactor: Reactor,
    /// The resource on the current driver; kept after the loss of that until the application was told.
    current: Option<T::Async>,
    /// True after the end.
    ended: bool,
}

mod sealed {
    pub trait Sealed {}
}

/// A resource with a form for asynchronous tasks: [`Publication`], [`ExclusivePublication`] and [`Subscription`]; other
/// types cannot implement it.
pub trait IntoAsync: sealed::Sealed + Sized + Send {
    /// The form for asynchronous tasks.
    type Async: Debug + Unpin + Send;

    /// Converts the resource, whose tasks `reactor` wakes.
    fn into_async(self, reactor: &Reactor) -> Self::Async;

    /// Returns true if the resource was closed, by the application or with its client.
    fn is_closed(resource: &Self::Async) -> bool;

    /// Returns why the client of the resource is closed; `None` while it is open.
    fn client_close_reason(resource: &Self::Async) -> Option<CloseReason>;
}

impl sealed::Sealed for Publication {}

impl IntoAsync for Publication {
    type Async = AsyncPublication<Self>;

    fn into_async(self, reactor: &Reactor) -> Self::Async {
        Publication::into_async(self, reactor)
    }

    fn is_closed(resource: &Self::Async) -> bool {
        resource.get_ref().is_closed()
    }

    fn client_close_reason(resource: &Self::Async) -> Option<CloseReason> {
        resource.get_ref().core().client.state.check_open().err()
    }
}

impl sealed::Sealed for ExclusivePublication {}

impl IntoAsync for ExclusivePublication {
    type Async = AsyncPublication<Self>;

    fn into_async(self, reactor: &Reactor) -> Self::Async {
        ExclusivePublication::into_async(self, reactor)
    }

    fn is_closed(resource: &Self::Async) -> bool {
        resource.get_ref().is_closed()
    }

    fn client_close_reason(resource: &Self::Async) -> Option<CloseReason> {
        resource.get_ref().core().client.state.check_open().err()
    }
}

impl sealed::Sealed for Subscription {}

impl IntoAsync for Subscription {
    type Async = AsyncSubscription;

    fn into_async(self, reactor: &Reactor) -> Self::Async {
        Subscription::into_async(self, reactor)
    }

    fn is_closed(resource: &Self::Async) -> bool {
        resource.get_ref().is_closed()
    }

    fn client_close_reason(resource: &Self::Async) -> Option<CloseReason> {
        resource.get_ref().client().state.check_open().err()
    }
}

impl<T: IntoAsync> Reconnecting<T> {
    /// Converts the handle for asynchronous tasks, which `reactor` wakes.
    #[must_use]
    pub fn into_async(self, reactor: &Reactor) -> AsyncReconnecting<T> {
        AsyncReconnecting {
            handle: self,
            reactor: reactor.clone(),
            current: None,
            ended: false,
        }
    }
}

impl<T: IntoAsync> AsyncReconnecting<T> {
    /// Returns the resource on the current driver; waits while there is none. Returns the loss of a driver
    /// ([`CommandError::DriverLost`]) and its refusal ([`Reconnecting::get`]) once each, and `None` after the end.
    pub async fn get(&mut self) -> Option<Result<&mut T::Async, CommandError>> {
        if let Err(refusal) = self.wait().await? {
            return Some(Err(refusal));
        }
        let lost = self.lost();
        if let Some(lost) = lost {
            self.current = None;
            return Some(Err(lost.into()));
        }
        self.current.as_mut().map(Ok)
    }

    /// Returns the number of times that the resource was made, as of the last item or result: 1 on the first driver.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.handle.generation()
    }

    /// Returns the handle, for its destinations and the reason of a failure.
    #[must_use]
    pub fn handle(&self) -> &Reconnecting<T> {
        &self.handle
    }

    /// Waits for [`poll_current`](Self::poll_current).
    async fn wait(&mut self) -> Option<Result<&mut T::Async, CommandError>> {
        let this = &mut *self;
        let waited = poll_fn(|context| {
            let current = this.poll_current(context);
            current.map(|current| current.map(|resource| resource.map(drop)))
        });
        if let Err(refusal) = waited.await? {
            return Some(Err(refusal));
        }
        self.current.as_mut().map(Ok)
    }

    /// Waits for a resource: an open one, or one whose driver is lost, which its caller reports. Returns the refusal of a driver
    /// once, and `None` after the end.
    fn poll_current(
        &mut self,
        context: &Context<'_>,
    ) -> Poll<Option<Result<&mut T::Async, CommandError>>> {
        let is_closed = self.current.as_ref().is_some_and(T::is_closed);
        if is_closed && self.lost().is_none() {
            self.on_closed();
        }
        if self.ended {
            return Poll::Ready(None);
        }
        if self.current.is_none() {
            match ready!(self.handle.poll_take(context)) {
                Some(Ok(made)) => self.current = Some(made.into_async(&self.reactor)),
                Some(Err(refusal)) => return Poll::Ready(Some(Err(refusal))),
                None => self.ended = true,
            }
        }
        Poll::Ready(self.current.as_mut().map(Ok))
    }

    /// Forgets a resource that has returned `Closed`. If its client is closed, too, that either connects again or is gone;
    /// otherwise the application has closed the resource.
    fn on_closed(&mut self) {
        let closed = self.current.take();
        let reason = closed.as_ref().and_then(T::client_close_reason);
        self.ended |= closed.is_some() && reason.is_none();
    }

    /// Returns the loss that is not reported yet.
    fn lost(&self) -> Option<Lost> {
        let current = self.current.as_ref().filter(|it| T::is_closed(it))?;
        T::client_close_reason(current)?.lost()
    }

    /// Forgets the resource after the loss of its driver was reported.
    fn forget_lost(&mut self, reported: Option<Lost>) {
        if reported.is_some() {
            self.current = None;
        }
    }
}

impl AsyncReconnecting<Subscription> {
    /// Waits for fragments as [`AsyncSubscription::poll`] does, also while there is no driver.
    ///
    /// # Errors
    /// The driver is lost, or has refused the subscription; `Closed` after the end.
    pub async fn poll(
        &mut self,
        mut handler: impl FnMut(&[u8], &Header<'_>),
        fragment_limit: usize,
    ) -> Result<usize, PollError> {
        loop {
            let subscription = match self.wait().await {
                Some(Ok(subscription)) => subscription,
                Some(Err(_)) => return Err(PollError::Refused),
                None => return Err(PollError::Closed),
            };
            let polled = subscription.poll(&mut handler, fragment_limit).await;
            if matches!(polled, Err(PollError::Closed)) {
                self.on_closed();
                continue;
            }
            self.forget_lost(polled.as_ref().err().and_then(PollError::lost));
            return polled;
        }
    }
}

impl Stream for AsyncReconnecting<Subscription> {
    type Item = Result<Message, PollError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let subscription = match ready!(self.poll_current(context)) {
                Some(Ok(subscription)) => subscription,
                Some(Err(_)) => return Poll::Ready(Some(Err(PollError::Refused))),
                None => return Poll::Ready(None),
            };
            let message = ready!(subscription.poll_message(context));
            if matches!(message, Err(PollError::Closed)) {
                self.on_closed();
                continue;
            }
            self.forget_lost(message.as_ref().err().and_then(PollError::lost));
            return Poll::Ready(Some(message));
        }
    }
}

impl FusedStream for AsyncReconnecting<Subscription> {
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

impl<P: Offer + IntoAsync<Async = AsyncPublication<P>>> AsyncReconnecting<P> {
    /// Sends a message as [`AsyncPublication::offer`] does; waits also while there is no driver.
    ///
    /// # Errors
    /// Nothing was sent; see [`OfferError`]. The driver is lost, or has refused the publication; `Closed` after the end.
    pub async fn offer(&mut self, message: &[u8]) -> Result<Position, OfferError> {
        let this = &mut *self;
        poll_fn(|context| this.poll_held(context)).await?;
        loop {
            let publication = match self.wait().await {
                Some(Ok(publication)) => publication,
                Some(Err(_)) => return Err(OfferError::Refused),
                None => return Err(OfferError::Closed),
            };
            let offered = publication.offer(message).await;
            if matches!(offered, Err(OfferError::Closed)) {
                self.on_closed();
                continue;
            }
            self.forget_lost(offered.as_ref().err().and_then(OfferError::lost));
            return offered;
        }
    }

    /// Waits until the log has taken a held message. Without a driver nothing is held.
    fn poll_held(&mut self, context: &Context<'_>) -> Poll<Result<(), OfferError>> {
        let Some(publication) = &mut self.current else {
            return Poll::Ready(Ok(()));
        };
        let flushed = ready!(publication.poll_held(context));
        self.forget_lost(flushed.as_ref().err().and_then(OfferError::lost));
        Poll::Ready(flushed)
    }
}

impl<P, M> Sink<M> for AsyncReconnecting<P>
where
    P: Offer + IntoAsync<Async = AsyncPublication<P>>,
    M: AsRef<[u8]>,
{
    type Error = OfferError;

    fn poll_ready(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), OfferError>> {
        ready!(self.poll_held(context))?;
        if let Some(lost) = self.lost() {
            self.current = None;
            return Poll::Ready(Err(lost.into()));
        }
        loop {
            let publication = match ready!(self.poll_current(context)) {
                Some(Ok(publication)) => publication,
                Some(Err(_)) => return Poll::Ready(Err(OfferError::Refused)),
                None => return Poll::Ready(Err(OfferError::Closed)),
            };
            match ready!(Sink::<M>::poll_ready(Pin::new(publication), context)) {
                Err(OfferError::Closed) => self.on_closed(),
                ready => return Poll::Ready(ready),
            }
        }
    }

    /// Returns `Closed` if the client or the resource was closed since the sink was ready.
    fn start_send(mut self: Pin<&mut Self>, message: M) -> Result<(), OfferError> {
        let this = &mut *self;
        if this.ended {
            return Err(OfferError::Closed);
        }
        let Some(publication) = &mut this.current else {
            // The caller has not waited until the sink is ready.
            return Err(OfferError::BackPressured);
        };
        let sent = Pin::new(publication).start_send(message);
        this.forget_lost(sent.as_ref().err().and_then(OfferError::lost));
        sent
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), OfferError>> {
        self.poll_held(context)
    }

    /// Flushes, and accepts no message afterwards, on any driver.
    fn poll_close(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), OfferError>> {
        ready!(self.poll_held(context))?;
        self.ended = true;
        Poll::Ready(Ok(()))
    }
}
