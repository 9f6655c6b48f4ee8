// SPDX-License-Identifier: Apache-2.0
//! Jumps of the wall clock against the monotonic clock, which a resumed copy of a virtual machine shows
//! (docs/spec/transport-security.md §2.3).
//!
//! Contract: an agent that seals calls [`ClockWatch::observe`] at the start of each duty cycle. From a jump on, the count of
//! [`ClockJumps`] differs from the one that keys were made under, and these keys seal nothing any more. The same calls publish
//! the time, by which the layers of the agent know the age of their keys without a clock of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use taran_core::clock::Now;

/// Difference beyond which the clocks count as set, in milliseconds.
const JUMP_MS: i64 = 1_000;
const NANOS_PER_MILLI: i64 = 1_000_000;
/// Time between two publications of the time by one agent: the agents share the cache line that it is in.
const PUBLICATION_NS: i64 = 1_000_000_000;

/// Number of jumps that any agent has seen, and the latest time. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClockJumps(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    jumps: AtomicU64,
    nanos: AtomicI64,
}

impl ClockJumps {
    /// Returns the number of jumps.
    #[cfg_attr(
        not(feature = "secure"),
        allow(dead_code, reason = "only transport security asks for it")
    )]
    #[inline]
    pub(crate) fn count(&self) -> u64 {
        self.0.jumps.load(Ordering::Acquire)
    }

    /// Returns the monotonic time in nanoseconds, at most a second behind that of the agent that asks.
    #[cfg_attr(
        not(feature = "secure"),
        allow(dead_code, reason = "only transport security asks for it")
    )]
    #[inline]
    pub(crate) fn nanos(&self) -> u64 {
        // Nothing is published with it: a key is some milliseconds younger or older.
        self.0.nanos.load(Ordering::Relaxed).cast_unsigned()
    }

    /// Returns a watch of one agent.
    pub(crate) fn watch(&self) -> ClockWatch {
        ClockWatch {
            jumps: self.clone(),
            last: None,
            published: i64::MIN,
        }
    }
}

/// Watch of one agent.
#[derive(Debug)]
pub(crate) struct ClockWatch {
    jumps: ClockJumps,
    last: Option<Now>,
    /// Time that this agent has published last.
    published: i64,
}

impl ClockWatch {
    /// Compares the progress of both clocks since the last call.
    #[inline]
    pub(crate) fn observe(&mut self, now: Now) {
        if now.nanos.saturating_sub(self.published) >= PUBLICATION_NS {
            self.published = now.nanos;
            self.jumps
                .0
                .nanos
                .fetch_max(now.nanos.max(0), Ordering::Relaxed);
        }
        if let Some(last) = self.last.replace(now) {
            let monotonic_ms = (now.nanos - last.nanos) / NANOS_PER_MILLI;
            let wall_ms = now.epoch_millis.wrapping_sub(last.epoch_millis);
            if wall_ms.wrapping_sub(monotonic_ms).unsigned_abs() > JUMP_MS.unsigned_abs() {
                // Acquired by the layers before they seal, on the threads of all agents.
                self.jumps.0.jumps.fetch_add(1, Ordering::Release);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(monotonic_ms: i64, wall_ms: i64) -> Now {
        Now {
            nanos: monotonic_ms * NANOS_PER_MILLI,
            epoch_millis: 1_700_000_000_000 + wall_ms,
        }
    }

    #[test]
    fn observe_counts_only_clocks_that_part_by_more_than_a_second() {
        let jumps = ClockJumps::default();
        let mut watch = jumps.watch();
        for (monotonic_ms, wall_ms) in [(0, 0), (10, 10), (60_000, 60_000), (60_010, 61_000)] {
            watch.observe(at(monotonic_ms, wall_ms));
        }
        assert_eq!(jumps.count(), 0);
        watch.observe(at(60_020, 90_000));
        assert_eq!(jumps.count(), 1);
        watch.observe(at(60_030, 90_010));
        assert_eq!(jumps.count(), 1);
        watch.observe(at(60_040, 10));
        assert_eq!(jumps.count(), 2);
    }

    #[test]
    fn nanos_of_any_agent_are_at_most_a_second_behind_and_never_go_back() {
        let jumps = ClockJumps::default();
        let (mut first, mut second) = (jumps.watch(), jumps.watch());
        first.observe(at(5_000, 0));
        assert_eq!(jumps.nanos(), 5_000_000_000);
        second.observe(at(4_000, 0));
        assert_eq!(jumps.nanos(), 5_000_000_000, "an agent that lags");
        for monotonic_ms in 5_001..9_000 {
            first.observe(at(monotonic_ms, 0));
            let behind = (monotonic_ms * NANOS_PER_MILLI) as u64 - jumps.nanos();
            assert!(behind < 1_000_000_000, "{behind}");
        }
    }
}
