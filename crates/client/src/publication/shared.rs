// SPDX-License-Identifier: Apache-2.0
//! Publications that any number of threads and processes may share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use taran_core::idle::IdleStrategy;
use taran_protocol::command::Command;
use taran_protocol::log::{FrameClaim, LogFrame, SharedAppender, Tail};

use super::accessors::accessors;
use super::common::Size;
use super::{PublicationCore, PublicationState};
use crate::Position;
use crate::channel_status::{self, ChannelStatus};
use crate::error::{CommandError, OfferError};
use crate::limit::LimitedBy;
use crate::pending::Pending;

/// A publication that any number of threads may offer to at once.
///
/// A publication is cheap to clone; all clones refer to the same publication. It is closed by [`close`](Self::close) on
/// any of them, or when the last one is dropped. Shared publications of the same channel and stream on the same driver,
/// in any process, append to one stream.
///
/// Offering does not allocate and takes no lock.
#[derive(Clone, Debug)]
#[doc(alias = "ConcurrentPublication")]
pub struct Publication(Arc<PublicationHandle>);

#[derive(Debug)]
pub(crate) struct PublicationHandle {
    core: PublicationCore,
    appender: SharedAppender,
}

impl Drop for PublicationHandle {
    fn drop(&mut self) {
        // An error means that it was closed before, or with its client.
        drop(self.core.close());
    }
}

impl PublicationHandle {
    /// Returns the tail of the log if the publication is open and below its position limit.
    #[inline]
    fn admit(&self, size: Size) -> Result<Tail, OfferError> {
        self.core.check_open()?;
        let limit = self.core.limit();
        let tail = self.appender.tail().ok_or(OfferError::AdminAction)?;
        if (0..limit).contains(&tail.position()) {
            Ok(tail)
        } else {
            Err(self.core.back_pressure_error(tail.position(), size))
        }
    }
}

impl Publication {
    pub(crate) fn new(core: PublicationCore) -> Self {
        let appender = SharedAppender::new(core.log.as_ref().clone());
        Self(Arc::new(PublicationHandle { core, appender }))
    }

    pub(crate) fn from_handle(handle: Arc<PublicationHandle>) -> Self {
        Self(handle)
    }

    pub(crate) fn handle(&self) -> &Arc<PublicationHandle> {
        &self.0
    }

    pub(crate) fn core(&self) -> &PublicationCore {
        &self.0.core
    }

    pub(crate) fn state(&self) -> &Arc<PublicationState> {
        &self.0.core.state
    }

    /// Sends a message. Returns the stream position after it, in bytes. A message longer than
    /// [`max_payload_length`](Self::max_payload_length) is sent in fragments.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let driver = taran_driver::MediaDriver::launch_embedded(
    /// #     taran_driver::DriverContext::new().ipc_term_buffer_length(65_536),
    /// # )?;
    /// # let client = taran::Client::builder().aeron_dir(driver.aeron_dir()).connect()?;
    /// # let mut subscription = client.add_subscription("aeron:ipc", 1001)?;
    /// # let publication = client.add_publication("aeron:ipc", 1001)?;
    /// match publication.offer(b"hello") {
    ///     Ok(position) => println!("sent, up to {position}"),
    ///     // The same offer can succeed later: `offer_until` repeats it up to a deadline.
    ///     Err(error) if error.is_retryable() => println!("not sent: {error}"),
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Nothing was sent; see [`OfferError`] for the causes.
    #[inline]
    pub fn offer(&self, message: &[u8]) -> Result<Position, OfferError> {
        let handle = &*self.0;
        let tail = handle.admit(Size::Message(message.len()))?;
        handle
            .appender
            .append(tail, message, None)
            .map_err(|error| handle.core.append_error(&error))
    }

    /// Repeats an [`offer`](Self::offer) as [`retry_until`](Self::retry_until) does.
    ///
    /// # Errors
    /// As for [`offer`](Self::offer); a retryable error is that of the last attempt.
    pub fn offer_until(
        &self,
        message: &[u8],
        deadline: Instant,
        idle: &mut impl IdleStrategy,
    ) -> Result<Position, OfferError> {
        self.retry_until(deadline, idle, |publication| publication.offer(message))
    }

