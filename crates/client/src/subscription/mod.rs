//! Subscriptions: a stream as this client receives it, from however many publications.

mod about;
mod destinations;
mod images;
mod state;

use std::sync::Arc;

pub(crate) use state::SubscriptionState;

use crate::Position;
use crate::error::{AddError, PollError, RawPollError};
use crate::header::Header;
use crate::image::{Action, Block, Image, RawBlock};
use crate::link::Link;
use crate::pending::Pending;
use crate::removal::Kind;

/// Receives one stream of one channel: an [`Image`] for each publication, polled in turn.
///
/// A subscription belongs to one thread at a time; it may be moved to another. It is closed by [`close`](Self::close)
/// or when it is dropped, and no callback about its images comes after that. Polling allocates nothing and takes no
/// lock, except when the list of images has changed.
#[derive(Debug)]
pub struct Subscription {
    link: Arc<Link>,
    state: Arc<SubscriptionState>,
    /// The images as of `version`, less those that were taken out.
    images: Vec<Image>,
    version: u64,
    /// Image that is polled first by the next poll.
    first: usize,
}

impl Subscription {
    pub(crate) fn new(link: Arc<Link>, state: Arc<SubscriptionState>) -> Self {
        // The state's version starts at 0: the first poll looks for images.
        Self {
            link,
            state,
            images: Vec::new(),
            version: u64::MAX,
            first: 0,
        }
    }

    // --- polling ---

    /// Delivers up to `fragment_limit` fragments to `handler`, from the images in turn; returns how many.
    ///
    /// A message longer than the mtu comes in several fragments; see [`FragmentAssembler`](crate::FragmentAssembler).
    /// If the handler panics the fragment counts as consumed.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let driver = taran_driver::MediaDriver::launch_embedded(
    /// #     taran_driver::DriverContext::new().ipc_term_buffer_length(65_536),
    /// # )?;
    /// # let client = taran::Context::new().aeron_dir(driver.aeron_dir()).connect()?;
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
    /// The client was closed, or has lost its driver.
    #[inline]
    pub fn poll(
        &mut self,
        mut handler: impl FnMut(&[u8], &Header<'_>),
        fragment_limit: usize,
    ) -> Result<usize, PollError> {
        self.each(fragment_limit, |image, limit| {
            image.poll(&mut handler, limit)
        })
    }

    /// As [`poll`](Self::poll), and no image goes past a frame that starts at or after `limit_position` of its stream.
    ///
    /// # Errors
    /// The client was closed, or has lost its driver.
    #[inline]
    pub fn bounded_poll(
        &mut self,
        mut handler: impl FnMut(&[u8], &Header<'_>),
        limit_position: Position,
        fragment_limit: usize,
    ) -> Result<usize, PollError> {
        self.each(fragment_limit, |image, limit| {
            image.bounded_poll(&mut handler, limit_position, limit)
        })
    }

    /// As [`poll`](Self::poll); the handler decides after each fragment how its image goes on.
    ///
    /// [`Action::Abort`] and [`Action::Break`] end the turn of that image; the next image is polled all the same.
    ///
    /// # Errors
    /// The client was closed, or has lost its driver.
    #[inline]
    pub fn controlled_poll(
        &mut self,
        mut handler: impl FnMut(&[u8], &Header<'_>) -> Action,
        fragment_limit: usize,
    ) -> Result<usize, PollError> {
        self.each(fragment_limit, |image, limit| {
            image.controlled_poll(&mut handler, limit)
        })
    }

    /// Delivers whole frames in blocks, at most one per image, each of up to `limit_bytes` bytes; returns the bytes
    /// consumed.
    ///
    /// # Errors
    /// The client was closed, or has lost its driver.
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

    /// As [`block_poll`](Self::block_poll), and says where in the files of the logs the blocks lie.
    ///
    /// # Errors
    /// As [`poll`](Self::poll); a file can not be opened: images before it have been polled.
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

    /// Polls images in turn until the limit is used up. The first one moves on by one with each call.
    #[inline]
    fn each(
        &mut self,
        fragment_limit: usize,
        mut poll: impl FnMut(&mut Image, usize) -> usize,
    ) -> Result<usize, PollError> {
        self.refresh()?;
        let count = self.images.len();
        let first = if self.first < count { self.first } else { 0 };
        self.first = first + 1;
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

    /// Takes over what the conductor has changed, if it has changed anything.
    #[inline]
    fn refresh(&mut self) -> Result<(), PollError> {
        if self.version == self.state.version() {
            Ok(())
        } else {
            self.take_over()
        }
    }

    #[cold]
    fn take_over(&mut self) -> Result<(), PollError> {
        let version = self.state.version();
        if self.state.is_closed() {
            // The version is left behind, so that every later poll comes here.
            self.images.clear();
            return Err(self.link.life.reason().into());
        }
        let known = self.state.images();
        self.images
            .retain(|image| known.iter().any(|view| view.is_same(image)));
        for (index, view) in known.iter().filter(|view| !view.is_taken()).enumerate() {
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

    /// True once it was closed by its registration id, or with its client, or the driver is lost.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state.is_closed()
    }

    /// Closes the subscription; the same as dropping it. A callback in progress on another thread is waited for.
    pub fn close(self) {
        drop(self);
    }

    /// As [`close`](Self::close), and answers when the driver has given the subscription up.
    ///
    /// # Errors
    /// It was closed before by its id, or with its client.
    pub fn async_close(self) -> Result<Pending<()>, AddError> {
        self.link.close_subscription(&self.state)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // An error says that it was closed before, or with its client.
        drop(self.link.close_subscription(&self.state));
    }
}

impl Link {
    /// Closes a subscription and its images; no callback about them comes after that. Answers when the driver has
    /// heard.
    pub(crate) fn close_subscription(
        self: &Arc<Self>,
        state: &SubscriptionState,
    ) -> Result<Pending<()>, AddError> {
        let images = state.close();
        state.end_callbacks();
        for image in images {
            self.lingering.keep(Arc::clone(image.log()));
        }
        let registration_id = state.registration_id;
        if self
            .registry()
            .subscriptions
            .remove(&registration_id)
            .is_none()
        {
            return Err(self.life.reason().into());
        }
        self.give_back(Kind::Subscription, registration_id, false)
    }
}
