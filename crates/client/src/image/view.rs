// SPDX-License-Identifier: Apache-2.0
//! Properties of an image.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Weak};

use taran_core::counters::Counter;
use taran_core::memory::{Storage, StoredFile};
use taran_protocol::log::LogBuffers;
use taran_protocol::position::TermGeometry;

use crate::Position;
use crate::client_core::ClientCore;
use crate::error::CommandError;
use crate::pending::Pending;

/// Properties of an image when it becomes available.
#[derive(Debug)]
pub(crate) struct ImageParams {
    pub(crate) client: Weak<ClientCore>,
    pub(crate) correlation_id: i64,
    pub(crate) subscription_id: i64,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) source_identity: String,
    pub(crate) counter_id: i32,
    pub(crate) counter: Counter,
    pub(crate) join_position: Position,
    pub(crate) log_path: PathBuf,
    /// The storage that has the log.
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) log: Arc<LogBuffers>,
}

#[derive(Debug)]
struct ImageState {
    params: ImageParams,
    geometry: TermGeometry,
    closed: AtomicBool,
    /// Set while the image is taken out of its subscription.
    taken: AtomicBool,
    /// Registration id of the position counter when the image was created. If it changes, the counter was reused.
    counter_registration_id: i64,
    /// Position up to which the stream is consumed. Not read back from the counter, which other processes can write and
    /// which may be reused after the image has ended.
    position: AtomicI64,
    /// Set when a poll finds a corrupt frame; cleared when that is reported.
    damaged: AtomicBool,
    /// End-of-stream position at the close; valid once `closed` is set.
    final_end_of_stream: AtomicI64,
    was_revoked: AtomicBool,
}

/// Properties and progress of an [`Image`](crate::Image).
///
/// A view is cheap to clone and may be kept: the log stays mapped while any view of it exists. Polling needs the
/// [`Image`](crate::Image) itself.
#[derive(Clone)]
pub struct ImageView(Arc<ImageState>);

impl std::fmt::Debug for ImageView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageView")
            .field("correlation_id", &self.correlation_id())
            .field("session_id", &self.session_id())
            .field("stream_id", &self.stream_id())
            .field("source_identity", &self.source_identity())
            .field("position", &self.position())
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

