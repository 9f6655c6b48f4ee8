//! Images: one publication as one subscription sees it.

mod block;
mod raw;
mod reject;
mod view;

use std::fs::File;
use std::ops::Deref;
use std::sync::Arc;

use taran_core::memory::Region;
use taran_protocol::log::{self, CorruptFrame, LogFrame, Polled};

pub use block::Block;
pub use raw::{LogFileError, RawBlock};
pub use taran_protocol::log::Action;
pub(crate) use view::ImageFacts;
pub use view::ImageView;

use crate::Position;
use crate::header::Header;
use crate::subscription::SubscriptionState;

/// One publication as one subscription sees it, with the right to consume it.
///
/// An image belongs to its [`Subscription`](crate::Subscription), which polls all its images in turn. To poll one by
/// itself borrow it with [`Subscription::image_mut`](crate::Subscription::image_mut), or take it out with
/// [`Subscription::take_image`](crate::Subscription::take_image), for instance to give it to another thread. A taken
/// image that is dropped goes back to its subscription.
///
/// What is known about it is in [`ImageView`], to which it dereferences. All polls stay within one term per call and
/// deliver fragments in the order of the stream. They allocate nothing and take no lock.
#[derive(Debug)]
pub struct Image {
    view: ImageView,
    position: Position,
    home: Option<Arc<SubscriptionState>>,
    /// The file of the log, once a raw poll has opened it.
    file: Option<File>,
}

/// A position that an image can not be moved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PositionError {
    /// Not within the rest of the present term, or not a multiple of 32.
    #[error(
        "position {position} is not a multiple of 32 from {min} to {max}, the rest of the present term"
    )]
    OutOfRange {
        /// The position asked for.
        position: Position,
        /// The present position of the image.
        min: Position,
        /// End of the present term.
        max: Position,
    },
    /// The image is closed.
    #[error("the image is closed")]
    Closed,
}

impl Deref for Image {
    type Target = ImageView;

    fn deref(&self) -> &ImageView {
        &self.view
    }
}

/// A poll in progress: the term it reads and how far it has come. Stores the position when it ends, also when it ends by
/// a panic of the handler.
struct Turn<'a> {
    image: &'a ImageView,
    position: &'a mut Position,
    /// Position of the start of the term.
    begin: Position,
    /// What is consumed by now.
    next: Position,
}

impl<'a> Turn<'a> {
    fn new(image: &'a ImageView, position: &'a mut Position) -> Self {
        let (begin, next) = (image.geometry().term_begin(*position), *position);
        Self {
            image,
            position,
            begin,
            next,
        }
    }

    /// The term, and where in it to go on.
    #[inline]
    fn term(&self) -> (&'a Region, i32) {
        (
            self.image.log().term_at(self.next),
            self.image.geometry().term_offset(self.next),
        )
    }

    /// An offset of the term for a limit in positions.
    #[inline]
    fn offset_of(&self, limit: Position) -> i32 {
        // At most a term, so it fits.
        (limit - self.begin).clamp(0, Position::from(self.image.geometry().term_length())) as i32
    }