    /// Repeats `attempt`, an offer or claim of any kind, while its error is [retryable](OfferError::is_retryable), until
    /// `deadline` at the latest; makes at least one attempt. `idle` waits between two attempts. In invoker mode the
    /// client conductor runs between them, and a driver set with
    /// [`ClientBuilder::driver_invoker`](crate::ClientBuilder::driver_invoker).
    ///
    /// The deadline is one of the system's clock, also in a client with a
    /// [clock of its own](crate::ClientBuilder::clock): a simulation repeats [`offer`](Self::offer) by itself.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let driver = taran_driver::MediaDriver::launch_embedded(
    /// #     taran_driver::DriverContext::new().ipc_term_buffer_length(65_536),
    /// # )?;
    /// # let client = taran::Client::builder().aeron_dir(driver.aeron_dir()).connect()?;
    /// # let mut subscription = client.add_subscription("aeron:ipc", 1001)?;
    /// # let publication = client.add_publication("aeron:ipc", 1001)?;
    /// use std::time::{Duration, Instant};
    /// use taran::idle::Yield;
    ///
    /// let deadline = Instant::now() + Duration::from_secs(10);
    /// let claim = publication.retry_until(deadline, &mut Yield, |publication| publication.try_claim(8));
    /// let mut claim = claim?;
    /// claim.copy_from_slice(&42u64.to_le_bytes());
    /// claim.commit();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The error of `attempt`; a retryable one is that of the last attempt.
    pub fn retry_until<'p, T>(
        &'p self,
        deadline: Instant,
        idle: &mut impl IdleStrategy,
        mut attempt: impl FnMut(&'p Self) -> Result<T, OfferError>,
    ) -> Result<T, OfferError> {
        loop {
            match attempt(self) {
                Err(error) if error.is_retryable() => {
                    self.0.core.await_retry(error, deadline, idle)?;
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
    pub fn offer_parts(&self, parts: &[&[u8]]) -> Result<Position, OfferError> {
        let handle = &*self.0;
        let tail = handle.admit(Size::Message(total_length(parts)))?;
        handle
            .appender
            .append_parts(tail, parts, None)
            .map_err(|error| handle.core.append_error(&error))
    }

    /// Like [`offer_parts`](Self::offer_parts), with a reserved value for each fragment, for instance a checksum or a
    /// timestamp. `reserved` is called with the payload of each fragment before it is sent, and returns the value for
    /// [`Header::reserved_value`](crate::Header::reserved_value).
    ///
    /// # Errors
    /// As for [`offer`](Self::offer).
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
        appended.map_err(|error| handle.core.append_error(&error))
    }

    /// Claims `length` bytes of the stream, to write a message in place without a copy.
    /// [`commit`](crate::BufferClaim::commit) sends the message; dropping the claim aborts it. Later messages of the
    /// stream are not delivered before the claim is committed or aborted, so it must be short-lived.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let driver = taran_driver::MediaDriver::launch_embedded(
    /// #     taran_driver::DriverContext::new().ipc_term_buffer_length(65_536),
    /// # )?;
    /// # let client = taran::Client::builder().aeron_dir(driver.aeron_dir()).connect()?;
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
    /// As for [`offer`](Self::offer); `length` is limited by [`max_payload_length`](Self::max_payload_length).
    #[inline]
    pub fn try_claim(&self, length: usize) -> Result<FrameClaim<'_>, OfferError> {
        let handle = &*self.0;
        let tail = handle.admit(Size::Claim(length))?;
        handle
            .appender
            .claim(tail, length)
            .map_err(|error| handle.core.append_error(&error))
    }

    /// Returns the stream position after the last message of any publisher that shares the stream, in bytes.
    #[must_use]
    pub fn position(&self) -> Position {
        self.0.core.log.producer_position()
    }

    accessors!(0.core);

    /// Closes the publication for all clones. Messages that were offered before are still delivered.
    pub fn close(&self) {
        drop(self.async_close());
    }

    /// Like [`close`](Self::close). The result is available when the driver has removed the publication.
    ///
    /// # Errors
    /// The publication or its client is closed already.
    pub fn async_close(&self) -> Result<Pending<()>, CommandError> {
        self.0.core.close()
    }

    /// Closes the publication for all clones and ends the stream at once, for all publications that share it: messages
    /// that were not consumed yet are lost.
    pub fn revoke(&self) {
        self.revoke_on_close();
        self.close();
    }
}

/// Returns the total length of the parts in bytes.
#[inline]
pub(super) fn total_length(parts: &[&[u8]]) -> usize {
    parts
        .iter()
        .fold(0, |total: usize, part| total.saturating_add(part.len()))
}
