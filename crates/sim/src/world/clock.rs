//! The wall clock of a host, which may be offset and stepped.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use taran_core::clock::{ManualClock, WallClock, saturating_nanos};

/// A wall clock with an offset to that of the world. Clones are the same clock.
#[derive(Clone, Debug)]
pub(super) struct HostClock {
    world: ManualClock,
    ahead_ns: Arc<AtomicI64>,
}

impl HostClock {
    pub(super) fn new(world: ManualClock, ahead: Duration) -> Self {
        Self {
            world,
            ahead_ns: Arc::new(AtomicI64::new(saturating_nanos(ahead))),
        }
    }

    /// Steps the clock forward or backward.
    pub(super) fn step(&self, by_ms: i64) {
        self.ahead_ns
            .fetch_add(by_ms * 1_000_000, Ordering::Relaxed);
    }
}

impl WallClock for HostClock {
    fn epoch_nanos(&self) -> i64 {
        self.world.epoch_nanos() + self.ahead_ns.load(Ordering::Relaxed)
    }
}
