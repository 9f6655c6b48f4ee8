// SPDX-License-Identifier: Apache-2.0
//! Counts of what happened in scenarios: a scenario without events proves nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Sums over one or more scenarios.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Virtual time.
    pub simulated: Duration,
    /// Events of the histories, including duty cycles.
    pub events: u64,
    /// Longest time until a flow made progress after the network was restored.
    pub slowest_recovery: Duration,
    /// All other counts by name.
    counts: BTreeMap<String, u64>,
}

impl Coverage {
    /// Adds one.
    pub fn count(&mut self, name: impl Into<String>) {
        self.add(name, 1);
    }

    /// Adds a number.
    pub fn add(&mut self, name: impl Into<String>, count: u64) {
        *self.counts.entry(name.into()).or_default() += count;
    }

    /// Returns a count.
    #[must_use]
    pub fn get(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or_default()
    }

    /// Adds the counts of another scenario.
    pub fn merge(&mut self, other: &Self) {
        self.simulated += other.simulated;
        self.events += other.events;
        self.slowest_recovery = self.slowest_recovery.max(other.slowest_recovery);
        for (name, count) in &other.counts {
            self.add(name.as_str(), *count);
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in &self.counts {
            writeln!(f, "  {count:>12} {name}")?;
        }
        writeln!(
            f,
            "  slowest recovery of a flow: {:?}",
            self.slowest_recovery
        )
    }
}
