// SPDX-License-Identifier: Apache-2.0
//! Budget for error details caused by peers.
//!
//! Details differ from packet to packet, and each distinct text takes a record of the error log, whose length is
//! limited. The budget is a burst of records, then one per minute, and together at most half of the log.

/// Maximum number of records in a burst. The longest takes 1.5 KiB.
const BURST: u32 = 100;

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
            records: BURST,
            bytes: log_length / 2,
            refilled_ns: now_ns,
        }
    }

    /// Consumes the budget for a text of `length` bytes. Returns false if it does not suffice.
    pub(crate) fn consume(&mut self, length: usize, now_ns: i64) -> bool {
        let refill = (now_ns - self.refilled_ns) / REFILL_NS;
        self.refilled_ns += refill * REFILL_NS;
        let refill = u32::try_from(refill).unwrap_or(BURST);
        self.records = self.records.saturating_add(refill).min(BURST);
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
    fn consume_burst_then_one_per_minute() {
        let mut budget = ErrorDetailBudget::new(1 << 20, 7);
        let taken = (0..1_000).filter(|_| budget.consume(100, 7)).count();
        assert_eq!(taken, 100);
        assert!(!budget.consume(100, 6 + REFILL_NS));
        assert!(budget.consume(100, 7 + REFILL_NS));
        assert!(!budget.consume(100, 6 + 2 * REFILL_NS));
        assert!(budget.consume(100, 7 + 2 * REFILL_NS));
    }

    #[test]
    fn consume_stops_at_half_of_log() {
        let mut budget = ErrorDetailBudget::new(2_048, 0);
        assert!(budget.consume(1_000, 0));
        assert!(!budget.consume(25, 0));
        assert!(budget.consume(24, 0));
        assert!(!budget.consume(1, i64::MAX));
    }
}
