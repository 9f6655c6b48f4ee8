// SPDX-License-Identifier: Apache-2.0
//! Images: the streams that a subscription receives, one per publication.

mod block;
mod raw;
mod reject;
mod view;

use std::ops::Deref;
use std::sync::Arc;

use taran_core::memory::{Region, StoredFile};
use taran_protocol::log::{self, CorruptFrame, LogFrame, Polled};

pub use block::Block;
pub use raw::{LogFileError, RawBlock};
pub use taran_protocol::log::Action;
pub(crate) use view::ImageParams;
pub use view::ImageView;

use crate::Position;
use crate::header::Header;
use crate::subscription::SubscriptionState;

/// The stream of one publication as received by one subscription, with the right to consume it.
///
/// An image belongs to its [`Subscription`](crate::Subscription), which polls all its images in turn. To poll a single
/// image, borrow it with [`Subscription::image_mut`](crate::Subscription::image_mut), or move it out with
/// [`Subscription::take_image`](crate::Subscription::take_image), for instance to another thread. A taken image returns
/// to its subscription when it is dropped.
///
/// An image dereferences to [`ImageView`], which has its properties. Each poll stays within one term and delivers
/// fragments in stream order. Polls do not allocate and take no lock.
///
/// ```
/// # fn main() -> Result<(), taran::Error> {
/// # let driver = taran_driver::MediaDriver::launch_embedded(
/// #     taran_driver::DriverContext::new().ipc_term_buffer_length(65_536),
/// # ).unwrap();
/// # let directory = driver.aeron_dir();
/// # let client = taran::Client::builder().aeron_dir(directory).connect()?;
/// let mut subscription = client.add_subscription("aeron:ipc", 1001)?;
/// let publication = client.add_publication("aeron:ipc", 1001)?;
/// // The stream of one publisher, for instance for another thread.
/// let mut image = loop {
///     match subscription.take_image(publication.session_id()) {
///         Some(image) => break image,
///         None => std::thread::yield_now(),
///     }
/// };
/// # while publication.offer(b"hello").is_err() { std::thread::yield_now(); }
/// while image.poll(|message, _| println!("{} bytes", message.len()), 10) == 0 {
///     std::thread::yield_now();
/// }
/// println!("{} consumed up to {}", image.source_identity(), image.position());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Image {
    view: ImageView,
    position: Position,
    owner: Option<Arc<SubscriptionState>>,
    /// The file of the log, opened by the first raw poll.
    file: Option<StoredFile>,
}

/// Error of moving an image to a position.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PositionError {
    /// The position is not within the rest of the current term, or is not a multiple of 32.
    #[error(
        "position {position} is not a multiple of 32 from {min} to {max}, the rest of the current term"
    )]
    OutOfRange {
        /// The requested position.
        position: Position,
        /// Current position of the image.
        min: Position,
        /// The end of the current term.
        max: Position,
    },
    /// The image is closed.
    #[error("the image is closed")]
    Closed,
}

taran_core::debug_is_display!(PositionError);

impl Deref for Image {
    type Target = ImageView;

    fn deref(&self) -> &ImageView {
        &self.view
    }
}

/// Progress of a poll within a term. Stores the position when it is dropped, also when the handler panics.
struct PollCursor<'a> {
    image: &'a ImageView,
    position: &'a mut Position,
    /// Position of the start of the term.
    term_begin: Position,
    /// Position up to which the stream is consumed.
    next_position: Position,
}

impl<'a> PollCursor<'a> {
    fn new(image: &'a ImageView, position: &'a mut Position) -> Self {
        let (term_begin, next_position) = (image.geometry().term_begin(*position), *position);
        Self {
            image,
            position,
            term_begin,
            next_position,
        }
    }

    /// Returns the term and the offset of the next frame.
    #[inline]
    fn term(&self) -> (&'a Region, i32) {
        (
            self.image.log().term_at(self.next_position),
            self.image.geometry().term_offset(self.next_position),
        )
    }

    /// Converts a limit position to an offset in the term.
    #[inline]
    fn offset_of(&self, limit: Position) -> i32 {
        // At most a term, so it fits.
        limit
            .saturating_sub(self.term_begin)
            .clamp(0, Position::from(self.image.geometry().term_length())) as i32
    }

