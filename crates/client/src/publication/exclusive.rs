// SPDX-License-Identifier: Apache-2.0
//! Publications with a single writer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use taran_core::idle::IdleStrategy;
use taran_protocol::command::Command;
use taran_protocol::log::{ExclusiveAppender, FrameClaim, LogFrame};

use super::accessors::accessors;
use super::common::Size;
use super::shared::total_length;
use super::{PublicationCore, PublicationState};
use crate::Position;
use crate::channel_status::{self, ChannelStatus};
use crate::error::{CommandError, OfferError};
use crate::limit::LimitedBy;
use crate::pending::Pending;

/// A publication with a single writer and its own session: one thread at a time can offer.
///
/// It is closed by [`close`](Self::close) or by drop. Offering does not allocate, takes no lock, and needs no atomic
/// read-modify-write operation.
///
/// ```
/// # fn main() -> Result<(), taran::Error> {
/// # let driver = taran_driver::MediaDriver::launch_embedded(
/// #     taran_driver::DriverContext::new().ipc_term_buffer_length(65_536),
/// # ).unwrap();
/// # let directory = driver.aeron_dir();
/// # let client = taran::Client::builder().aeron_dir(directory).connect()?;
/// # let subscription = client.add_subscription("aeron:ipc", 1001)?;
/// let mut publication = client.add_exclusive_publication("aeron:ipc", 1001)?;
/// while !publication.is_connected() {
///     std::thread::yield_now();
/// }
/// publication.offer(b"one")?;
/// let mut claim = publication.try_claim(3)?;
/// claim.copy_from_slice(b"two");
/// claim.commit();
/// assert_eq!(publication.position(), 128);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ExclusivePublication {
    core: PublicationCore,
    appender: ExclusiveAppender,
}

impl Drop for ExclusivePublication {
    fn drop(&mut self) {
        // An error means that it was closed before, or with its client.
        drop(self.core.close());
    }
}

impl ExclusivePublication {
    pub(crate) fn new(core: PublicationCore) -> Result<Self, CommandError> {
        let appender = ExclusiveAppender::new(core.log.as_ref().clone()).map_err(|error| {
            CommandError::Damaged {
                reason: error.to_string(),
            }
        })?;
        Ok(Self { core, appender })
    }

    pub(crate) fn core(&self) -> &PublicationCore {
        &self.core
    }

    pub(crate) fn state(&self) -> &Arc<PublicationState> {
        &self.core.state
    }

    #[inline]
    fn admit(&self, size: Size) -> Result<(), OfferError> {
        self.core.check_open()?;
        let position = self.appender.position();
        if position < self.core.limit() {
            Ok(())
        } else {
            Err(self.core.back_pressure_error(position, size))
        }
    }

    /// Sends a message. Returns the stream position after it, in bytes. A message longer than
    /// [`max_payload_length`](Self::max_payload_length) is sent in fragments. See
    /// [`Publication::offer`](crate::Publication::offer) for an example.
    ///
    /// # Errors
    /// Nothing was sent; see [`OfferError`] for the causes.
    #[inline]
    pub fn offer(&mut self, message: &[u8]) -> Result<Position, OfferError> {
        self.admit(Size::Message(message.len()))?;
        let Self { core, appender } = self;
        appender
            .append(message, None)
            .map_err(|error| core.append_error(&error))
    }

    /// Repeats an [`offer`](Self::offer) as [`retry_until`](Self::retry_until) does.
    ///
    /// # Errors
    /// As for [`offer`](Self::offer); a retryable error is that of the last attempt.
    pub fn offer_until(
        &mut self,
        message: &[u8],
        deadline: Instant,
        idle: &mut impl IdleStrategy,
    ) -> Result<Position, OfferError> {
        self.retry_until(deadline, idle, |publication| publication.offer(message))
    }

    /// Repeats `attempt`, an offer of any kind, as
    /// [`Publication::retry_until`](crate::Publication::retry_until) does. A claim is written and committed in `attempt`.
    ///
    /// # Errors
    /// The error of `attempt`; a retryable one is that of the last attempt.
    pub fn retry_until<T>(
        &mut self,
        deadline: Instant,
        idle: &mut impl IdleStrategy,
        mut attempt: impl FnMut(&mut Self) -> Result<T, OfferError>,
    ) -> Result<T, OfferError> {
        loop {
            match attempt(self) {
                Err(error) if error.is_retryable() => {
                    self.core.await_retry(error, deadline, idle)?;
                }
                outcome => return outcome,
            }
        }
    }

