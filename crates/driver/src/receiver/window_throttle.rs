// SPDX-License-Identifier: Apache-2.0
//! Receive-window throttle for overflowing sockets.
//!
//! Every image advertises a window, but all images of a socket share one receive buffer. If the windows together exceed
//! it, drops cause retransmissions, which are dropped again. Therefore windows are halved while the kernel reports
//! drops, at most once per `SETTLE_NS`, down to a fair share of the buffer. After a probe interval without drops they
//! are doubled; if that causes drops, the probe interval doubles.
//!
//! A window no longer than its fair share is never changed, and no window is changed on a socket without drops.

use crate::interval_timer::IntervalTimer;

/// Interval of drop checks.
const CHECK_INTERVAL_NS: i64 = 1_000_000;
/// Minimum time between two halvings: data sent for the previous window still arrives.
const SETTLE_NS: i64 = 10_000_000;
/// Initial time without drops before windows are doubled.
const MIN_PROBE_INTERVAL_NS: i64 = 100_000_000;
/// Maximum time without drops before windows are doubled.
const MAX_PROBE_INTERVAL_NS: i64 = 60_000_000_000;
/// Windows that caused no drops for this many probe intervals: later drops count as a new overload.
const SAME_OVERLOAD_INTERVALS: i64 = 8;
/// Minimum window in datagrams; a stream needs several datagrams in flight to make progress.
const MIN_WINDOW_DATAGRAMS: i32 = 2;

/// Reduction of the windows on one socket.
#[derive(Debug)]
pub(super) struct WindowThrottle {
    halvings: u32,
    /// Fair share of each stream.
    min_window: i32,
    /// Set if a window was above its minimum since the last change.
    has_slack: bool,
    check: IntervalTimer,
    changed_ns: i64,
    /// Wait before windows are doubled to a width that caused drops.
    probe_interval_ns: i64,
    /// Halvings in effect when the last probe caused drops.
    failed_halvings: u32,
    last: Change,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Halved,
    Doubled,
}

impl Default for WindowThrottle {
    fn default() -> Self {
        Self {
            halvings: 0,
            min_window: 0,
            has_slack: false,
            check: IntervalTimer::new(CHECK_INTERVAL_NS),
            changed_ns: i64::MIN,
            probe_interval_ns: MIN_PROBE_INTERVAL_NS,
            failed_halvings: u32::MAX,
            last: Change::Halved,
        }
    }
}

impl WindowThrottle {
    pub(super) fn is_check_due(&mut self, now_ns: i64) -> bool {
        self.check.is_due(now_ns)
    }

    /// Takes the result of a check: whether there were new drops, and the fair share of each stream in bytes.
    pub(super) fn update(&mut self, has_drops: bool, share: usize, now_ns: i64) {
        let since_change_ns = now_ns.saturating_sub(self.changed_ns);
        let share = i32::try_from(share).unwrap_or(i32::MAX);
        if self.halvings == 0 {
            self.min_window = share;
        }
        if has_drops {
            if since_change_ns < SETTLE_NS || !self.has_slack {
                return;
            }
            if since_change_ns >= SAME_OVERLOAD_INTERVALS.saturating_mul(self.probe_interval_ns) {
                self.reset_overload();
            } else if self.last == Change::Doubled {
                self.probe_interval_ns = MAX_PROBE_INTERVAL_NS.min(2 * self.probe_interval_ns);
                self.failed_halvings = self.halvings;
            }
            self.halvings += 1;
            self.on_change(Change::Halved, share, now_ns);
        } else if self.halvings > 0 && since_change_ns >= self.probe_wait_ns() {
            if self.halvings <= self.failed_halvings {
                // The width that caused drops fits now.
                self.reset_overload();
            }
            self.halvings -= 1;
            self.on_change(Change::Doubled, share, now_ns);
        }
    }

    /// Returns the wait until the next doubling.
    fn probe_wait_ns(&self) -> i64 {
        if self.halvings > self.failed_halvings.saturating_add(1) {
            MIN_PROBE_INTERVAL_NS
        } else {
            self.probe_interval_ns
        }
    }

    fn reset_overload(&mut self) {
        self.probe_interval_ns = MIN_PROBE_INTERVAL_NS;
        self.failed_halvings = u32::MAX;
    }

    /// Records a change. Shares change only together with windows, because each change is advertised to every sender.
    fn on_change(&mut self, change: Change, share: i32, now_ns: i64) {
        self.changed_ns = now_ns;
        self.last = change;
        self.min_window = share;
        self.has_slack = false;
    }

