// SPDX-License-Identifier: Apache-2.0
//! Subscriptions: receiving streams from any number of publications.

mod accessors;
mod destinations;
mod images;
#[cfg(feature = "async")]
mod polled;
mod state;

use std::sync::Arc;

pub(crate) use state::SubscriptionState;

use crate::Position;
use crate::client_core::ClientCore;
use crate::client_state::CloseReason;
use crate::error::{CommandError, PollError, RawPollError};
use crate::header::Header;
use crate::image::{Action, Block, Image, RawBlock};
use crate::pending::Pending;
use crate::removal::ResourceKind;

/// Receives one stream of one channel: an [`Image`] for each publication, polled in turn.
///
/// A subscription belongs to one thread at a time; it may be moved to another. It is closed by [`close`](Self::close)
/// or by drop; no callback about its images runs after that. Polling does not allocate and takes no lock, except when
/// the list of images has changed.
#[derive(Debug)]
pub struct Subscription {
    client: Arc<ClientCore>,
    state: Arc<SubscriptionState>,
    /// The images as of `version`, without those that were taken.
    images: Vec<Image>,
    version: u64,
    /// Index of the image that the next poll starts with.
    round_robin_index: usize,
}

impl Subscription {
    pub(crate) fn new(client: Arc<ClientCore>, state: Arc<SubscriptionState>) -> Self {
        // The state's version starts at 0, so the first poll updates the images.
        Self {
            client,
            state,
            images: Vec::new(),
            version: u64::MAX,
            round_robin_index: 0,
        }
    }

    // --- polling ---

