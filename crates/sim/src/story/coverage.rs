//! What really happened in stories: a story in which nothing happens proves nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Sums over one story or many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Virtual time.
    pub simulated: Duration,
    /// Events of the histories, turns included.
    pub events: u64,
    /// The longest that a flow took to move again after the network was whole.
    pub slowest_recovery: Duration,
    /// Everything else, by name.
    counts: BTreeMap<String, u64>,
}

impl Coverage {
    /// Counts one.
    pub fn count(&mut self, what: impl Into<String>) {
        self.add(what, 1);
    }

    /// Counts many.
    pub fn add(&mut self, what: impl Into<String>, much: u64) {
        *self.counts.entry(what.into()).or_default() += much;
    }

    /// How often something happened.
    #[must_use]
    pub fn of(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or_default()
    }

    /// Adds those of another story.
    pub fn merge(&mut self, other: &Self) {
        self.simulated += other.simulated;
        self.events += other.events;
        self.slowest_recovery = self.slowest_recovery.max(other.slowest_recovery);
        for (what, much) in &other.counts {
            self.add(what.as_str(), *much);
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, much) in &self.counts {
            writeln!(f, "  {much:>12} {what}")?;
        }
        writeln!(
            f,
            "  slowest recovery of a flow: {:?}",
            self.slowest_recovery
        )
    }
}