    /// Sends one message that is the concatenation of `parts`. Returns the stream position after it.
    ///
    /// # Errors
    /// As for [`offer`](Self::offer).
    #[inline]
    pub fn offer_parts(&mut self, parts: &[&[u8]]) -> Result<Position, OfferError> {
        self.admit(Size::Message(total_length(parts)))?;
        let Self { core, appender } = self;
        appender
            .append_parts(parts, None)
            .map_err(|error| core.append_error(&error))
    }

    /// Like [`offer_parts`](Self::offer_parts), with a reserved value for each fragment; see
    /// [`Publication::offer_with`](crate::Publication::offer_with).
    ///
    /// # Errors
    /// As for [`offer`](Self::offer).
    #[inline]
    pub fn offer_with(
        &mut self,
        parts: &[&[u8]],
        mut reserved: impl FnMut(&[u8]) -> i64,
    ) -> Result<Position, OfferError> {
        self.admit(Size::Message(total_length(parts)))?;
        let Self { core, appender } = self;
        let mut of_frame = |frame: LogFrame<'_>| reserved(frame.payload());
        appender
            .append_parts(parts, Some(&mut of_frame))
            .map_err(|error| core.append_error(&error))
    }

    /// Claims `length` bytes of the stream, to write a message in place without a copy; see
    /// [`Publication::try_claim`](crate::Publication::try_claim).
    ///
    /// # Errors
    /// As for [`offer`](Self::offer); `length` is limited by [`max_payload_length`](Self::max_payload_length).
    #[inline]
    pub fn try_claim(&mut self, length: usize) -> Result<FrameClaim<'_>, OfferError> {
        self.admit(Size::Claim(length))?;
        let Self { core, appender } = self;
        appender
            .claim(length)
            .map_err(|error| core.append_error(&error))
    }

    /// Appends padding with room for `length` bytes, which subscribers skip. Returns the stream position after it.
    ///
    /// # Errors
    /// As for [`offer`](Self::offer); `length` is limited by [`max_message_length`](Self::max_message_length).
    pub fn append_padding(&mut self, length: usize) -> Result<Position, OfferError> {
        self.admit(Size::Message(length))?;
        let Self { core, appender } = self;
        appender
            .append_padding(length)
            .map_err(|error| core.append_error(&error))
    }

    /// Appends whole frames as they were received, for instance by [`Image::block_poll`](crate::Image::block_poll): for
    /// the replay of a recorded stream. The first frame must have the term offset, term id, session id and stream id
    /// that are next in this stream, and the block must fit into the current term. Returns the stream position after
    /// it.
    ///
    /// # Errors
    /// As for [`offer`](Self::offer), and [`OfferError::InvalidBlock`].
    pub fn offer_block(&mut self, block: &[u8]) -> Result<Position, OfferError> {
        self.admit(Size::Block(block.len()))?;
        let Self { core, appender } = self;
        appender
            .append_block(block)
            .map_err(|error| core.block_error(&error))
    }

    /// Appends the padding frame of a recorded stream, of `length` bytes with its header: for the replay of a block of
    /// padding. It must fit into the current term. Returns the stream position after it.
    ///
    /// # Errors
    /// As for [`offer_block`](Self::offer_block).
    pub fn offer_padding_frame(&mut self, length: usize) -> Result<Position, OfferError> {
        self.admit(Size::Block(length))?;
        let Self { core, appender } = self;
        appender
            .append_padding_frame(length)
            .map_err(|error| core.block_error(&error))
    }

    /// Returns the stream position after the last message, in bytes.
    #[must_use]
    pub fn position(&self) -> Position {
        self.appender.position()
    }

    /// Returns the id of the term of the next message.
    #[must_use]
    pub fn term_id(&self) -> i32 {
        self.appender.term_id()
    }

    /// Returns the offset of the next message in its term, in bytes; the term length if the term is full.
    #[must_use]
    pub fn term_offset(&self) -> i32 {
        self.appender.term_offset()
    }

    accessors!(core);

    /// Closes the publication, like dropping it. Messages that were offered before are still delivered.
    pub fn close(self) {
        drop(self);
    }

    /// Like [`close`](Self::close). The result is available when the driver has removed the publication.
    ///
    /// # Errors
    /// The publication was closed by its registration id, or the client is closed.
    pub fn async_close(self) -> Result<Pending<()>, CommandError> {
        self.core.close()
    }

    /// Closes the publication and ends the stream at once: messages that were not consumed yet are lost.
    pub fn revoke(self) {
        self.revoke_on_close();
    }
}