impl ImageView {
    pub(crate) fn new(params: ImageParams) -> Self {
        let geometry = params.log.geometry();
        Self(Arc::new(ImageState {
            geometry,
            closed: AtomicBool::new(false),
            taken: AtomicBool::new(false),
            counter_registration_id: params.counter.registration_id(),
            position: AtomicI64::new(params.join_position),
            damaged: AtomicBool::new(false),
            final_end_of_stream: AtomicI64::new(i64::MAX),
            was_revoked: AtomicBool::new(false),
            params,
        }))
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn log(&self) -> &Arc<LogBuffers> {
        &self.0.params.log
    }

    pub(crate) fn geometry(&self) -> TermGeometry {
        self.0.geometry
    }

    /// Stores the position up to which the stream is consumed, for the driver and for readers of this view.
    #[inline]
    pub(crate) fn store_position(&self, position: Position) {
        let Self(state) = self;
        // Relaxed: there is one poller at a time, and other readers need the number only.
        state.position.store(position, Ordering::Relaxed);
        let counter = &state.params.counter;
        // The driver may have timed out a process that was stopped for long, and may have given its counter to another
        // subscriber.
        if !self.is_closed() && counter.registration_id() == state.counter_registration_id {
            // Release: pairs with the acquire in the driver, which frees the log before this position.
            counter.set(position);
        }
    }

    /// Returns true if there is a frame to consume, or padding.
    #[cfg(feature = "async")]
    pub(crate) fn has_frame(&self) -> bool {
        let (log, position) = (self.log(), self.position());
        let offset = self.geometry().term_offset(position);
        // A poll reports a corrupt frame and consumes nothing.
        let frame = taran_protocol::log::frame_at(log.term_at(position), offset);
        !self.is_closed() && frame.is_ok_and(|frame| frame.is_some())
    }

    pub(crate) fn is_taken(&self) -> bool {
        self.0.taken.load(Ordering::Acquire)
    }

    /// Marks the image as taken out of its subscription.
    pub(crate) fn mark_taken(&self) {
        self.0.taken.store(true, Ordering::Release);
    }

    /// Marks the image as returned to its subscription.
    pub(crate) fn mark_returned(&self) {
        // Release: pairs with the acquire in `is_taken`; the next poller sees the position.
        self.0.taken.store(false, Ordering::Release);
    }

    #[cold]
    pub(crate) fn mark_damaged(&self) {
        self.0.damaged.store(true, Ordering::Relaxed);
    }

    /// Returns true if the image was marked as damaged since the last call.
    pub(crate) fn take_damaged_flag(&self) -> bool {
        self.0.damaged.load(Ordering::Relaxed) && self.0.damaged.swap(false, Ordering::Relaxed)
    }

    /// Closes the image. The values that readers need afterwards are stored first.
    pub(crate) fn close(&self) {
        let Self(state) = self;
        if !self.is_closed() {
            state
                .final_end_of_stream
                .store(state.params.log.end_of_stream_position(), Ordering::Relaxed);
            state
                .was_revoked
                .store(state.params.log.is_revoked(), Ordering::Relaxed);
            // Release: pairs with the acquire in `is_closed`; a thread that sees the image closed sees these values.
            state.closed.store(true, Ordering::Release);
        }
    }

    /// Returns true if the image has become unavailable, or its subscription or client is closed. A closed image
    /// delivers nothing.
    #[inline]
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Acquire)
    }

    /// Returns the session id of the publication.
    #[must_use]
    pub fn session_id(&self) -> i32 {
        self.0.params.session_id
    }

    /// Returns the stream id.
    #[must_use]
    pub fn stream_id(&self) -> i32 {
        self.0.params.stream_id
    }

    /// Returns the source of the stream: `address:port` of the sender, or `aeron:ipc`.
    #[must_use]
    pub fn source_identity(&self) -> &str {
        &self.0.params.source_identity
    }

    /// Returns the correlation id of the image, assigned by the driver.
    #[must_use]
    pub fn correlation_id(&self) -> i64 {
        self.0.params.correlation_id
    }

    /// Returns the registration id of the image's subscription.
    #[must_use]
    pub fn subscription_registration_id(&self) -> i64 {
        self.0.params.subscription_id
    }

    /// Returns the path of the log file: three consecutive terms, followed by their metadata. The driver deletes the
    /// file some time after the image has become unavailable.
    #[must_use]
    pub fn log_path(&self) -> &Path {
        &self.0.params.log_path
    }

    /// Opens the log for reading.
    pub(super) fn open_log(&self) -> io::Result<StoredFile> {
        self.0.params.storage.open_file(self.log_path())
    }

    /// Returns the id of the counter that holds the subscriber position.
    #[must_use]
    pub fn subscriber_position_id(&self) -> i32 {
        self.0.params.counter_id
    }

    /// Returns the position at which this subscription joined the stream, in bytes.
    #[must_use]
    pub fn join_position(&self) -> Position {
        self.0.params.join_position
    }

    /// Returns the id of the first term of the stream.
    #[must_use]
    pub fn initial_term_id(&self) -> i32 {
        self.0.geometry.initial_term_id()
    }

    /// Returns the length of a term in bytes.
    #[must_use]
    pub fn term_length(&self) -> usize {
        // A term length is a power of two from 64 KiB to 1 GiB.
        self.0.geometry.term_length() as usize
    }

    /// Returns the maximum length of a frame in bytes, header included.
    #[must_use]
    pub fn mtu(&self) -> usize {
        self.0.params.log.mtu() as usize
    }

    /// Returns the position up to which this subscription has consumed the stream, in bytes; after the close its final
    /// value.
    #[must_use]
    pub fn position(&self) -> Position {
        self.0.position.load(Ordering::Relaxed)
    }

    /// Returns the position at which the stream ends, in bytes; `i64::MAX` while the publication is open.
    #[must_use]
    pub fn end_of_stream_position(&self) -> Position {
        if self.is_closed() {
            self.0.final_end_of_stream.load(Ordering::Relaxed)
        } else {
            self.0.params.log.end_of_stream_position()
        }
    }

    /// Returns true if the publication is closed and the stream is consumed up to its end.
    #[must_use]
    pub fn is_end_of_stream(&self) -> bool {
        self.position() >= self.end_of_stream_position()
    }

    /// Returns true if the publication was revoked: the part of the stream that was not consumed by then is lost.
    #[must_use]
    pub fn is_publication_revoked(&self) -> bool {
        if self.is_closed() {
            self.0.was_revoked.load(Ordering::Relaxed)
        } else {
            self.0.params.log.is_revoked()
        }
    }

    /// Returns the number of transports on which frames of the stream have arrived recently; 0 for IPC, and after the
    /// close.
    #[must_use]
    pub fn active_transport_count(&self) -> i32 {
        if self.is_closed() {
            0
        } else {
            self.0.params.log.active_transport_count()
        }
    }

    /// Rejects the image: `reason` (at most 1023 bytes) is sent to the publisher, and the stream is not received for
    /// the driver's image liveness timeout. Waits for the driver, so image handlers must use
    /// [`async_reject`](Self::async_reject).
    ///
    /// # Errors
    /// The driver rejects the command or does not answer; the reason is too long; the client is closed.
    pub fn reject(&self, reason: &str) -> Result<(), CommandError> {
        self.async_reject(reason)?.wait()
    }

    /// Like [`reject`](Self::reject), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_reject(&self, reason: &str) -> Result<Pending<()>, CommandError> {
        let client = self.0.params.client.upgrade().ok_or(CommandError::Closed)?;
        client.reject(self, reason)
    }
}
