//! What is known of an image, for anyone who asks.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Weak};

use taran_core::counters::Counter;
use taran_protocol::log::LogBuffers;
use taran_protocol::position::TermGeometry;

use crate::Position;
use crate::error::AddError;
use crate::link::Link;
use crate::pending::Pending;

/// What the conductor learns of an image when it becomes available.
#[derive(Debug)]
pub(crate) struct ImageFacts {
    pub(crate) link: Weak<Link>,
    pub(crate) correlation_id: i64,
    pub(crate) subscription_id: i64,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) source_identity: String,
    pub(crate) counter_id: i32,
    pub(crate) counter: Counter,
    pub(crate) join_position: Position,
    pub(crate) log_path: PathBuf,
    pub(crate) log: Arc<LogBuffers>,
}

#[derive(Debug)]
struct ImageState {
    facts: ImageFacts,
    geometry: TermGeometry,
    closed: AtomicBool,
    /// Polled outside its subscription.
    taken: AtomicBool,
    /// Registration id of the position counter when it was handed to us: another one means another owner.
    counter_registration_id: i64,
    /// What is consumed. Kept beside the counter, which other processes can write, and which belongs to somebody else
    /// after the end.
    position: AtomicI64,
    /// A frame was met that can not be. Cleared when it was reported.
    damaged: AtomicBool,
    /// Valid once `closed` is set.
    last_end: AtomicI64,
    was_revoked: AtomicBool,
}

