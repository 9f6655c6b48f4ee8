//! How much is given to whoever asks: so much at once, and so much in a second after that.
//!
//! What peers ask for is answered, but whoever asks without end must not make the driver work, or send, without end.

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// Answers to whoever measures round trips to one stream. A receiver next door asks a thousand times in a second.
pub(crate) fn round_trip_answers() -> Allowance {
    Allowance::new(100, 10_000)
}

/// What receivers complain of, as far as clients are told of it: for one channel.
pub(crate) fn complaints() -> Allowance {
    Allowance::new(64, 100)
}

/// Sessions of answers that are asked after: for one channel. A server repeats its own five times in a second.
pub(crate) fn response_setups() -> Allowance {
    Allowance::new(64, 100)
}

/// A store that fills with time, up to its capacity.
#[derive(Debug)]
pub(crate) struct Allowance {
    left: i64,
    capacity: i64,
    per_second: i64,
    filled_ns: Option<i64>,
}

impl Allowance {
    /// A full store.
    pub(crate) fn new(capacity: i64, per_second: i64) -> Self {
        Self {
            left: capacity,
            capacity,
            per_second,
            filled_ns: None,
        }
    }

    /// Takes one, if there is one.
    pub(crate) fn take(&mut self, now_ns: i64) -> bool {
        let has_one = self.left(now_ns) > 0;
        if has_one {
            self.left -= 1;
        }
        has_one
    }

    /// How much is left; nothing, or less than that, if more was spent than there was.
    pub(crate) fn left(&mut self, now_ns: i64) -> i64 {
        let since_ns = now_ns - *self.filled_ns.get_or_insert(now_ns);
        // Less than one stays where it is, in the time that it took.
        let gained = i128::from(since_ns) * i128::from(self.per_second) / NANOS_PER_SECOND;
        if gained > 0 {
            let taken_ns = gained * NANOS_PER_SECOND / i128::from(self.per_second);
            self.filled_ns = self.filled_ns.map(|filled| filled + taken_ns as i64);
            self.earn(i64::try_from(gained).unwrap_or(i64::MAX));
        }
        self.left
    }

    /// Spends, more than there is if need be.
    pub(crate) fn spend(&mut self, amount: i64) {
        self.left = self.left.saturating_sub(amount);
    }

    /// Gets some before its time.
    #[inline]
    pub(crate) fn earn(&mut self, amount: i64) {
        self.left = self.left.saturating_add(amount).min(self.capacity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn so_much_at_once_and_so_much_in_a_second() {
        let mut allowance = Allowance::new(10, 100);
        let taken = |allowance: &mut Allowance, now_ns| {
            (0..1_000).filter(|_| allowance.take(now_ns)).count()
        };
        assert_eq!(taken(&mut allowance, 5), 10);
        assert_eq!(taken(&mut allowance, 10 * MS), 0);
        assert_eq!(taken(&mut allowance, 10 * MS + 5), 1);
        assert_eq!(taken(&mut allowance, 39 * MS), 2);
        assert_eq!(taken(&mut allowance, 3_600_000 * MS), 10);
    }

    #[test]
    fn it_fills_at_its_rate_however_often_it_is_looked_at() {
        let mut allowance = Allowance::new(1_000, 1_000);
        allowance.spend(1_000);
        for microsecond in 0..=500_000 {
            allowance.left(microsecond * 1_000);
        }
        assert_eq!(allowance.left(500 * MS), 500);
    }

    #[test]
    fn what_was_spent_too_much_is_missing_later() {
        let mut allowance = Allowance::new(10, 10);
        allowance.left(0);
        allowance.spend(15);
        assert!(!allowance.take(500 * MS));
        assert!(allowance.take(600 * MS));
        allowance.earn(100);
        assert_eq!(allowance.left(600 * MS), 10);
    }
}
