// SPDX-License-Identifier: Apache-2.0
//! Token bucket, which bounds answers to sources that proved nothing.

use super::SECOND;

/// Bucket of `burst` tokens that fills with `rate` tokens in a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    rate: u64,
    burst: u64,
    /// Tokens in nanoseconds of filling.
    level: u64,
    updated: u64,
}

impl Allowance {
    /// Returns a full bucket.
    pub(crate) const fn new(rate: u64, burst: u64) -> Self {
        let rate = if rate == 0 { 1 } else { rate };
        Self {
            rate,
            burst,
            level: burst * SECOND,
            updated: 0,
        }
    }

    /// Takes a token if there is one.
    pub(crate) fn take(&mut self, now: u64) -> bool {
        let passed = now.saturating_sub(self.updated);
        self.updated = self.updated.max(now);
        let filled = passed.saturating_mul(self.rate);
        self.level = self.level.saturating_add(filled).min(self.burst * SECOND);
        if self.level < SECOND {
            return false;
        }
        self.level -= SECOND;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowance_gives_the_burst_and_then_the_rate() {
        let mut allowance = Allowance::new(10, 3);
        let take =
            |allowance: &mut Allowance, now| (0..100).filter(|_| allowance.take(now)).count();
        assert_eq!(take(&mut allowance, 0), 3);
        assert_eq!(take(&mut allowance, SECOND / 10), 1);
        assert_eq!(take(&mut allowance, SECOND), 3);
        // A clock that stands still or goes back gives nothing.
        assert_eq!(take(&mut allowance, 0), 0);
        assert_eq!(take(&mut allowance, u64::MAX), 3);
    }
}