    /// Consumes a frame and gives it to the handler.
    #[inline]
    fn deliver<R>(
        &mut self,
        frame: &LogFrame<'_>,
        handler: &mut impl FnMut(&[u8], &Header<'_>) -> R,
    ) -> R {
        self.next = self.begin + Position::from(frame.offset() + frame.aligned_length());
        handler(
            frame.payload(),
            &Header::of_frame(frame, self.next, self.image),
        )
    }

    fn end(&mut self, polled: Result<Polled, CorruptFrame>) -> usize {
        let Ok(Polled { fragments, offset }) = polled else {
            self.image.note_damage();
            return 0;
        };
        self.next = self.begin + Position::from(offset);
        fragments
    }

    fn commit(&mut self) {
        if self.next != *self.position {
            *self.position = self.next;
            self.image.consume(self.next);
        }
    }
}

impl Drop for Turn<'_> {
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
            home: None,
            file: None,
        }
    }

    pub(crate) fn taken_from(mut self, home: &Arc<SubscriptionState>) -> Self {
        self.view.hand_out();
        self.home = Some(Arc::clone(home));
        self
    }

    /// What is known of this image, as a handle that may be kept.
    #[must_use]
    pub fn view(&self) -> &ImageView {
        &self.view
    }

    /// Delivers up to `fragment_limit` fragments to `handler`, and returns how many.
    ///
    /// A message longer than the mtu comes in several fragments; see [`FragmentAssembler`](crate::FragmentAssembler).
    /// If the handler panics the fragment counts as consumed. A closed image delivers nothing.
    #[inline]
    pub fn poll(
        &mut self,
        handler: impl FnMut(&[u8], &Header<'_>),
        fragment_limit: usize,
    ) -> usize {
        self.bounded_poll(handler, Position::MAX, fragment_limit)
    }

    /// As [`poll`](Self::poll), and stops before the first frame that starts at or after `limit_position`.
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
        let mut turn = Turn::new(&self.view, &mut self.position);
        let ((term, offset), limit) = (turn.term(), turn.offset_of(limit_position));
        let polled = log::poll_bounded(term, offset, limit, fragment_limit, |frame| {
            turn.deliver(&frame, &mut handler);
        });
        turn.end(polled)
    }

    /// As [`poll`](Self::poll); the handler decides after each fragment how it goes on. A fragment for which the
    /// handler says [`Action::Abort`] is not counted.
    #[inline]
    pub fn controlled_poll(
        &mut self,
        handler: impl FnMut(&[u8], &Header<'_>) -> Action,
        fragment_limit: usize,
    ) -> usize {
        self.bounded_controlled_poll(handler, Position::MAX, fragment_limit)
    }

    /// As [`controlled_poll`](Self::controlled_poll), and stops before the first frame that starts at or after
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
        let mut turn = Turn::new(&self.view, &mut self.position);
        let ((term, offset), limit) = (turn.term(), turn.offset_of(limit_position));
        // Here, and not by the function that polls, because it needs the position as the handler does.
        let steer = |frame: LogFrame<'_>| {
            let action = turn.deliver(&frame, &mut handler);
            if action == Action::Commit {
                turn.commit();
            }
            action
        };
        let polled = log::poll_controlled(term, offset, limit, fragment_limit, steer, |_| ());
        turn.end(polled)
    }

    /// Looks at fragments from `initial_position` on without consuming them, and returns the position up to which
    /// whole messages were seen. The present position of the image does not move; [`Action::Commit`] and
    /// [`Action::Continue`] are the same here. The initial position has to be the end of a frame that has arrived.
    ///
    /// # Errors
    /// The initial position does not lie in the rest of the present term, or the image is closed.
    pub fn controlled_peek(
        &self,
        initial_position: Position,
        mut handler: impl FnMut(&[u8], &Header<'_>) -> Action,
        limit_position: Position,
    ) -> Result<Position, PositionError> {
        self.check_position(initial_position)?;
        let mut place = self.position;
        // Its place is never stored: a peek consumes nothing.
        let turn = Turn::new(&self.view, &mut place);
        let (term, _) = turn.term();
        let (begin, offset, limit) = (
            turn.begin,
            turn.offset_of(initial_position),
            turn.offset_of(limit_position),
        );
        let peeked = log::peek(term, offset, limit, |frame| {
            let end = begin + Position::from(frame.offset() + frame.aligned_length());
            handler(frame.payload(), &Header::of_frame(&frame, end, &self.view))
        });
        let Ok(boundary) = peeked else {
            self.view.note_damage();
            return Ok(initial_position);
        };
        Ok(begin + Position::from(boundary))
    }

    /// Delivers what is committed as one block of whole frames, up to `limit_bytes` bytes; returns how many bytes
    /// were consumed. A padding frame comes alone, however long it is: its header is all of it that has a meaning.
    pub fn block_poll(&mut self, mut handler: impl FnMut(&Block<'_>), limit_bytes: usize) -> usize {
        if self.view.is_closed() {
            return 0;
        }
        let mut turn = Turn::new(&self.view, &mut self.position);
        let (term, offset) = turn.term();
        match log::poll_block(term, offset, i32::try_from(limit_bytes).unwrap_or(i32::MAX)) {
            Ok(Some(block)) => {
                turn.next += Position::from(block.length());
                handler(&Block::new(block, turn.next));
                block.length() as usize
            }
            Ok(None) => 0,
            Err(CorruptFrame { .. }) => {
                turn.image.note_damage();
                0
            }
        }
    }

    /// Skips to a position: what lies before counts as consumed. It has to be the end of a frame that has arrived, as a
    /// peek finds it: further on, frames of three terms ago may lie.
    ///
    /// # Errors
    /// The position does not lie in the rest of the present term or is not a multiple of 32, or the image is closed.
    pub fn set_position(&mut self, position: Position) -> Result<(), PositionError> {
        self.check_position(position)?;
        let mut turn = Turn::new(&self.view, &mut self.position);
        turn.next = position;
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
        if let Some(home) = self.home.take() {
            self.view.hand_back();
            home.note_change();
        }
    }
}
