// SPDX-License-Identifier: Apache-2.0
//! Atomics shared by the conductor's and the receiver's half of an image.

use taran_core::memory::prefetch_value;
use taran_core::sync::{AtomicBool, AtomicI32, AtomicI64, AtomicU8, Ordering};

/// State of an image (docs/spec/wire.md §5.10). Set by the conductor; the receiver reads it once per poll of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum ImageState {
    /// Created, not yet registered with the dispatcher.
    Init = 0,
    /// Accepts data and sends status messages.
    Active = 1,
    /// Subscribers read the remaining data; status messages carry EOS.
    Draining = 2,
    /// Removed from the clients; `RemoveImage` is on its way to the receiver.
    Linger = 3,
    /// No client reads the image, or it has lingered long enough. Freed after the receiver has released it too.
    Done = 4,
}

impl ImageState {
    fn from_u8(value: u8) -> Self {
        match value {
            0 => Self::Init,
            1 => Self::Active,
            2 => Self::Draining,
            3 => Self::Linger,
            _ => Self::Done,
        }
    }
}

/// State shared by the two halves of an image, besides its log. The position counters of the image lie in memory that
/// clients can write; they are for observation only, and neither half reads them back.
///
/// Methods named `receiver_*` are called by the receiver only, `conductor_*` by the conductor only. All loads are
/// Acquire and all stores are Release.
#[derive(Debug)]
pub(crate) struct ImageShared {
    receiver: ReceiverSide,
    lifecycle: Lifecycle,
    free: FreePosition,
}

/// Fields written by the receiver, on their own cache lines.
#[derive(Debug)]
#[repr(align(128))]
struct ReceiverSide {
    status_position: AtomicI64,
    rebuild_position: AtomicI64,
    demand_position: AtomicI64,
    window: AtomicI32,
    has_received: AtomicBool,
    is_complete: AtomicBool,
    is_timed_out: AtomicBool,
    is_revoked: AtomicBool,
}

/// Written rarely by the conductor, read by the receiver on each poll of the image. On its own cache lines.
#[derive(Debug)]
#[repr(align(128))]
struct Lifecycle {
    state: AtomicU8,
}

/// Written often by the conductor, read by the receiver when it schedules a status message. On its own cache lines.
#[derive(Debug)]
#[repr(align(128))]
struct FreePosition {
    free_position: AtomicI64,
    reserved_position: AtomicI64,
}

impl ImageShared {
    /// Creates the shared state of an image with an empty log that joins at `join_position`; `window` is the receiver
    /// window in bytes. All pages of the log are reserved until
    /// [`conductor_reserved_position`](Self::conductor_reserved_position) is called.
    #[must_use]
    pub(crate) fn new(join_position: i64, window: i32) -> Self {
        Self {
            receiver: ReceiverSide {
                status_position: AtomicI64::new(join_position),
                rebuild_position: AtomicI64::new(join_position),
                demand_position: AtomicI64::new(join_position),
                window: AtomicI32::new(window),
                has_received: AtomicBool::new(false),
                is_complete: AtomicBool::new(false),
                is_timed_out: AtomicBool::new(false),
                is_revoked: AtomicBool::new(false),
            },
            lifecycle: Lifecycle {
                state: AtomicU8::new(ImageState::Init as u8),
            },
            free: FreePosition {
                free_position: AtomicI64::new(join_position),
                reserved_position: AtomicI64::new(i64::MAX),
            },
        }
    }

    /// Returns the rebuild position: all data before it has been received.
    #[must_use]
    pub(crate) fn rebuild_position(&self) -> i64 {
        self.receiver.rebuild_position.load(Ordering::Acquire)
    }

    /// Returns the lowest subscriber position at the time the last status message was scheduled. The conductor frees
    /// the log up to one term behind it; the next status message waits for that.
    #[must_use]
    pub(crate) fn status_position(&self) -> i64 {
        self.receiver.status_position.load(Ordering::Acquire)
    }

    /// Returns the position up to which the stream needs pages: the end of the data that has arrived within the window,
    /// and of padding that was dropped because its pages are not reserved. The join position before the first data
    /// frame. Not updated when all pages are reserved.
    #[must_use]
    pub(crate) fn demand_position(&self) -> i64 {
        self.receiver.demand_position.load(Ordering::Acquire)
    }

