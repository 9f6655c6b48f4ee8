// SPDX-License-Identifier: Apache-2.0
//! Token bucket: limits what untrusted peers can make the driver do or send.

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// Returns the limit of RTT replies for one stream. A receiver on the same host asks a thousand times per second.
pub(crate) fn rtt_replies() -> TokenBucket {
    TokenBucket::new(100, 10_000)
}

/// Returns the limit of receivers' errors that are reported to clients, for one channel.
pub(crate) fn error_frames() -> TokenBucket {
    TokenBucket::new(64, 100)
}

/// Returns the limit of response setups that are forwarded to the conductor, for one channel. A responder repeats its
/// setup five times per second.
pub(crate) fn response_setups() -> TokenBucket {
    TokenBucket::new(64, 100)
}

/// Token bucket that fills at a fixed rate, up to its capacity. The balance may become negative.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    tokens: i64,
    capacity: i64,
    per_second: i64,
    filled_ns: Option<i64>,
}

impl TokenBucket {
    /// Returns a full bucket.
    pub(crate) fn new(capacity: i64, per_second: i64) -> Self {
        Self {
            tokens: capacity,
            capacity,
            per_second,
            filled_ns: None,
        }
    }

    /// Takes one token. Returns false if there is none.
    pub(crate) fn try_take(&mut self, now_ns: i64) -> bool {
        let has_token = self.available(now_ns) > 0;
        if has_token {
            self.tokens -= 1;
        }
        has_token
    }

    /// Returns the number of tokens left; negative if more were consumed than there were.
    pub(crate) fn available(&mut self, now_ns: i64) -> i64 {
        let since_ns = now_ns - *self.filled_ns.get_or_insert(now_ns);
        // `filled_ns` advances only by the time of whole tokens, so that fractions are not lost.
        let gained = i128::from(since_ns) * i128::from(self.per_second) / NANOS_PER_SECOND;
        if gained > 0 {
            let taken_ns = gained * NANOS_PER_SECOND / i128::from(self.per_second);
            self.filled_ns = self.filled_ns.map(|filled| filled + taken_ns as i64);
            self.refill(i64::try_from(gained).unwrap_or(i64::MAX));
        }
        self.tokens
    }

    /// Removes tokens, even if there are fewer.
    pub(crate) fn consume(&mut self, amount: i64) {
        self.tokens = self.tokens.saturating_sub(amount);
    }

    /// Adds tokens independently of time, up to the capacity.
    #[inline]
    pub(crate) fn refill(&mut self, amount: i64) {
        self.tokens = self.tokens.saturating_add(amount).min(self.capacity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn try_take_allows_capacity_at_once_and_then_rate() {
        let mut bucket = TokenBucket::new(10, 100);
        let taken = |bucket: &mut TokenBucket, now_ns| {
            (0..1_000).filter(|_| bucket.try_take(now_ns)).count()
        };
        assert_eq!(taken(&mut bucket, 5), 10);
        assert_eq!(taken(&mut bucket, 10 * MS), 0);
        assert_eq!(taken(&mut bucket, 10 * MS + 5), 1);
        assert_eq!(taken(&mut bucket, 39 * MS), 2);
        assert_eq!(taken(&mut bucket, 3_600_000 * MS), 10);
    }

    #[test]
    fn available_called_often_fills_at_rate() {
        let mut bucket = TokenBucket::new(1_000, 1_000);
        bucket.consume(1_000);
        for microsecond in 0..=500_000 {
            bucket.available(microsecond * 1_000);
        }
        assert_eq!(bucket.available(500 * MS), 500);
    }

    #[test]
    fn consume_beyond_balance_delays_next_token() {
        let mut bucket = TokenBucket::new(10, 10);
        bucket.available(0);
        bucket.consume(15);
        assert!(!bucket.try_take(500 * MS));
        assert!(bucket.try_take(600 * MS));
        bucket.refill(100);
        assert_eq!(bucket.available(600 * MS), 10);
    }
}
