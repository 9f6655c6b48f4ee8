// SPDX-License-Identifier: Apache-2.0
//! Token bucket.

use super::ThrottleLimit;

/// Tokens, counted in nanoseconds of the window so that nothing is lost by rounding.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    limit: ThrottleLimit,
    /// Nanoseconds times messages that are available: one message costs one window.
    level: i128,
    at: i64,
}

impl Bucket {
    pub(super) fn full(limit: ThrottleLimit, now: i64) -> Self {
        let level = Self::capacity(limit);
        let at = now;
        Self { limit, level, at }
    }

    fn capacity(limit: ThrottleLimit) -> i128 {
        i128::from(limit.messages) * i128::from(limit.window)
    }

    fn fill(&mut self, now: i64) {
        let elapsed = i128::from(now.saturating_sub(self.at).max(0));
        let added = elapsed * i128::from(self.limit.messages);
        self.level = (self.level + added).min(Self::capacity(self.limit));
        self.at = now;
    }

    /// Takes one token, or returns the time at which there is one.
    pub(super) fn take(&mut self, now: i64) -> Result<(), i64> {
        self.fill(now);
        let cost = i128::from(self.limit.window);
        if self.level >= cost {
            self.level -= cost;
            return Ok(());
        }
        let missing = cost - self.level;
        let wait = missing.div_euclid(i128::from(self.limit.messages)) + 1;
        Err(now.saturating_add(i64::try_from(wait).unwrap_or(i64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_allows_burst_and_then_rate() {
        let limit = ThrottleLimit {
            messages: 3,
            window: 1000,
        };
        let mut bucket = Bucket::full(limit, 0);
        assert_eq!([0, 0, 0].map(|now| bucket.take(now)), [Ok(()); 3]);
        let next = bucket.take(0).expect_err("empty");
        assert!((333..=335).contains(&next));
        assert!(bucket.take(next - 2).is_err());
        assert_eq!(bucket.take(next), Ok(()));
        // A long pause fills it, not more.
        let sent = (0..10).filter(|_| bucket.take(1_000_000).is_ok()).count();
        assert_eq!(sent, 3);
    }
}
