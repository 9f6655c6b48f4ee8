// SPDX-License-Identifier: Apache-2.0
//! Timer that an agent polls in its duty cycle.

/// Timer that expires once per interval.
#[derive(Debug)]
pub(crate) struct IntervalTimer {
    interval_ns: i64,
    last_ns: i64,
}

impl IntervalTimer {
    /// Returns a timer that expires immediately, and then once per interval; never if the interval is zero.
    pub(crate) fn new(interval_ns: i64) -> Self {
        Self {
            interval_ns,
            last_ns: i64::MIN,
        }
    }

    /// Returns true once per interval, and restarts the timer then.
    pub(crate) fn is_due(&mut self, now_ns: i64) -> bool {
        let is_due =
            self.interval_ns > 0 && now_ns.saturating_sub(self.last_ns) >= self.interval_ns;
        if is_due {
            self.last_ns = now_ns;
        }
        is_due
    }

    /// Returns the time at which the timer expires next; `i64::MAX` for never.
    pub(crate) fn next_deadline_ns(&self) -> i64 {
        if self.interval_ns > 0 {
            self.last_ns.saturating_add(self.interval_ns)
        } else {
            i64::MAX
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_due_is_true_once_per_interval() {
        let mut timer = IntervalTimer::new(10);
        let due: Vec<i64> = (-5..40).filter(|&now_ns| timer.is_due(now_ns)).collect();
        assert_eq!(due, [-5, 5, 15, 25, 35]);
        let mut never = IntervalTimer::new(0);
        assert!((0..40).all(|now_ns| !never.is_due(now_ns)));
    }
}
