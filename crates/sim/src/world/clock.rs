// SPDX-License-Identifier: Apache-2.0
//! The clocks of a host, which may be offset to those of the world. The wall clock may also be stepped.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use taran_core::clock::{ManualClock, Now, WallClock, saturating_nanos};

/// Clocks with offsets to those of the world. Clones are the same clocks.
#[derive(Clone, Debug)]
pub(crate) struct HostClock {
    world: ManualClock,
    /// Offset of the monotonic clock.
    ahead_ns: i64,
    /// Offset of the wall clock.
    wall_ahead_ns: Arc<AtomicI64>,
}

impl HostClock {
    pub(super) fn new(world: ManualClock, ahead: Duration) -> Self {
        let ahead_ns = saturating_nanos(ahead);
        Self {
            world,
            ahead_ns,
            wall_ahead_ns: Arc::new(AtomicI64::new(ahead_ns)),
        }
    }

    /// Steps the wall clock forward or backward.
    pub(super) fn step(&self, by_ms: i64) {
        self.wall_ahead_ns
            .fetch_add(by_ms * 1_000_000, Ordering::Relaxed);
    }

    /// Returns the current time.
    pub(crate) fn now(&self) -> Now {
        self.at(self.world.read())
    }

    /// Returns the time of this host for the current time of the world.
    pub(super) fn at(&self, world: Now) -> Now {
        Now {
            nanos: world.nanos + self.ahead_ns,
            epoch_millis: self.epoch_nanos().div_euclid(1_000_000),
        }
    }
}

impl WallClock for HostClock {
    fn epoch_nanos(&self) -> i64 {
        self.world.epoch_nanos() + self.wall_ahead_ns.load(Ordering::Relaxed)
    }
}
