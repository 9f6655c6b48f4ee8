//! Atomics shared by the conductor's and the receiver's half of an image.

use taran_core::memory::prefetch_value;
use taran_core::sync::{AtomicBool, AtomicI32, AtomicI64, AtomicU8, Ordering};

/// Life of an image (docs/spec/wire.md §5.10). The conductor decides; the receiver looks at it once per duty cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ImageState {
    /// Built, not yet known to the dispatcher.
    Init = 0,
    /// Takes data, sends status messages.
    Active = 1,
    /// The subscribers read what is left; status messages carry EOS.
    Draining = 2,
    /// Gone for the clients; `RemoveImage` is on its way to the receiver.
    Linger = 3,
    /// No client reads it any more, or it has lingered for long enough. Freed once the receiver has given it back too.
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

/// What the two halves of an image see of each other, besides its log. Its counters are in memory that clients
/// write: they are to be looked at, and neither half believes them.
///
/// Setters named `receiver_*` are called by the receiver only, `conductor_*` by the conductor only. All loads acquire
/// and all stores release.
#[derive(Debug)]
pub struct ImageShared {
    receiver: ReceiverSide,
    life: Life,
    freeing: Freeing,
}

/// Written by the receiver. On cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct ReceiverSide {
    status_position: AtomicI64,
    rebuild_position: AtomicI64,
    window: AtomicI32,
    is_complete: AtomicBool,
    is_timed_out: AtomicBool,
    is_revoked: AtomicBool,
}

/// Written by the conductor, rarely; read by the receiver in each turn of the image. On cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Life {
    state: AtomicU8,
}

/// Written by the conductor, often; read by the receiver when it schedules a status message. On cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Freeing {
    free_position: AtomicI64,
}

impl ImageShared {
    /// An image that joins at `join_position`, where its log is empty, with `window` bytes of receiver window.
    #[must_use]
    pub fn new(join_position: i64, window: i32) -> Self {
        Self {
            receiver: ReceiverSide {
                status_position: AtomicI64::new(join_position),
                rebuild_position: AtomicI64::new(join_position),
                window: AtomicI32::new(window),
                is_complete: AtomicBool::new(false),
                is_timed_out: AtomicBool::new(false),
                is_revoked: AtomicBool::new(false),
            },
            life: Life {
                state: AtomicU8::new(ImageState::Init as u8),
            },
            freeing: Freeing {
                free_position: AtomicI64::new(join_position),
            },
        }
    }

    /// Everything before it has arrived.
    #[must_use]
    pub fn rebuild_position(&self) -> i64 {
        self.receiver.rebuild_position.load(Ordering::Acquire)
    }

    /// The lowest subscriber position when the last status message was scheduled. The conductor frees the log up to one
    /// term behind it; status messages wait for that.
    #[must_use]
    pub fn status_position(&self) -> i64 {
        self.receiver.status_position.load(Ordering::Acquire)
    }

    /// Receiver window of the last scheduled status message, bytes.
    #[must_use]
    pub fn window(&self) -> i32 {
        self.receiver.window.load(Ordering::Acquire)
    }

    /// The stream ended and everything up to its end is in the log: time to drain.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.receiver.is_complete.load(Ordering::Acquire)
    }

    /// Nothing was accepted for the image liveness timeout. The receiver already ignores the session; unless the
    /// stream had ended it is on cool-down until `RemoveCoolDown`.
    #[must_use]
    pub fn is_timed_out(&self) -> bool {
        self.receiver.is_timed_out.load(Ordering::Acquire)
    }

    /// The publisher revoked the stream; also set in the log's metadata.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.receiver.is_revoked.load(Ordering::Acquire)
    }

    /// Nothing more will arrive.
    pub(crate) fn has_ended(&self) -> bool {
        self.is_complete() || self.is_timed_out() || self.is_revoked()
    }

    /// Asks for the memory that the receiver writes.
    pub(crate) fn prefetch_receiver_side(&self) {
        prefetch_value(&self.receiver.status_position);
    }

    /// Nobody reads below this position any more: up to three terms ahead of it the log may be written.
    #[must_use]
    pub fn free_position(&self) -> i64 {
        self.freeing.free_position.load(Ordering::Acquire)
    }

    /// Where the image stands in its life.
    #[must_use]
    pub fn state(&self) -> ImageState {
        ImageState::from_u8(self.life.state.load(Ordering::Acquire))
    }

    /// Conductor: nobody reads below `position` any more.
    pub fn conductor_free_position(&self, position: i64) {
        self.freeing
            .free_position
            .store(position, Ordering::Release);
    }

    /// Conductor: the image enters `state`. That wakes nobody: the receiver may notice with its next status message only, if
    /// it has nothing else to do, which is in time for images that have ended or lost their subscribers: it knows of both.
    pub fn conductor_state(&self, state: ImageState) {
        self.life.state.store(state as u8, Ordering::Release);
    }

    pub(crate) fn receiver_rebuilt(&self, position: i64) {
        self.receiver
            .rebuild_position
            .store(position, Ordering::Release);
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
