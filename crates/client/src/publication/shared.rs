//! Publications that any number of threads and processes may share.

use std::net::SocketAddr;
use std::sync::Arc;

use taran_protocol::command::Command;
use taran_protocol::log::{FrameClaim, LogFrame, SharedAppender, Tail};

use super::accessors::accessors;
use super::facts::Size;
use super::{PublicationFacts, PublicationState};
use crate::Position;
use crate::channel_status::{self, ChannelStatus};
use crate::error::{AddError, OfferError};
use crate::pending::Pending;

/// Sends one stream on one channel; any number of threads may offer to it at once.
///
/// A publication is cheap to clone; clones are the same publication. It is closed by [`close`](Self::close) on any of
/// them, or when the last one is dropped. Publications of the same channel and stream on the same driver, in whatever
/// process, share one stream.
///
/// Offering allocates nothing and takes no lock.
#[derive(Clone, Debug)]
pub struct Publication(Arc<PublicationHandle>);

#[derive(Debug)]
pub(crate) struct PublicationHandle {
    facts: PublicationFacts,
    appender: SharedAppender,
}

impl Drop for PublicationHandle {
    fn drop(&mut self) {
        // An error says that it was closed before, or with its client.
        drop(self.facts.close());
    }
}

impl PublicationHandle {
    /// The place to append at, if the publication is open and has not reached its limit.
    #[inline]
    fn admit(&self, size: Size) -> Result<Tail, OfferError> {
        self.facts.check_open()?;
        let limit = self.facts.limit();
        let tail = self.appender.tail().ok_or(OfferError::AdminAction)?;
        if (0..limit).contains(&tail.position()) {
            Ok(tail)
        } else {
            Err(self.facts.pressed_back(tail.position(), size))
        }
    }
}

impl Publication {
    pub(crate) fn new(facts: PublicationFacts) -> Self {
        let appender = SharedAppender::new(facts.log.as_ref().clone());
        Self(Arc::new(PublicationHandle { facts, appender }))
    }

    pub(crate) fn from_handle(handle: Arc<PublicationHandle>) -> Self {
        Self(handle)
    }

    pub(crate) fn handle(&self) -> &Arc<PublicationHandle> {
        &self.0
    }

    pub(crate) fn state(&self) -> &Arc<PublicationState> {
        &self.0.facts.state
    }

    /// Sends a message; returns the position of the stream after it. A message longer than
    /// [`max_payload_length`](Self::max_payload_length) travels in fragments.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let driver = taran_driver::MediaDriver::launch_embedded(
    /// #     taran_driver::DriverContext::new().ipc_term_buffer_length(65_536),
    /// # )?;
    /// # let client = taran::Context::new().aeron_dir(driver.aeron_dir()).connect()?;
    /// # let mut subscription = client.add_subscription("aeron:ipc", 1001)?;
    /// # let publication = client.add_publication("aeron:ipc", 1001)?;
    /// loop {
    ///     match publication.offer(b"hello") {
    ///         Ok(position) => break println!("sent, up to {position}"),
    ///         Err(error) if error.is_retryable() => std::thread::yield_now(),
    ///         Err(error) => return Err(error.into()),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Nothing was sent; see [`OfferError`] for what to do.
    #[inline]
    pub fn offer(&self, message: &[u8]) -> Result<Position, OfferError> {
        let handle = &*self.0;
        let tail = handle.admit(Size::Message(message.len()))?;
        handle
            .appender
            .append(tail, message, None)
            .map_err(|error| handle.facts.refused(&error))
    }

    /// Sends the parts, one after the other, as one message.
    ///
    /// # Errors
    /// As [`offer`](Self::offer).
    #[inline]
    pub fn offer_parts(&self, parts: &[&[u8]]) -> Result<Position, OfferError> {
        let handle = &*self.0;
        let tail = handle.admit(Size::Message(total_length(parts)))?;
        handle
            .appender
            .append_parts(tail, parts, None)
            .map_err(|error| handle.facts.refused(&error))
    }

    /// As [`offer_parts`](Self::offer_parts). `reserved` is called with the payload of each fragment just before it is
    /// sent, and gives the value that the receiver finds in
    /// [`Header::reserved_value`](crate::Header::reserved_value): a checksum, a time.
    ///
    /// # Errors
    /// As [`offer`](Self::offer).
    #[inline]
    pub fn offer_with(
        &self,
        parts: &[&[u8]],
        mut reserved: impl FnMut(&[u8]) -> i64,
    ) -> Result<Position, OfferError> {
        let handle = &*self.0;
        let tail = handle.admit(Size::Message(total_length(parts)))?;
        let mut of_frame = |frame: LogFrame<'_>| reserved(frame.payload());
        let appended = handle
            .appender
            .append_parts(tail, parts, Some(&mut of_frame));
        appended.map_err(|error| handle.facts.refused(&error))
    }

    /// Reserves `length` bytes of the stream to write a message into without a copy. It is sent by
    /// [`commit`](crate::BufferClaim::commit); a claim that is dropped is aborted. Later messages of the stream wait
    /// for it, so do not keep it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let driver = taran_driver::MediaDriver::launch_embedded(
    /// #     taran_driver::DriverContext::new().ipc_term_buffer_length(65_536),
    /// # )?;
    /// # let client = taran::Context::new().aeron_dir(driver.aeron_dir()).connect()?;
    /// # let mut subscription = client.add_subscription("aeron:ipc", 1001)?;
    /// # let publication = client.add_publication("aeron:ipc", 1001)?;
    /// # while !publication.is_connected() { std::thread::yield_now(); }
    /// let mut claim = publication.try_claim(8)?;
    /// claim.copy_from_slice(&42u64.to_le_bytes());
    /// claim.commit();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`offer`](Self::offer); the length is limited by [`max_payload_length`](Self::max_payload_length).
    #[inline]
    pub fn try_claim(&self, length: usize) -> Result<FrameClaim<'_>, OfferError> {
        let handle = &*self.0;
        let tail = handle.admit(Size::Claim(length))?;
        handle
            .appender
            .claim(tail, length)
            .map_err(|error| handle.facts.refused(&error))
    }

    /// Position up to which the stream was offered, by whoever shares it.
    #[must_use]
    pub fn position(&self) -> Position {
        self.0.facts.log.producer_position()
    }

    accessors!(0.facts);

    /// Closes the publication, for all clones. What was offered is still delivered.
    pub fn close(&self) {
        drop(self.async_close());
    }

    /// As [`close`](Self::close), and answers when the driver has given the publication up.
    ///
    /// # Errors
    /// It was closed before, or with its client.
    pub fn async_close(&self) -> Result<Pending<()>, AddError> {
        self.0.facts.close()
    }

    /// Closes the publication, for all clones, and ends the stream at once for everyone who shares it: what the
    /// receivers have not consumed yet is lost.
    pub fn revoke(&self) {
        self.revoke_on_close();
        self.close();
    }
}

/// Bytes in all parts.
#[inline]
pub(super) fn total_length(parts: &[&[u8]]) -> usize {
    parts
        .iter()
        .fold(0, |total: usize, part| total.saturating_add(part.len()))
}
