//! What an agent does once in a while, in a duty cycle of its own choice.

/// Is due once in each interval.
#[derive(Debug)]
pub(crate) struct Every {
    interval_ns: i64,
    last_ns: i64,
}

impl Every {
    /// Zero: never.
    pub(crate) fn new(interval_ns: i64) -> Self {
        Self {
            interval_ns,
            last_ns: i64::MIN,
        }
    }

    /// True at once, and when the interval has passed since it was true last.
    pub(crate) fn is_due(&mut self, now_ns: i64) -> bool {
        let is_due =
            self.interval_ns > 0 && now_ns.saturating_sub(self.last_ns) >= self.interval_ns;
        if is_due {
            self.last_ns = now_ns;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_in_each_interval() {
        let mut every = Every::new(10);
        let due: Vec<i64> = (-5..40).filter(|&now_ns| every.is_due(now_ns)).collect();
        assert_eq!(due, [-5, 5, 15, 25, 35]);
        let mut never = Every::new(0);
        assert!((0..40).all(|now_ns| !never.is_due(now_ns)));
    }
}
