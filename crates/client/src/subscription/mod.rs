//! Subscriptions: a stream as this client receives it, from however many publications.

mod state;

use std::net::SocketAddr;
use std::sync::Arc;

use taran_protocol::command::Command;

pub(crate) use state::SubscriptionState;

use crate::Position;
use crate::channel_status::{self, ChannelStatus};
use crate::error::{AddError, PollError};
use crate::header::Header;
use crate::image::{Action, Block, Image, ImageView};
use crate::link::Link;
use crate::pending::Pending;
use crate::registry::Wish;

/// Longest reason for rejecting an image, in bytes.
const REASON_LENGTH_MAX: usize = 1023;

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

    /// Polls images in turn until the limit is used up. The first one moves on by one with each call.
    #[inline]
    fn each(
        &mut self,
        fragment_limit: usize,
        mut poll: impl FnMut(&mut Image, usize) -> usize,
    ) -> Result<usize, PollError> {
        if self.version != self.state.version() {
            self.refresh()?;
        }
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

    /// Takes over what the conductor has changed.
    #[cold]
    fn refresh(&mut self) -> Result<(), PollError> {
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

    // --- images ---

    /// The images at this moment, in the order in which they became available; without those that were taken out.
    pub fn images(&mut self) -> &mut [Image] {
        // A closed subscription has none.
        let _ = self.refresh();
        &mut self.images
    }

    /// The image of a session, to poll it by itself.
    pub fn image_mut(&mut self, session_id: i32) -> Option<&mut Image> {
        self.images()
            .iter_mut()
            .find(|image| image.session_id() == session_id)
    }

    /// What is known of the image of a session, also of one that was taken out.
    #[must_use]
    pub fn image(&self, session_id: i32) -> Option<ImageView> {
        self.state
            .images()
            .into_iter()
            .find(|image| image.session_id() == session_id)
    }

    /// Takes the image of a session out: the subscription does not poll it any more, the caller does, on whatever
    /// thread. When the image is dropped it goes back.
    pub fn take_image(&mut self, session_id: i32) -> Option<Image> {
        let index = self
            .images()
            .iter()
            .position(|image| image.session_id() == session_id)?;
        Some(self.images.remove(index).taken_from(&self.state))
    }

    /// Number of images, those that were taken out included.
    #[must_use]
    pub fn image_count(&self) -> usize {
        self.state.images().len()
    }

    /// True while there is an image.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.image_count() != 0
    }

    // --- about ---

    /// The channel as it was given.
    #[must_use]
    pub fn channel(&self) -> &str {
        &self.state.channel
    }

    /// The stream.
    #[must_use]
    pub fn stream_id(&self) -> i32 {
        self.state.stream_id
    }

    /// Id of the subscription with the driver.
    #[must_use]
    pub fn registration_id(&self) -> i64 {
        self.state.registration_id
    }

    /// State of the channel at the driver.
    #[must_use]
    pub fn channel_status(&self) -> ChannelStatus {
        if self.is_closed() {
            return ChannelStatus::Closed;
        }
        channel_status::read(self.link.counters(), self.state.status_counter_id)
    }

    /// Counter id of the channel's status indicator; `None` for IPC and spies.
    #[must_use]
    pub fn channel_status_id(&self) -> Option<i32> {
        channel_status::known(self.state.status_counter_id)
    }

    /// Addresses that the channel is bound to, with the port that the system chose if the channel says port 0. Empty
    /// for IPC, and until the channel is active.
    #[must_use]
    pub fn local_socket_addresses(&self) -> Vec<SocketAddr> {
        if self.is_closed() {
            return Vec::new();
        }
        channel_status::local_addresses(self.link.counters(), self.state.status_counter_id)
    }

    /// True once the client was closed or has lost its driver.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state.is_closed()
    }

    // --- destinations ---

    /// Adds a source to a subscription whose channel says `control-mode=manual`; waits for the driver.
    ///
    /// # Errors
    /// The driver refuses or does not answer.
    pub fn add_destination(&self, channel: &str) -> Result<(), AddError> {
        self.async_add_destination(channel)?.wait()
    }

    /// As [`add_destination`](Self::add_destination), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_add_destination(&self, channel: &str) -> Result<Pending<()>, AddError> {
        let (client_id, registration_id) = (self.link.client_id, self.check_open(channel)?);
        self.link.ask(
            |promise| Wish::Operation { promise },
            |correlation_id| Command::AddReceiveDestination {
                client_id,
                correlation_id,
                registration_id,
                channel,
            },
        )
    }

    /// Removes a source that was added with the same text; waits for the driver.
    ///
    /// # Errors
    /// The driver refuses or does not answer.
    pub fn remove_destination(&self, channel: &str) -> Result<(), AddError> {
        self.async_remove_destination(channel)?.wait()
    }

    /// As [`remove_destination`](Self::remove_destination), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_remove_destination(&self, channel: &str) -> Result<Pending<()>, AddError> {
        let (client_id, registration_id) = (self.link.client_id, self.check_open(channel)?);
        self.link.ask(
            |promise| Wish::Operation { promise },
            |correlation_id| Command::RemoveReceiveDestination {
                client_id,
                correlation_id,
                registration_id,
                channel,
            },
        )
    }

    /// Sends an image away: its publisher is told the reason, and the stream is not received for the driver's image
    /// liveness timeout; waits for the driver.
    ///
    /// # Errors
    /// The driver refuses or does not answer; the reason has more than 1023 bytes.
    pub fn reject_image(&self, image: &ImageView, reason: &str) -> Result<(), AddError> {
        self.async_reject_image(image, reason)?.wait()
    }

    /// As [`reject_image`](Self::reject_image), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_reject_image(
        &self,
        image: &ImageView,
        reason: &str,
    ) -> Result<Pending<()>, AddError> {
        let (length, max) = (reason.len(), REASON_LENGTH_MAX);
        if length > max {
            return Err(AddError::TooLong {
                what: "reason",
                length,
                max,
            });
        }
        let (client_id, image_id) = (self.link.client_id, image.correlation_id());
        let (position, reason) = (image.position(), reason.as_bytes());
        self.link.ask(
            |promise| Wish::Operation { promise },
            |correlation_id| Command::RejectImage {
                client_id,
                correlation_id,
                image_id,
                position,
                reason,
            },
        )
    }

    fn check_open(&self, channel: &str) -> Result<i64, AddError> {
        crate::link::check_channel(channel)?;
        if self.state.is_closed() {
            return Err(self.link.life.reason().into());
        }
        Ok(self.state.registration_id)
    }

    /// Closes the subscription; the same as dropping it. A callback in progress on another thread is waited for.
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.state.close();
        self.state.end_callbacks();
        self.link.remove_subscription(self.state.registration_id);
    }
}
