// SPDX-License-Identifier: Apache-2.0
//! Receiving in asynchronous tasks.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::{FusedStream, Stream};

use super::message::Message;
use super::reactor::Reactor;
use super::watch::Registration;
use crate::assembly::FragmentAssembler;
use crate::error::PollError;
use crate::header::Header;
use crate::subscription::Subscription;

/// Polls for fragments before the task yields to others of its runtime.
const POLLS_PER_TURN: usize = 64;

/// A [`Subscription`] for asynchronous tasks; made by [`Subscription::into_async`].
///
/// [`poll`](Self::poll) passes fragments to a handler as [`Subscription::poll`] does, without a copy or an allocation,
/// and waits while there is none. As a [`Stream`] it yields whole messages, each copied into a [`Message`]. The stream
/// ends when the application closes the client, by [`Client::close`](crate::Client::close) or by dropping its last
/// clone, and after an error.
///
/// Both are cancellation safe: nothing is consumed before it is delivered. While the task does not poll, the subscriber
/// position does not move, and flow control holds the publishers back as it does for any slow subscriber.
///
/// ```
/// # use std::pin::pin;
/// # use std::task::{Context, Poll, Waker};
/// # use taran::{Client, Reactor};
/// # use taran_driver::{DriverContext, MediaDriver};
/// use futures_util::StreamExt;
///
/// # fn main() -> Result<(), taran::Error> {
/// # let driver = MediaDriver::launch_embedded(DriverContext::new().ipc_term_buffer_length(65_536)).unwrap();
/// # let client = Client::builder().aeron_dir(driver.aeron_dir()).connect()?;
/// # let reactor = Reactor::start()?;
/// # let task = async {
/// # let publication = client.add_publication("aeron:ipc", 1001)?;
/// let mut messages = client.async_add_subscription("aeron:ipc", 1001)?.await?.into_async(&reactor);
/// # publication.into_async(&reactor).offer(b"hello").await?;
/// while let Some(message) = messages.next().await {
///     let message = message?;
///     println!("{} bytes from session {}", message.len(), message.session_id());
/// #   break;
/// }
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
pub struct AsyncSubscription {
    subscription: Subscription,
    registration: Registration,
    /// For the messages of the stream.
    assembler: FragmentAssembler,
    /// True after the stream has ended.
    ended: bool,
}

impl Subscription {
    /// Converts the subscription for asynchronous tasks, which `reactor` wakes.
    #[must_use]
    pub fn into_async(self, reactor: &Reactor) -> AsyncSubscription {
        AsyncSubscription {
            registration: Registration::of_subscription(&self, reactor),
            subscription: self,
            assembler: FragmentAssembler::new(),
            ended: false,
        }
    }
}

impl AsyncSubscription {
    /// Waits for fragments, calls `handler` for up to `fragment_limit` of them, and returns their number, which is not
    /// 0 unless the limit is. See [`Subscription::poll`].
    ///
    /// Do not mix it with the stream within a fragmented message: the stream would miss fragments, and skip the message.
    ///
    /// # Errors
    /// The client is closed, or the driver is lost.
    pub async fn poll(
        &mut self,
        mut handler: impl FnMut(&[u8], &Header<'_>),
        fragment_limit: usize,
    ) -> Result<usize, PollError> {
        if fragment_limit == 0 {
            return Ok(0);
        }
        let waiting = Waiting(self);
        poll_fn(|context| {
            waiting
                .0
                .poll_fragments(context, &mut handler, fragment_limit)
        })
        .await
    }

    fn poll_fragments(
        &mut self,
        context: &Context<'_>,
        handler: &mut impl FnMut(&[u8], &Header<'_>),
        fragment_limit: usize,
    ) -> Poll<Result<usize, PollError>> {
        // The first poll can consume padding at the end of a term; the second sees the next term.
        for _ in 0..2 {
            let fragments = self.subscription.poll(&mut *handler, fragment_limit)?;
            if fragments > 0 {
                return Poll::Ready(Ok(fragments));
            }
        }
        self.registration
            .arm_after_poll(context.waker(), &self.subscription);
        Poll::Pending
    }

    /// Returns the subscription.
    #[must_use]
    pub fn get_ref(&self) -> &Subscription {
        &self.subscription
    }

    /// Returns the subscription, for instance to poll it without waiting.
    pub fn get_mut(&mut self) -> &mut Subscription {
        &mut self.subscription
    }

    /// Returns the subscription. A message of the stream that has arrived in part is lost.
    #[must_use]
    pub fn into_inner(self) -> Subscription {
        self.subscription
    }

    pub(super) fn poll_message(
        &mut self,
        context: &Context<'_>,
    ) -> Poll<Result<Message, PollError>> {
        for _ in 0..POLLS_PER_TURN {
            let mut assembler = std::mem::take(&mut self.assembler);
            let mut message = None;
            let polled = {
                let mut handler = assembler.wrap(|payload: &[u8], header: &Header<'_>| {
                    message = Some(Message::new(payload, header));
                });
                // One fragment, because a second message would have no receiver.
                self.poll_fragments(context, &mut handler, 1)
            };
            self.assembler = assembler;
            ready!(polled)?;
            if let Some(message) = message {
                return Poll::Ready(Ok(message));
            }
        }
        // A long message: other tasks run before its next fragments are read.
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Stream for AsyncSubscription {
    type Item = Result<Message, PollError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let message = ready!(self.poll_message(context));
        self.ended = message.is_err();
        Poll::Ready(match message {
            Err(PollError::Closed) => None,
            message => Some(message),
        })
    }
}

impl FusedStream for AsyncSubscription {
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

/// Forgets the task when its future is dropped.
struct Waiting<'a>(&'a mut AsyncSubscription);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.registration.disarm();
    }
}