    /// Consumes a frame and calls the handler with it.
    #[inline]
    fn deliver<R>(
        &mut self,
        frame: &LogFrame<'_>,
        handler: &mut impl FnMut(&[u8], &Header<'_>) -> R,
    ) -> R {
        self.next_position =
            self.term_begin + Position::from(frame.offset() + frame.aligned_length());
        handler(
            frame.payload(),
            &Header::of_frame(frame, self.next_position, self.image),
        )
    }

    /// Ends the poll and returns the number of fragments; marks the image as damaged after a corrupt frame.
    fn finish(&mut self, polled: Result<Polled, CorruptFrame>) -> usize {
        let Ok(Polled { fragments, offset }) = polled else {
            self.image.mark_damaged();
            return 0;
        };
        self.next_position = self.term_begin + Position::from(offset);
        fragments
    }

    /// Stores the position for the driver.
    fn commit(&mut self) {
        if self.next_position != *self.position {
            *self.position = self.next_position;
            self.image.store_position(self.next_position);
        }
    }
}

impl Drop for PollCursor<'_> {
    fn drop(&mut self) {
        self.commit();
    }
}

impl Image {
    pub(crate) fn new(view: ImageView) -> Self {
        let position = view.position();
        Self {
            view,
            position,
            owner: None,
            file: None,
        }
    }

    pub(crate) fn into_taken(mut self, owner: &Arc<SubscriptionState>) -> Self {
        self.view.mark_taken();
        self.owner = Some(Arc::clone(owner));
        self
    }

    /// Returns the properties of this image, as a handle that may be kept.
    #[must_use]
    pub fn view(&self) -> &ImageView {
        &self.view
    }

