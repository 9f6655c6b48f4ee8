// SPDX-License-Identifier: Apache-2.0
//! Limits of the file systems for shared memory, as operations that any suite can add.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Operation, Setting};
use crate::{HostIndex, World};

/// Highest number of changes of limits in a scenario.
const CHANGES: usize = 10;
/// Binary logarithms of the bytes that a limited file system may have left: from a page to several terms.
const LEFT_LOG2: std::ops::RangeInclusive<u32> = 12..=22;

/// A change of the size of the file system for shared memory of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields say which, and how much")]
pub enum MemoryLimit {
    /// The file system has exactly these bytes left beside what is reserved now: it shrinks or grows.
    Leave { host: usize, left_bytes: u64 },
    /// The file system has no limit.
    Lift { host: usize },
}

/// The limits that are in force, a record of the world.
#[derive(Clone, Debug, Default)]
pub struct MemoryLimits {
    /// Times since when hosts are limited.
    since: BTreeMap<usize, Duration>,
    changes: u64,
    last_change: Duration,
    last_lift: Duration,
}

impl MemoryLimits {
    /// Returns the time since when a host is limited without interruption, if it is.
    #[must_use]
    pub fn limited_since(&self, host: HostIndex) -> Option<Duration> {
        self.since.get(&host.number()).copied()
    }

    /// Returns the time of the last change of any limit.
    #[must_use]
    pub fn last_change(&self) -> Duration {
        self.last_change
    }

    /// Returns the time of the last change that ended a limit.
    #[must_use]
    pub fn last_lift(&self) -> Duration {
        self.last_lift
    }

    /// Returns the number of changes.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }
}

impl World {
    /// Limits the file system for shared memory of a host to what is reserved and this number of bytes.
    pub fn limit_memory(&mut self, host: HostIndex, left_bytes: u64) {
        let storage = self.storage(host);
        storage.set_capacity(Some(storage.reserved().saturating_add(left_bytes)));
        let now = self.elapsed();
        let limits = self.shared_mut::<MemoryLimits>();
        limits.since.entry(host.number()).or_insert(now);
        (limits.changes, limits.last_change) = (limits.changes + 1, now);
    }

    /// Removes the limit of the file system for shared memory of a host. Returns false if it had none.
    pub fn lift_memory_limit(&mut self, host: HostIndex) -> bool {
        self.storage(host).set_capacity(None);
        let now = self.elapsed();
        let limits = self.shared_mut::<MemoryLimits>();
        if limits.since.remove(&host.number()).is_none() {
            return false;
        }
        (limits.changes, limits.last_change) = (limits.changes + 1, now);
        limits.last_lift = now;
        true
    }
}

impl Operation for MemoryLimit {
    const NAME: &'static str = "memory limit";

    fn generate(random: &mut fastrand::Rng, setting: &Setting) -> Vec<(u64, Self)> {
        let count = random.usize(1..=CHANGES);
        let mut change = || {
            let host = random.usize(0..setting.hosts);
            let change = if random.u32(0..3) == 0 {
                Self::Lift { host }
            } else {
                let magnitude = random.u32(LEFT_LOG2);
                let left_bytes = random.u64(0..=1 << magnitude);
                Self::Leave { host, left_bytes }
            };
            (random.u64(0..=setting.duration_ms), change)
        };
        (0..count).map(|_| change()).collect()
    }

    fn apply(&self, world: &mut World) -> bool {
        let (Self::Leave { host, .. } | Self::Lift { host }) = *self;
        if host >= world.host_count() {
            return false;
        }
        let host = HostIndex::at(host);
        match *self {
            Self::Leave { left_bytes, .. } => {
                world.limit_memory(host, left_bytes);
                true
            }
            Self::Lift { .. } => world.lift_memory_limit(host),
        }
    }

    fn simpler(&self) -> Vec<Self> {
        match *self {
            // Nothing left is the simplest limit.
            Self::Leave { host, left_bytes } if left_bytes > 0 => [0, left_bytes / 2]
                .map(|left_bytes| Self::Leave { host, left_bytes })
                .to_vec(),
            _ => Vec::new(),
        }
    }
}
