//! Streams and sinks that go on with the next driver.

use std::fmt::Debug;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use futures_sink::Sink;

use super::message::Message;
use super::publication::{AsyncPublication, Offer};
use super::reactor::Reactor;
use super::subscription::AsyncSubscription;
use crate::Position;
use crate::error::{OfferError, PollError};
use crate::header::Header;
use crate::publication::{ExclusivePublication, Publication};
use crate::reconnect::Reconnecting;
use crate::subscription::Subscription;

/// A publication or subscription of a [`ReconnectingClient`](crate::ReconnectingClient) for asynchronous tasks; made by
/// [`Reconnecting::into_async`].
///
/// It is a [`Stream`] of messages, or a [`Sink`] for them, over all drivers: while there is no driver, it is pending. The
/// loss of a driver is one item or result with an error whose `lost` is some; after that it goes on with the next
/// driver. The stream ends, and the sink returns `Closed`, after the client was dropped.
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
    /// True after the sink was closed.
    closed: bool,
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

    /// Returns true if the resource was closed, by the application or with its driver.
    fn is_closed(resource: &Self::Async) -> bool;
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
}

impl<T: IntoAsync> Reconnecting<T> {
    /// Converts the handle for asynchronous tasks, which `reactor` wakes.
    #[must_use]
    pub fn into_async(self, reactor: &Reactor) -> AsyncReconnecting<T> {
        AsyncReconnecting {
            handle: self,
            reactor: reactor.clone(),
            current: None,
            closed: false,
        }
    }
}

impl<T: IntoAsync> AsyncReconnecting<T> {
    /// Returns the resource on the current driver; waits while there is none. `None` after the client was dropped.
    pub async fn get(&mut self) -> Option<&mut T::Async> {
        if self.current.as_ref().is_some_and(T::is_closed) {
            self.current = None;
        }
        let this = &mut *self;
        poll_fn(|context| this.poll_current(context).map(|current| current.map(drop))).await;
        self.current.as_mut()
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

    fn poll_current(&mut self, context: &Context<'_>) -> Poll<Option<&mut T::Async>> {
        if self.current.is_none() {
            let made = ready!(self.handle.poll_take(context));
            self.current = made.map(|made| made.into_async(&self.reactor));
        }
        Poll::Ready(self.current.as_mut())
    }

    /// Forgets the resource after an error if it was closed with its driver.
    fn forget_closed(&mut self, has_failed: bool) {
        if has_failed && self.current.as_ref().is_some_and(T::is_closed) {
            self.current = None;
        }
    }
}

impl AsyncReconnecting<Subscription> {
    /// Waits for fragments as [`AsyncSubscription::poll`] does, also while there is no driver.
    ///
    /// # Errors
    /// The driver is lost, or the client was dropped (`Closed`).
    pub async fn poll(
        &mut self,
        handler: impl FnMut(&[u8], &Header<'_>),
        fragment_limit: usize,
    ) -> Result<usize, PollError> {
        let this = &mut *self;
        poll_fn(|context| this.poll_current(context).map(|current| current.map(drop))).await;
        let Some(subscription) = &mut self.current else {
            return Err(PollError::Closed);
        };
        let polled = subscription.poll(handler, fragment_limit).await;
        self.forget_closed(polled.is_err());
        polled
    }
}

impl Stream for AsyncReconnecting<Subscription> {
    type Item = Result<Message, PollError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(subscription) = ready!(self.poll_current(context)) else {
            return Poll::Ready(None);
        };
        let message = ready!(subscription.poll_message(context));
        self.forget_closed(message.is_err());
        Poll::Ready(Some(message))
    }
}

impl<P: Offer + IntoAsync<Async = AsyncPublication<P>>> AsyncReconnecting<P> {
    /// Sends a message as [`AsyncPublication::offer`] does; waits also while there is no driver.
    ///
    /// # Errors
    /// Nothing was sent; see [`OfferError`]. The driver is lost, or the client was dropped (`Closed`).
    pub async fn offer(&mut self, message: &[u8]) -> Result<Position, OfferError> {
        if self.closed {
            return Err(OfferError::Closed);
        }
        let this = &mut *self;
        poll_fn(|context| this.poll_current(context).map(|current| current.map(drop))).await;
        let Some(publication) = &mut self.current else {
            return Err(OfferError::Closed);
        };
        let offered = publication.offer(message).await;
        self.forget_closed(offered.is_err());
        offered
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
        if self.closed {
            return Poll::Ready(Err(OfferError::Closed));
        }
        let Some(publication) = ready!(self.poll_current(context)) else {
            return Poll::Ready(Err(OfferError::Closed));
        };
        let ready = ready!(Sink::<M>::poll_ready(Pin::new(publication), context));
        self.forget_closed(ready.is_err());
        Poll::Ready(ready)
    }

    fn start_send(mut self: Pin<&mut Self>, message: M) -> Result<(), OfferError> {
        let this = &mut *self;
        if this.closed {
            return Err(OfferError::Closed);
        }
        let Some(publication) = &mut this.current else {
            // The caller has not waited until the sink is ready.
            return Err(OfferError::BackPressured);
        };
        let sent = Pin::new(publication).start_send(message);
        this.forget_closed(sent.is_err());
        sent
    }

    /// Waits until the log has taken a held message. Without a driver nothing is held.
    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), OfferError>> {
        let Some(publication) = &mut self.current else {
            return Poll::Ready(Ok(()));
        };
        let flushed = ready!(Sink::<M>::poll_flush(Pin::new(publication), context));
        self.forget_closed(flushed.is_err());
        Poll::Ready(flushed)
    }

    /// Flushes, and accepts no message afterwards, on any driver.
    fn poll_close(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), OfferError>> {
        ready!(Sink::<M>::poll_flush(self.as_mut(), context))?;
        self.closed = true;
        Poll::Ready(Ok(()))
    }
}
