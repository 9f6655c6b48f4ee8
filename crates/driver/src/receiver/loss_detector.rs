// SPDX-License-Identifier: Apache-2.0
//! Loss detector: tracks the first gap of a stream and decides when to act on it (docs/spec/wire.md §5.5).
//!
//! [`LossDetector::on_gap_scanned`] takes the first gap after each scan of the log; [`LossDetector::poll`], called in
//! each poll of the image, returns the gap when it is time to NAK or to fill it. Gaps that close in time are never
//! reported.

use super::nak_delay::NakDelay;

/// A range of one term that has not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) position: i64,
    pub(super) length: i32,
}

/// Number of consecutive NAKs without received data after which the retry delay doubles with each NAK. The count of a new
/// image starts at this limit, because a source that has sent only SETUPs and heartbeats is not trusted.
pub(super) const UNANSWERED_LIMIT: u32 = 64;

/// Maximum interval of unanswered NAKs: the heartbeat interval.
const MAX_RETRY_NS: i64 = 100_000_000;

/// Decides when to send a NAK for the first gap of an image.
#[derive(Debug)]
pub(super) struct LossDetector {
    tracked: Option<Gap>,
    deadline_ns: i64,
    delay: NakDelay,
    is_new: bool,
}

impl LossDetector {
    pub(super) fn new(delay: NakDelay) -> Self {
        Self {
            tracked: None,
            deadline_ns: 0,
            delay,
            is_new: false,
        }
    }

    pub(super) fn is_reliable(&self) -> bool {
        self.delay.is_reliable()
    }

    /// Sets the first gap of the log, or none.
    pub(super) fn on_gap_scanned(&mut self, gap: Option<Gap>, now_ns: i64) {
        if gap == self.tracked {
            return;
        }
        self.tracked = gap;
        if gap.is_some() {
            self.deadline_ns = now_ns + self.delay.initial_delay_ns();
            self.is_new = true;
        }
    }

    pub(super) fn is_tracking(&self) -> bool {
        self.tracked.is_some()
    }

    /// Returns the time at which [`poll`](Self::poll) returns the gap; `i64::MAX` without one.
    pub(super) fn next_deadline_ns(&self) -> i64 {
        if self.is_tracking() {
            self.deadline_ns
        } else {
            i64::MAX
        }
    }

    /// Returns the gap if its delay has passed, and schedules the next time after the retry delay. Beyond
    /// `UNANSWERED_LIMIT` the retry delay doubles with each unanswered NAK, so that a forged SETUP and a heartbeat
    /// cannot make the receiver flood a third party with NAKs.
    pub(super) fn poll(&mut self, unanswered_naks: u32, now_ns: i64) -> Option<Gap> {
        let gap = self.tracked?;
        if self.deadline_ns > now_ns {
            return None;
        }
        let retry_ns = self.delay.retry_delay_ns();
        let doublings = unanswered_naks.saturating_sub(UNANSWERED_LIMIT).min(30);
        let backoff_ns = retry_ns.saturating_mul(1 << doublings);
        self.deadline_ns = now_ns + retry_ns.max(backoff_ns.min(MAX_RETRY_NS));
        Some(gap)
    }

    /// Returns true once after a new gap was found; for congestion control.
    pub(super) fn take_new_loss(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boundary::NakDelaySpec;

    const GAP: Gap = Gap {
        position: 64,
        length: 320,
    };

    fn unicast() -> LossDetector {
        LossDetector::new(NakDelay::new(
            NakDelaySpec::Unicast {
                delay_ns: 1_000,
                retry_ns: 100_000,
            },
            0,
        ))
    }

    #[test]
    fn poll_open_gap_returns_it_after_delay_and_after_each_retry_delay() {
        let mut detector = unicast();
        detector.on_gap_scanned(Some(GAP), 0);
        assert!(detector.take_new_loss() && !detector.take_new_loss());
        assert_eq!(detector.poll(0, 999), None);
        assert_eq!(detector.poll(0, 1_000), Some(GAP));
        detector.on_gap_scanned(Some(GAP), 1_001);
        assert_eq!(detector.poll(0, 100_999), None);
        assert_eq!(detector.poll(0, 101_000), Some(GAP));
        assert!(!detector.take_new_loss());
    }

    #[test]
    fn poll_closed_gap_returns_nothing() {
        let mut detector = unicast();
        detector.on_gap_scanned(Some(GAP), 0);
        detector.on_gap_scanned(None, 999);
        assert_eq!(detector.poll(0, i64::MAX), None);
    }

    #[test]
    fn poll_changed_gap_restarts_delay() {
        let mut detector = unicast();
        detector.on_gap_scanned(Some(GAP), 0);
        detector.on_gap_scanned(Some(Gap { length: 160, ..GAP }), 900);
        assert_eq!(detector.poll(0, 1_000), None);
        assert_eq!(detector.poll(0, 1_900), Some(Gap { length: 160, ..GAP }));
    }

    #[test]
    fn poll_unreliable_stream_returns_gap_at_once() {
        let mut detector = LossDetector::new(NakDelay::new(NakDelaySpec::Unreliable, 0));
        detector.on_gap_scanned(Some(GAP), 5);
        assert_eq!(detector.poll(0, 5), Some(GAP));
        assert!(!detector.is_reliable());
    }

    #[test]
    fn poll_unanswered_naks_backs_off_exponentially() {
        let mut detector = unicast();
        detector.on_gap_scanned(Some(GAP), 0);
        let mut times = Vec::new();
        for now_ns in (0..10_000_000_000).step_by(10_000) {
            let unanswered_naks = UNANSWERED_LIMIT + times.len() as u32;
            if detector.poll(unanswered_naks, now_ns).is_some() {
                times.push(now_ns / 10_000);
            }
        }
        assert_eq!(times[..6], [1, 11, 31, 71, 151, 311]);
        assert!(times.len() < 120, "{}", times.len());
        // At the limit the normal rate applies.
        detector.poll(UNANSWERED_LIMIT, 10_100_000_000);
        assert_eq!(detector.poll(UNANSWERED_LIMIT, 10_100_100_000), Some(GAP));
    }
}
