// SPDX-License-Identifier: Apache-2.0
//! Aeron's counted back-off: some spins, some yields, then parks that double (docs/spec/uri-and-configuration.md
//! §2.11).

use std::fmt;
use std::hint;
use std::thread;
use std::time::Duration;

use super::IdleStrategy;
use super::args::Shortest;

/// The four numbers of a [`Backoff`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffLimits {
    /// Idle cycles that only spin.
    pub spins: u64,
    /// Idle cycles after those that yield.
    pub yields: u64,
    /// Length of the first park.
    pub min_park: Duration,
    /// The length at which parks stop doubling.
    pub max_park: Duration,
}

impl Default for BackoffLimits {
    fn default() -> Self {
        Self {
            spins: 10,
            yields: 20,
            min_park: Duration::from_micros(1),
            max_park: Duration::from_millis(1),
        }
    }
}

impl fmt::Display for BackoffLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (min, max) = (Shortest(self.min_park), Shortest(self.max_park));
        write!(f, "{}-{}-{min}-{max}", self.spins, self.yields)
    }
}

/// Spins, then yields, then parks for a time that doubles; any work starts it over.
#[derive(Clone, Debug)]
pub struct Backoff {
    limits: BackoffLimits,
    spins: u64,
    yields: u64,
    park: Duration,
}

impl Backoff {
    /// A strategy at its beginning.
    pub fn new(limits: BackoffLimits) -> Self {
        Self {
            limits,
            spins: 0,
            yields: 0,
            park: limits.min_park,
        }
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(BackoffLimits::default())
    }
}

impl IdleStrategy for Backoff {
    fn idle(&mut self, work: usize, park: &mut dyn FnMut(Duration)) {
        if work > 0 {
            self.reset();
        } else if self.spins < self.limits.spins {
            self.spins += 1;
            hint::spin_loop();
        } else if self.yields < self.limits.yields {
            self.yields += 1;
            thread::yield_now();
        } else {
            park(self.park);
            self.park = self.park.saturating_mul(2).min(self.limits.max_park);
        }
    }

    fn reset(&mut self) {
        self.spins = 0;
        self.yields = 0;
        self.park = self.limits.min_park;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    fn parks(strategy: &mut Backoff, cycles: usize) -> Vec<Duration> {
        let mut parks = Vec::new();
        for _ in 0..cycles {
            strategy.idle(0, &mut |max| parks.push(max));
        }
        parks
    }

    #[test]
    fn parks_come_after_spins_and_yields_and_double_up_to_the_limit() {
        let mut backoff = Backoff::default();
        assert!(parks(&mut backoff, 30).is_empty());
        let lengths = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000].map(micros);
        assert_eq!(parks(&mut backoff, 12), lengths);
    }

    #[test]
    fn work_starts_over() {
        let mut backoff = Backoff::new(BackoffLimits {
            spins: 0,
            yields: 1,
            ..BackoffLimits::default()
        });
        assert_eq!(parks(&mut backoff, 4), [1, 2, 4].map(micros));
        backoff.idle(1, &mut |_| panic!("there was work"));
        assert_eq!(parks(&mut backoff, 3), [1, 2].map(micros));
    }

    #[test]
    fn limits_print_as_they_are_written() {
        assert_eq!(BackoffLimits::default().to_string(), "10-20-1us-1ms");
    }
}
