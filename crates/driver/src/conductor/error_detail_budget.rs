//! Budget for error details caused by peers.
//!
//! Details differ from packet to packet, and each distinct text takes a record of the error log, whose length is
//! limited. The budget is a burst of records, then one per minute, and together at most half of the log.

/// Maximum number of records in a burst. The longest takes 1.5 KiB.
const AT_ONCE: u32 = 100;

const REFILL_NS: i64 = 60_000_000_000;

/// Remaining budget.
#[derive(Debug)]
pub(crate) struct ErrorDetailBudget {
    records: u32,
    bytes: usize,
    refilled_ns: i64,
}

impl ErrorDetailBudget {
    /// Creates the budget for an error log of `log_length` bytes.
    pub(crate) fn new(log_length: usize, now_ns: i64) -> Self {
        Self {
            records: AT_ONCE,
            bytes: log_length / 2,
            refilled_ns: now_ns,
        }
    }

    /// Consumes the budget for a text of `length` bytes. Returns false if it does not suffice.
    pub(crate) fn take(&mut self, length: usize, now_ns: i64) -> bool {
        let refill = (now_ns - self.refilled_ns) / REFILL_NS;
        self.refilled_ns += refill * REFILL_NS;
        let refill = u32::try_from(refill).unwrap_or(AT_ONCE);
        self.records = self.records.saturating_add(refill).min(AT_ONCE);
        let left = self
            .records
            .checked_sub(1)
            .zip(self.bytes.checked_sub(length));
        if let Some((records, bytes)) = left {
            (self.records, self.bytes) = (records, bytes);
        }
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_at_once_then_one_a_minute() {
        let mut details = ErrorDetailBudget::new(1 << 20, 7);
        let taken = (0..1_000).filter(|_| details.take(100, 7)).count();
        assert_eq!(taken, 100);
        assert!(!details.take(100, 6 + REFILL_NS));
        assert!(details.take(100, 7 + REFILL_NS));
        assert!(!details.take(100, 6 + 2 * REFILL_NS));
        assert!(details.take(100, 7 + 2 * REFILL_NS));
    }

    #[test]
    fn half_of_the_log_is_for_everything_else() {
        let mut details = ErrorDetailBudget::new(2_048, 0);
        assert!(details.take(1_000, 0));
        assert!(!details.take(25, 0));
        assert!(details.take(24, 0));
        assert!(!details.take(1, i64::MAX));
    }
}