    /// Returns the reduced window of a stream with datagrams of up to `mtu` bytes. Records whether a further reduction
    /// is possible.
    pub(super) fn apply(&mut self, window: i32, mtu: i32) -> i32 {
        let min_window = self
            .min_window
            .max(MIN_WINDOW_DATAGRAMS.saturating_mul(mtu));
        let halved = window.checked_shr(self.halvings).unwrap_or(0);
        self.has_slack |= halved > min_window;
        if self.halvings == 0 {
            return window;
        }
        halved.max(min_window).min(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: i32 = 1 << 20;
    const MTU: i32 = 1_408;
    const SHARE: usize = 4 * 1_024;

    struct ThrottleFixture {
        throttle: WindowThrottle,
        now_ns: i64,
    }

    impl ThrottleFixture {
        fn new() -> Self {
            Self {
                throttle: WindowThrottle::default(),
                now_ns: 0,
            }
        }

        fn window(&mut self) -> i32 {
            self.throttle.apply(WINDOW, MTU)
        }

        /// Checks at every interval for `nanos`.
        fn run(&mut self, nanos: i64, has_drops: bool) {
            let end_ns = self.now_ns + nanos;
            while self.now_ns < end_ns {
                self.now_ns += CHECK_INTERVAL_NS;
                self.window();
                assert!(self.throttle.is_check_due(self.now_ns));
                self.throttle.update(has_drops, SHARE, self.now_ns);
                assert!(
                    !self
                        .throttle
                        .is_check_due(self.now_ns + CHECK_INTERVAL_NS - 1)
                );
            }
        }

        /// Returns the time until windows grow.
        fn wider_after_ns(&mut self) -> i64 {
            let (begin_ns, window) = (self.now_ns, self.window());
            while self.window() == window {
                self.run(CHECK_INTERVAL_NS, false);
            }
            self.now_ns - begin_ns
        }
    }

    #[test]
    fn apply_without_drops_keeps_window() {
        let mut fixture = ThrottleFixture::new();
        fixture.run(10 * MAX_PROBE_INTERVAL_NS, false);
        assert_eq!(fixture.window(), WINDOW);
    }

    #[test]
    fn update_with_drops_halves_window_each_settle_time() {
        let mut fixture = ThrottleFixture::new();
        for halvings in 1..=3 {
            fixture.run(SETTLE_NS, true);
            assert_eq!(fixture.window(), WINDOW >> halvings);
        }
    }

    #[test]
    fn apply_persistent_drops_keeps_fair_share_and_two_datagrams() {
        let mut fixture = ThrottleFixture::new();
        fixture.run(100 * SETTLE_NS, true);
        assert_eq!(fixture.window(), SHARE as i32);
        assert_eq!(WINDOW >> fixture.throttle.halvings, SHARE as i32);
        assert_eq!(fixture.throttle.apply(WINDOW, 8_960), 2 * 8_960);
        assert_eq!(fixture.throttle.apply(2_000, MTU), 2_000, "no window grows");
    }

    #[test]
    fn apply_window_within_share_is_unchanged_by_drops() {
        let mut throttle = WindowThrottle::default();
        for now_ns in (0..10).map(|times| times * SETTLE_NS) {
            assert_eq!(throttle.apply(SHARE as i32, MTU), SHARE as i32);
            throttle.update(true, SHARE, now_ns);
        }
    }

    #[test]
    fn update_without_slack_adds_no_halving() {
        let mut throttle = WindowThrottle::default();
        for now_ns in (0..100).map(|times| times * SETTLE_NS) {
            throttle.apply(WINDOW, 60_000);
            throttle.update(true, SHARE, now_ns);
        }
        assert_eq!(WINDOW >> throttle.halvings, 65_536);
        assert_eq!(throttle.apply(WINDOW, 60_000), 120_000);
    }

    #[test]
    fn update_failed_probe_doubles_probe_interval() {
        // The number of halvings after a failed probe makes no difference.
        for halvings in 1..=2 {
            let mut fixture = ThrottleFixture::new();
            fixture.run(2 * SETTLE_NS, true);
            let mut probe_interval_ns = MIN_PROBE_INTERVAL_NS;
            for _ in 0..12 {
                assert!((fixture.wider_after_ns() - probe_interval_ns).abs() <= SETTLE_NS);
                probe_interval_ns = MAX_PROBE_INTERVAL_NS.min(2 * probe_interval_ns);
                fixture.run(halvings * SETTLE_NS, true);
                for _ in 1..halvings {
                    assert!(fixture.wider_after_ns() <= MIN_PROBE_INTERVAL_NS);
                }
            }
            assert_eq!(probe_interval_ns, MAX_PROBE_INTERVAL_NS);
        }
    }

    #[test]
    fn update_end_of_overload_restores_windows_and_probe_interval() {
        let mut fixture = ThrottleFixture::new();
        fixture.run(8 * SETTLE_NS, true);
        for _ in 0..5 {
            fixture.wider_after_ns();
            fixture.run(SETTLE_NS, true);
        }
        let probe_interval_ns = 32 * MIN_PROBE_INTERVAL_NS;
        fixture.run(2 * probe_interval_ns + 10 * MIN_PROBE_INTERVAL_NS, false);
        assert_eq!(fixture.window(), WINDOW);
        // The next overload is independent of the previous one.
        fixture.run(SAME_OVERLOAD_INTERVALS * MIN_PROBE_INTERVAL_NS, false);
        fixture.run(SETTLE_NS, true);
        assert_eq!(fixture.window(), WINDOW >> 1);
        assert!(fixture.wider_after_ns() <= MIN_PROBE_INTERVAL_NS);
        assert_eq!(fixture.window(), WINDOW);
    }
}
