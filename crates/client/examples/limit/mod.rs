// SPDX-License-Identifier: Apache-2.0
//! A time limit for loops that wait for another process.

use std::time::{Duration, Instant};

/// Ends a loop whose condition never comes true.
pub(crate) struct Limit(Instant);

impl Limit {
    /// Starts thirty seconds.
    pub(crate) fn new() -> Self {
        Self(Instant::now() + Duration::from_secs(30))
    }

    /// Yields the processor before the next attempt; fails after the time limit.
    pub(crate) fn wait_for(&self, what: &str) -> anyhow::Result<()> {
        anyhow::ensure!(Instant::now() < self.0, "waited 30 s in vain for {what}");
        std::thread::yield_now();
        Ok(())
    }
}
