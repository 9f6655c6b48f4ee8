// SPDX-License-Identifier: Apache-2.0
//! Suppresses polling for a fixed time after an empty poll.

/// Back-off after a poll that found nothing.
#[derive(Debug)]
pub(crate) struct PollBackoff {
    length_ns: i64,
    /// Time of the last poll, if it found nothing.
    since_ns: Option<i64>,
}

impl PollBackoff {
    pub(crate) const fn new(length_ns: i64) -> Self {
        Self {
            length_ns,
            since_ns: None,
        }
    }

    /// Records a poll and whether it found something.
    pub(crate) fn on_poll(&mut self, now_ns: i64, found: bool) {
        self.since_ns = (!found).then_some(now_ns);
    }

    /// Ends the back-off.
    pub(crate) fn reset(&mut self) {
        self.since_ns = None;
    }

    /// Returns true if the next poll should be skipped. False while the clock stands at the time of the last poll, as
    /// it does not show how much time has passed.
    pub(crate) fn is_active(&self, now_ns: i64) -> bool {
        let elapsed_ns = |since_ns| now_ns.saturating_sub(since_ns);
        self.since_ns
            .is_some_and(|since_ns| (1..self.length_ns).contains(&elapsed_ns(since_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_is_active_only_after_empty_poll() {
        let mut backoff = PollBackoff::new(10);
        assert!(!backoff.is_active(5), "no poll yet");
        backoff.on_poll(0, false);
        let active: Vec<i64> = (-5..40)
            .filter(|&now_ns| backoff.is_active(now_ns))
            .collect();
        assert_eq!(active, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        backoff.on_poll(5, true);
        assert!(!backoff.is_active(6));
        backoff.on_poll(5, false);
        backoff.reset();
        assert!(!backoff.is_active(6));
    }
}