    /// Polls for up to `fragment_limit` fragments, calls `handler` for each, and returns their number.
    ///
    /// A long message is delivered in several fragments; see [`FragmentAssembler`](crate::FragmentAssembler). If the
    /// handler panics, the fragment counts as consumed. A closed image delivers nothing.
    #[inline]
    pub fn poll(
        &mut self,
        handler: impl FnMut(&[u8], &Header<'_>),
        fragment_limit: usize,
    ) -> usize {
        self.bounded_poll(handler, Position::MAX, fragment_limit)
    }

    /// Like [`poll`](Self::poll), but stops before the first frame that starts at or after `limit_position`.
    #[inline]
    pub fn bounded_poll(
        &mut self,
        mut handler: impl FnMut(&[u8], &Header<'_>),
        limit_position: Position,
        fragment_limit: usize,
    ) -> usize {
        if self.view.is_closed() {
            return 0;
        }
        let mut cursor = PollCursor::new(&self.view, &mut self.position);
        let ((term, offset), limit) = (cursor.term(), cursor.offset_of(limit_position));
        let polled = log::poll_bounded(term, offset, limit, fragment_limit, |frame| {
            cursor.deliver(&frame, &mut handler);
        });
        cursor.finish(polled)
    }

    /// Like [`poll`](Self::poll), but `handler` controls after each fragment how the poll continues; see [`Action`]. An
    /// aborted fragment is not counted.
    #[inline]
    pub fn controlled_poll(
        &mut self,
        handler: impl FnMut(&[u8], &Header<'_>) -> Action,
        fragment_limit: usize,
    ) -> usize {
        self.bounded_controlled_poll(handler, Position::MAX, fragment_limit)
    }

    /// Like [`poll`](Self::poll), with a handler that can fail; its error ends the poll and is returned. The fragment
    /// that it failed for is not consumed, as after [`Action::Abort`]: the next poll delivers it again. The fragments
    /// before it are consumed.
    ///
    /// # Errors
    /// The error of the handler.
    #[inline]
    pub fn try_poll<E>(
        &mut self,
        mut handler: impl FnMut(&[u8], &Header<'_>) -> Result<(), E>,
        fragment_limit: usize,
    ) -> Result<usize, E> {
        let mut failure = None;
        let controlled = |fragment: &[u8], header: &Header<'_>| match handler(fragment, header) {
            Ok(()) => Action::Continue,
            Err(error) => {
                failure = Some(error);
                Action::Abort
            }
        };
        let fragments = self.controlled_poll(controlled, fragment_limit);
        failure.map_or(Ok(fragments), Err)
    }

    /// Like [`controlled_poll`](Self::controlled_poll), but stops before the first frame that starts at or after
    /// `limit_position`.
    #[inline]
    pub fn bounded_controlled_poll(
        &mut self,
        mut handler: impl FnMut(&[u8], &Header<'_>) -> Action,
        limit_position: Position,
        fragment_limit: usize,
    ) -> usize {
        if self.view.is_closed() {
            return 0;
        }
        let mut cursor = PollCursor::new(&self.view, &mut self.position);
        let ((term, offset), limit) = (cursor.term(), cursor.offset_of(limit_position));
        // The commit is done here and not by `poll_controlled`, because it needs the position that the handler has
        // seen.
        let on_frame = |frame: LogFrame<'_>| {
            let action = cursor.deliver(&frame, &mut handler);
            if action == Action::Commit {
                cursor.commit();
            }
            action
        };
        let polled = log::poll_controlled(term, offset, limit, fragment_limit, on_frame, |_| ());
        cursor.finish(polled)
    }

    /// Calls `handler` with fragments from `initial_position` on without consuming them, and returns the position up to
    /// which whole messages were seen. The position of the image does not change, so [`Action::Commit`] is the same as
    /// [`Action::Continue`]. `initial_position` must be the end of a frame that has arrived.
    ///
    /// # Errors
    /// `initial_position` is not within the rest of the current term, or the image is closed.
    pub fn controlled_peek(
        &self,
        initial_position: Position,
        mut handler: impl FnMut(&[u8], &Header<'_>) -> Action,
        limit_position: Position,
    ) -> Result<Position, PositionError> {
        self.check_position(initial_position)?;
        let mut position = self.position;
        // The cursor is never stored: a peek consumes nothing.
        let cursor = PollCursor::new(&self.view, &mut position);
        let (term, _) = cursor.term();
        let (begin, offset, limit) = (
            cursor.term_begin,
            cursor.offset_of(initial_position),
            cursor.offset_of(limit_position),
        );
        let peeked = log::peek(term, offset, limit, |frame| {
            let end = begin + Position::from(frame.offset() + frame.aligned_length());
            handler(frame.payload(), &Header::of_frame(&frame, end, &self.view))
        });
        let Ok(boundary) = peeked else {
            self.view.mark_damaged();
            return Ok(initial_position);
        };
        Ok(begin + Position::from(boundary))
    }

    /// Calls `handler` with one block of committed whole frames, of up to `limit_bytes` bytes; returns the number of
    /// bytes consumed. A padding frame is delivered as a block of its own, even if it is longer than the limit; only
    /// its header is meaningful.
    pub fn block_poll(&mut self, mut handler: impl FnMut(&Block<'_>), limit_bytes: usize) -> usize {
        if self.view.is_closed() {
            return 0;
        }
        let mut cursor = PollCursor::new(&self.view, &mut self.position);
        let (term, offset) = cursor.term();
        match log::poll_block(term, offset, i32::try_from(limit_bytes).unwrap_or(i32::MAX)) {
            Ok(Some(block)) => {
                cursor.next_position += Position::from(block.length());
                handler(&Block::new(block, cursor.next_position));
                block.length() as usize
            }
            Ok(None) => 0,
            Err(CorruptFrame { .. }) => {
                cursor.image.mark_damaged();
                0
            }
        }
    }

    /// Moves the image forward to a position; the bytes before it count as consumed. The position must be the end of a
    /// frame that has arrived, as returned by a peek: after the last frame, the term still contains frames of three
    /// terms ago.
    ///
    /// # Errors
    /// The position is not within the rest of the current term, is not a multiple of 32, or the image is closed.
    pub fn set_position(&mut self, position: Position) -> Result<(), PositionError> {
        self.check_position(position)?;
        let mut cursor = PollCursor::new(&self.view, &mut self.position);
        cursor.next_position = position;
        Ok(())
    }

    fn check_position(&self, position: Position) -> Result<(), PositionError> {
        if self.view.is_closed() {
            return Err(PositionError::Closed);
        }
        let geometry = self.view.geometry();
        let (min, max) = (
            self.position,
            geometry.term_begin(self.position) + Position::from(geometry.term_length()),
        );
        if position < min || position > max || position % 32 != 0 {
            return Err(PositionError::OutOfRange { position, min, max });
        }
        Ok(())
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        if let Some(owner) = self.owner.take() {
            self.view.mark_returned();
            owner.bump_version();
        }
    }
}