/// What is known of an image: which publication it is of, and how far its subscription has come.
///
/// An *image* is one publication as one subscription sees it. A view is cheap to clone and may be kept: the log stays
/// mapped as long as any view of it lives. Only the [`Image`](crate::Image) itself can be polled.
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
    pub(crate) fn new(facts: ImageFacts) -> Self {
        let geometry = facts.log.geometry();
        Self(Arc::new(ImageState {
            geometry,
            closed: AtomicBool::new(false),
            taken: AtomicBool::new(false),
            counter_registration_id: facts.counter.registration_id(),
            position: AtomicI64::new(facts.join_position),
            damaged: AtomicBool::new(false),
            last_end: AtomicI64::new(i64::MAX),
            was_revoked: AtomicBool::new(false),
            facts,
        }))
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn log(&self) -> &Arc<LogBuffers> {
        &self.0.facts.log
    }

    pub(crate) fn geometry(&self) -> TermGeometry {
        self.0.geometry
    }

    /// All before `position` is consumed: the driver may be told.
    #[inline]
    pub(crate) fn consume(&self, position: Position) {
        let Self(state) = self;
        // Relaxed: one poller at a time, and who else asks wants a number only.
        state.position.store(position, Ordering::Relaxed);
        let counter = &state.facts.counter;
        // A process that was stopped for long may be given up by the driver without knowing it yet, and its counter be
        // another subscriber's.
        if !self.is_closed() && counter.registration_id() == state.counter_registration_id {
            // Release: partner of the acquire in the driver, which frees what lies before this position.
            counter.set(position);
        }
    }

    pub(crate) fn is_taken(&self) -> bool {
        self.0.taken.load(Ordering::Acquire)
    }

    /// Somebody polls it outside its subscription.
    pub(crate) fn hand_out(&self) {
        self.0.taken.store(true, Ordering::Release);
    }

    /// The subscription polls it again, from where it was left.
    pub(crate) fn hand_back(&self) {
        // Release: partner of the acquire in `is_taken`; the next poller sees the position.
        self.0.taken.store(false, Ordering::Release);
    }

    #[cold]
    pub(crate) fn note_damage(&self) {
        self.0.damaged.store(true, Ordering::Relaxed);
    }

    /// True if damage was noted since the last call.
    pub(crate) fn take_damage(&self) -> bool {
        self.0.damaged.load(Ordering::Relaxed) && self.0.damaged.swap(false, Ordering::Relaxed)
    }

    /// Ends the image. What has to be known afterwards is noted first.
    pub(crate) fn close(&self) {
        let Self(state) = self;
        if !self.is_closed() {
            state
                .last_end
                .store(state.facts.log.end_of_stream_position(), Ordering::Relaxed);
            state
                .was_revoked
                .store(state.facts.log.is_revoked(), Ordering::Relaxed);
            // Release: partner of the acquire in `is_closed`; who sees it closed sees its last state.
            state.closed.store(true, Ordering::Release);
        }
    }

    /// True once the driver has said that the image is gone, or the subscription or the client was closed. A closed
    /// image delivers nothing more.
    #[inline]
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Acquire)
    }

    /// Session of the publication.
    #[must_use]
    pub fn session_id(&self) -> i32 {
        self.0.facts.session_id
    }

    /// Stream of the publication and the subscription.
    #[must_use]
    pub fn stream_id(&self) -> i32 {
        self.0.facts.stream_id
    }

    /// Who sends: `address:port` of the sender, or `aeron:ipc`.
    #[must_use]
    pub fn source_identity(&self) -> &str {
        &self.0.facts.source_identity
    }

    /// Id that the driver gave the image.
    #[must_use]
    pub fn correlation_id(&self) -> i64 {
        self.0.facts.correlation_id
    }

    /// Registration id of the subscription that the image belongs to.
    #[must_use]
    pub fn subscription_registration_id(&self) -> i64 {
        self.0.facts.subscription_id
    }

    /// Where the log of the image is: three terms, one after the other, and what describes them. The driver deletes the
    /// file some time after the image has ended.
    #[must_use]
    pub fn log_path(&self) -> &Path {
        &self.0.facts.log_path
    }

    /// Id of the counter that holds the subscriber's position.
    #[must_use]
    pub fn subscriber_position_id(&self) -> i32 {
        self.0.facts.counter_id
    }

    /// Position at which this subscription joined the stream.
    #[must_use]
    pub fn join_position(&self) -> Position {
        self.0.facts.join_position
    }

    /// Id of the first term of the stream.
    #[must_use]
    pub fn initial_term_id(&self) -> i32 {
        self.0.geometry.initial_term_id()
    }

    /// Bytes in a term.
    #[must_use]
    pub fn term_length(&self) -> usize {
        // A term length is a power of two from 64 KiB to 1 GiB.
        self.0.geometry.term_length() as usize
    }

    /// Longest frame of the stream in bytes, header included.
    #[must_use]
    pub fn mtu(&self) -> usize {
        self.0.facts.log.mtu() as usize
    }

    /// Position up to which this subscription has consumed the stream; after the end the last one.
    #[must_use]
    pub fn position(&self) -> Position {
        self.0.position.load(Ordering::Relaxed)
    }

    /// Position at which the stream ends; `i64::MAX` while the publisher goes on.
    #[must_use]
    pub fn end_of_stream_position(&self) -> Position {
        if self.is_closed() {
            self.0.last_end.load(Ordering::Relaxed)
        } else {
            self.0.facts.log.end_of_stream_position()
        }
    }

    /// True when the publisher has ended the stream and all of it was consumed.
    #[must_use]
    pub fn is_end_of_stream(&self) -> bool {
        self.position() >= self.end_of_stream_position()
    }

    /// True when the publisher has revoked the stream: what was not consumed by then is lost.
    #[must_use]
    pub fn is_publication_revoked(&self) -> bool {
        if self.is_closed() {
            self.0.was_revoked.load(Ordering::Relaxed)
        } else {
            self.0.facts.log.is_revoked()
        }
    }

    /// Number of network paths on which the stream was heard recently; 0 for IPC and after the end.
    #[must_use]
    pub fn active_transport_count(&self) -> i32 {
        if self.is_closed() {
            0
        } else {
            self.0.facts.log.active_transport_count()
        }
    }

    /// Sends the image away: its publisher is told the reason, and the stream is not received for the driver's image
    /// liveness timeout. Waits for the driver, so not for a handler of images: there it is
    /// [`async_reject`](Self::async_reject).
    ///
    /// # Errors
    /// The driver refuses or does not answer; the reason has more than 1023 bytes; the client has ended.
    pub fn reject(&self, reason: &str) -> Result<(), AddError> {
        self.async_reject(reason)?.wait()
    }

    /// As [`reject`](Self::reject), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_reject(&self, reason: &str) -> Result<Pending<()>, AddError> {
        let link = self.0.facts.link.upgrade().ok_or(AddError::Closed)?;
        link.reject(self, reason)
    }
}
