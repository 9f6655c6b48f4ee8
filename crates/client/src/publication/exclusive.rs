//! Publications with one writer.

use std::net::SocketAddr;
use std::sync::Arc;

use taran_protocol::command::Command;
use taran_protocol::log::{ExclusiveAppender, FrameClaim, LogFrame};

use super::accessors::accessors;
use super::facts::Size;
use super::shared::total_length;
use super::{PublicationFacts, PublicationState};
use crate::Position;
use crate::channel_status::{self, ChannelStatus};
use crate::error::{AddError, OfferError};
use crate::pending::Pending;

/// Sends a stream of its own on one channel, from one thread at a time.
///
/// It is closed by [`close`](Self::close) or when it is dropped. Offering allocates nothing, takes no lock, and needs no
/// atomic read-modify-write.
#[derive(Debug)]
pub struct ExclusivePublication {
    facts: PublicationFacts,
    appender: ExclusiveAppender,
}

impl Drop for ExclusivePublication {
    fn drop(&mut self) {
        // An error says that it was closed before, or with its client.
        drop(self.facts.close());
    }
}

impl ExclusivePublication {
    pub(crate) fn new(facts: PublicationFacts) -> Result<Self, AddError> {
        let appender = ExclusiveAppender::new(facts.log.as_ref().clone()).map_err(|error| {
            AddError::Damaged {
                reason: error.to_string(),
            }
        })?;
        Ok(Self { facts, appender })
    }

    pub(crate) fn state(&self) -> &Arc<PublicationState> {
        &self.facts.state
    }

    #[inline]
    fn admit(&self, size: Size) -> Result<(), OfferError> {
        self.facts.check_open()?;
        let position = self.appender.position();
        if position < self.facts.limit() {
            Ok(())
        } else {
            Err(self.facts.pressed_back(position, size))
        }
    }

    /// Sends a message; returns the position of the stream after it. See [`Publication::offer`](crate::Publication::offer).
    ///
    /// # Errors
    /// Nothing was sent; see [`OfferError`] for what to do.
    #[inline]
    pub fn offer(&mut self, message: &[u8]) -> Result<Position, OfferError> {
        self.admit(Size::Message(message.len()))?;
        let Self { facts, appender } = self;
        appender
            .append(message, None)
            .map_err(|error| facts.refused(&error))
    }

    /// Sends the parts, one after the other, as one message.
    ///
    /// # Errors
    /// As [`offer`](Self::offer).
    #[inline]
    pub fn offer_parts(&mut self, parts: &[&[u8]]) -> Result<Position, OfferError> {
        self.admit(Size::Message(total_length(parts)))?;
        let Self { facts, appender } = self;
        appender
            .append_parts(parts, None)
            .map_err(|error| facts.refused(&error))
    }

    /// As [`offer_parts`](Self::offer_parts), with a reserved value for each fragment; see
    /// [`Publication::offer_with`](crate::Publication::offer_with).
    ///
    /// # Errors
    /// As [`offer`](Self::offer).
    #[inline]
    pub fn offer_with(
        &mut self,
        parts: &[&[u8]],
        mut reserved: impl FnMut(&[u8]) -> i64,
    ) -> Result<Position, OfferError> {
        self.admit(Size::Message(total_length(parts)))?;
        let Self { facts, appender } = self;
        let mut of_frame = |frame: LogFrame<'_>| reserved(frame.payload());
        appender
            .append_parts(parts, Some(&mut of_frame))
            .map_err(|error| facts.refused(&error))
    }

    /// Reserves `length` bytes of the stream to write a message into without a copy; see
    /// [`Publication::try_claim`](crate::Publication::try_claim).
    ///
    /// # Errors
    /// As [`offer`](Self::offer); the length is limited by [`max_payload_length`](Self::max_payload_length).
    #[inline]
    pub fn try_claim(&mut self, length: usize) -> Result<FrameClaim<'_>, OfferError> {
        self.admit(Size::Claim(length))?;
        let Self { facts, appender } = self;
        appender
            .claim(length)
            .map_err(|error| facts.refused(&error))
    }

    /// Moves the stream on by a frame of padding with room for `length` bytes, which subscribers skip.
    ///
    /// # Errors
    /// As [`offer`](Self::offer); the length is limited by [`max_message_length`](Self::max_message_length).
    pub fn append_padding(&mut self, length: usize) -> Result<Position, OfferError> {
        self.admit(Size::Message(length))?;
        let Self { facts, appender } = self;
        appender
            .append_padding(length)
            .map_err(|error| facts.refused(&error))
    }

    /// Appends whole frames as they were received, for instance by [`Image::block_poll`](crate::Image::block_poll): for
    /// replaying a recorded stream. The first frame must carry the offset, term, session and stream that are next here,
    /// and the block must fit the present term.
    ///
    /// # Errors
    /// As [`offer`](Self::offer), and [`OfferError::InvalidBlock`].
    pub fn offer_block(&mut self, block: &[u8]) -> Result<Position, OfferError> {
        self.admit(Size::Block(block.len()))?;
        let Self { facts, appender } = self;
        appender
            .append_block(block)
            .map_err(|error| facts.refused_block(&error))
    }

    /// Position up to which the stream was offered.
    #[must_use]
    pub fn position(&self) -> Position {
        self.appender.position()
    }

    /// Id of the term that the next message goes to.
    #[must_use]
    pub fn term_id(&self) -> i32 {
        self.appender.term_id()
    }

    /// Where in that term it goes, in bytes; the length of the term if it is full.
    #[must_use]
    pub fn term_offset(&self) -> i32 {
        self.appender.term_offset()
    }

    accessors!(facts);

    /// Closes the publication; the same as dropping it. What was offered is still delivered.
    pub fn close(self) {
        drop(self);
    }

    /// As [`close`](Self::close), and answers when the driver has given the publication up.
    ///
    /// # Errors
    /// It was closed before by its id, or with its client.
    pub fn async_close(self) -> Result<Pending<()>, AddError> {
        self.facts.close()
    }

    /// Closes the publication and ends the stream at once: what the receivers have not consumed yet is lost.
    pub fn revoke(self) {
        self.revoke_on_close();
    }
}