    /// Polls the images in turn for up to `fragment_limit` fragments, calls `handler` for each, and returns their
    /// number.
    ///
    /// A long message is delivered in several fragments; see [`FragmentAssembler`](crate::FragmentAssembler). If the
    /// handler panics, the fragment counts as consumed.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let driver = taran_driver::MediaDriver::launch_embedded(
    /// #     taran_driver::DriverContext::new().ipc_term_buffer_length(65_536),
    /// # )?;
    /// # let client = taran::Client::builder().aeron_dir(driver.aeron_dir()).connect()?;
    /// # let mut subscription = client.add_subscription("aeron:ipc", 1001)?;
    /// # let publication = client.add_publication("aeron:ipc", 1001)?;
    /// # while publication.offer(b"hello").is_err() { std::thread::yield_now(); }
    /// let mut received = 0;
    /// while received == 0 {
    ///     received = subscription.poll(|message, header| {
    ///         println!("{message:?} ends at position {}", header.position());
    ///     }, 10)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The subscription or its client is closed, or the driver is lost.
    #[inline]
    pub fn poll(
        &mut self,
        mut handler: impl FnMut(&[u8], &Header<'_>),
        fragment_limit: usize,
    ) -> Result<usize, PollError> {
        self.poll_images(fragment_limit, |image, limit| {
            image.poll(&mut handler, limit)
        })
    }

    /// Like [`poll`](Self::poll), but each image stops before the first frame that starts at or after `limit_position`
    /// of its stream.
    ///
    /// # Errors
    /// The subscription or its client is closed, or the driver is lost.
    #[inline]
    pub fn bounded_poll(
        &mut self,
        mut handler: impl FnMut(&[u8], &Header<'_>),
        limit_position: Position,
        fragment_limit: usize,
    ) -> Result<usize, PollError> {
        self.poll_images(fragment_limit, |image, limit| {
            image.bounded_poll(&mut handler, limit_position, limit)
        })
    }

    /// Like [`poll`](Self::poll), but `handler` controls after each fragment how the poll of its image continues.
    ///
    /// [`Action::Abort`] and [`Action::Break`] end the poll of that image only; the next image is polled.
    ///
    /// # Errors
    /// The subscription or its client is closed, or the driver is lost.
    #[inline]
    pub fn controlled_poll(
        &mut self,
        mut handler: impl FnMut(&[u8], &Header<'_>) -> Action,
        fragment_limit: usize,
    ) -> Result<usize, PollError> {
        self.poll_images(fragment_limit, |image, limit| {
            image.controlled_poll(&mut handler, limit)
        })
    }

    /// Like [`poll`](Self::poll), with a handler that can fail; its error ends the poll and is returned. The fragment
    /// that it failed for is not consumed, as after [`Action::Abort`]: a later poll delivers it again. The fragments
    /// before it are consumed. To consume the fragment, keep the error elsewhere and return `Ok`.
    ///
    /// ```
    /// # fn main() -> Result<(), taran::Error> {
    /// # let driver = taran_driver::MediaDriver::launch_embedded(
    /// #     taran_driver::DriverContext::new().ipc_term_buffer_length(65_536),
    /// # ).unwrap();
    /// # let client = taran::Client::builder().aeron_dir(driver.aeron_dir()).connect()?;
    /// # let mut subscription = client.add_subscription("aeron:ipc", 1001)?;
    /// # let responses = client.add_subscription("aeron:ipc", 1002)?;
    /// # let publication = client.add_publication("aeron:ipc", 1001)?;
    /// # let echo = client.add_publication("aeron:ipc", 1002)?;
    /// # while publication.offer(b"hello").is_err() { std::thread::yield_now(); }
    /// # let mut echoed = 0;
    /// # while echoed == 0 {
    /// // A message that cannot be echoed now is delivered again.
    /// match subscription.try_poll(|message, _| echo.offer(message).map(drop).map_err(taran::Error::from), 10) {
    ///     Ok(fragments) => echoed += fragments,
    ///     Err(error) if error.is_retryable() => std::thread::yield_now(),
    ///     Err(error) => return Err(error),
    /// }
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The error of the handler; the subscription or its client is closed, or the driver is lost.
    #[inline]
    pub fn try_poll<E: From<PollError>>(
        &mut self,
        mut handler: impl FnMut(&[u8], &Header<'_>) -> Result<(), E>,
        fragment_limit: usize,
    ) -> Result<usize, E> {
        let mut failure = None;
        let fragments = self.poll_images(fragment_limit, |image, limit| {
            if failure.is_some() {
                return 0;
            }
            image.try_poll(&mut handler, limit).unwrap_or_else(|error| {
                failure = Some(error);
                0
            })
        })?;
        failure.map_or(Ok(fragments), Err)
    }

    /// Calls `handler` with blocks of whole frames, at most one per image and up to `limit_bytes` bytes each; returns
    /// the number of bytes consumed.
    ///
    /// # Errors
    /// The subscription or its client is closed, or the driver is lost.
    pub fn block_poll(
        &mut self,
        mut handler: impl FnMut(&Block<'_>),
        limit_bytes: usize,
    ) -> Result<usize, PollError> {
        self.refresh()?;
        Ok(self
            .images
            .iter_mut()
            .map(|image| image.block_poll(&mut handler, limit_bytes))
            .sum())
    }

    /// Like [`block_poll`](Self::block_poll), and passes the location of each block in its log file.
    ///
    /// # Errors
    /// As for [`poll`](Self::poll); a log file cannot be opened, in which case earlier images may have been consumed.
    pub fn raw_poll(
        &mut self,
        mut handler: impl FnMut(&RawBlock<'_>),
        limit_bytes: usize,
    ) -> Result<usize, RawPollError> {
        self.refresh()?;
        let mut consumed = 0;
        for image in &mut self.images {
            consumed += image.raw_poll(&mut handler, limit_bytes)?;
        }
        Ok(consumed)
    }

    /// Polls images until the fragment limit is reached. Each call starts with the next image.
    #[inline]
    fn poll_images(
        &mut self,
        fragment_limit: usize,
        mut poll: impl FnMut(&mut Image, usize) -> usize,
    ) -> Result<usize, PollError> {
        self.refresh()?;
        let count = self.images.len();
        let first = if self.round_robin_index < count {
            self.round_robin_index
        } else {
            0
        };
        self.round_robin_index = first + 1;
        let mut fragments = 0;
        let (before, after) = self.images.split_at_mut(first);
        for image in after.iter_mut().chain(before) {
            if fragments >= fragment_limit {
                break;
            }
            fragments += poll(image, fragment_limit - fragments);
        }
        Ok(fragments)
    }

    /// Updates the images if the conductor has changed them.
    #[inline]
    fn refresh(&mut self) -> Result<(), PollError> {
        if self.version == self.state.version() {
            Ok(())
        } else {
            self.update_images()
        }
    }

    #[cold]
    fn update_images(&mut self) -> Result<(), PollError> {
        let version = self.state.version();
        if self.state.is_closed() {
            // The version is not updated, so that every later poll returns the error.
            self.images.clear();
            return Err(self.state.close_reason().into());
        }
        let current = self.state.images();
        self.images
            .retain(|image| current.iter().any(|view| view.is_same(image)));
        for (index, view) in current.iter().filter(|view| !view.is_taken()).enumerate() {
            if !self
                .images
                .get(index)
                .is_some_and(|image| view.is_same(image))
            {
                self.images.insert(index, Image::new(view.clone()));
            }
        }
        self.version = version;
        Ok(())
    }

    /// Returns true if the subscription was closed by its registration id or with its client, or the driver is lost.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state.is_closed()
    }

    /// Closes the subscription, like dropping it. Waits for a callback in progress on another thread.
    pub fn close(self) {
        drop(self);
    }

    /// Like [`close`](Self::close). The result is available when the driver has removed the subscription.
    ///
    /// # Errors
    /// The subscription was closed by its registration id, or the client is closed.
    pub fn async_close(self) -> Result<Pending<()>, CommandError> {
        self.client.close_subscription(&self.state)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // An error means that it was closed before, or with its client.
        drop(self.client.close_subscription(&self.state));
    }
}

impl ClientCore {
    /// Closes a subscription and its images; no callback about them runs after that. The result is available when the
    /// driver has removed the subscription.
    pub(crate) fn close_subscription(
        self: &Arc<Self>,
        state: &SubscriptionState,
    ) -> Result<Pending<()>, CommandError> {
        let images = state.close(CloseReason::Closed);
        state.end_callbacks();
        for image in images {
            self.resource_linger.add(Arc::clone(image.log()));
        }
        let registration_id = state.registration_id;
        if self
            .registry()
            .subscriptions
            .remove(&registration_id)
            .is_none()
        {
            return Err(state.close_reason().into());
        }
        self.request_removal(ResourceKind::Subscription, registration_id, false)
    }
}