    /// Returns true if a frame or a heartbeat was accepted.
    #[must_use]
    pub(crate) fn has_received(&self) -> bool {
        self.receiver.has_received.load(Ordering::Acquire)
    }

    /// Returns the receiver window of the last scheduled status message, bytes.
    #[must_use]
    pub(crate) fn window(&self) -> i32 {
        self.receiver.window.load(Ordering::Acquire)
    }

    /// Returns true if the stream ended and its data is complete up to the end, so that draining can start.
    #[must_use]
    pub(crate) fn is_complete(&self) -> bool {
        self.receiver.is_complete.load(Ordering::Acquire)
    }

    /// Returns true if no frame was accepted for the image liveness timeout. The receiver then ignores the session;
    /// unless the stream had ended, the session is in cool-down until `RemoveCoolDown`.
    #[must_use]
    pub(crate) fn is_timed_out(&self) -> bool {
        self.receiver.is_timed_out.load(Ordering::Acquire)
    }

    /// Returns true if the publisher revoked the stream. The log metadata records it as well.
    #[must_use]
    pub(crate) fn is_revoked(&self) -> bool {
        self.receiver.is_revoked.load(Ordering::Acquire)
    }

    /// Returns true if no more data will arrive.
    pub(crate) fn has_ended(&self) -> bool {
        self.is_complete() || self.is_timed_out() || self.is_revoked()
    }

    /// Prefetches the cache line that the receiver writes.
    pub(crate) fn prefetch_receiver_side(&self) {
        prefetch_value(&self.receiver.status_position);
    }

    /// Returns the free position: all subscribers have passed it. The receiver may write up to three terms beyond it.
    #[must_use]
    pub(crate) fn free_position(&self) -> i64 {
        self.free.free_position.load(Ordering::Acquire)
    }

    /// Returns the position up to which the pages of the log are reserved, `i64::MAX` if all are. The receiver writes
    /// nothing beyond it, and advertises no window beyond it.
    #[must_use]
    pub(crate) fn reserved_position(&self) -> i64 {
        self.free.reserved_position.load(Ordering::Acquire)
    }

    /// Returns the state of the image.
    #[must_use]
    pub(crate) fn state(&self) -> ImageState {
        ImageState::from_u8(self.lifecycle.state.load(Ordering::Acquire))
    }

    /// Called by the conductor: all subscribers have passed `position`.
    pub(crate) fn conductor_free_position(&self, position: i64) {
        self.free.free_position.store(position, Ordering::Release);
    }

    /// Called by the conductor: the pages up to `position` are reserved, all of them for `i64::MAX`.
    pub(crate) fn conductor_reserved_position(&self, position: i64) {
        self.free
            .reserved_position
            .store(position, Ordering::Release);
    }

    /// Called by the conductor: sets the state. This does not wake an idle receiver, which may read the new state only
    /// with its next status message. That is soon enough, because the receiver itself detects the end of an image and
    /// the removal of its last subscriber.
    pub(crate) fn conductor_state(&self, state: ImageState) {
        self.lifecycle.state.store(state as u8, Ordering::Release);
    }

    pub(crate) fn receiver_rebuilt(&self, position: i64) {
        self.receiver
            .rebuild_position
            .store(position, Ordering::Release);
    }

    pub(crate) fn receiver_demand(&self, position: i64) {
        self.receiver
            .demand_position
            .store(position, Ordering::Release);
    }

    pub(crate) fn receiver_received(&self) {
        self.receiver.has_received.store(true, Ordering::Release);
    }

    pub(crate) fn receiver_status(&self, position: i64, window: i32) {
        self.receiver.window.store(window, Ordering::Release);
        self.receiver
            .status_position
            .store(position, Ordering::Release);
    }

    pub(crate) fn receiver_revoked(&self) {
        self.receiver.is_revoked.store(true, Ordering::Release);
    }

    pub(crate) fn receiver_complete(&self) {
        self.receiver.is_complete.store(true, Ordering::Release);
    }

    pub(crate) fn receiver_timed_out(&self) {
        self.receiver.is_timed_out.store(true, Ordering::Release);
    }
}
