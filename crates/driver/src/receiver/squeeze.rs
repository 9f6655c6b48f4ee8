//! Windows while a socket overflows.
//!
//! Each image lets a window of its own be under way, and all of a socket share one buffer. Where the windows together are
//! longer than that, what is lost is sent again, and lost again. So windows are narrowed as long as datagrams are lost:
//! halved, and after a moment halved once more, but not below a fair share of what fits. After a while without loss they are
//! doubled, to find out whether the crowd is still there; each time it is, the next try comes later.
//!
//! Windows of which each is no longer than its share are never touched, nor is any where nothing is lost.

use crate::every::Every;

/// Between two looks at what was lost.
const LOOK_NS: i64 = 1_000_000;
/// After a change: what was under way before arrives still.
const SETTLE_NS: i64 = 10_000_000;
/// Without loss before windows are doubled, at first …
const FIRST_PATIENCE_NS: i64 = 100_000_000;
/// … and at most.
const MAX_PATIENCE_NS: i64 = 60_000_000_000;
/// Windows that were right for so many times as long were so until another crowd came.
const SAME_CROWD: i64 = 8;
/// A stream goes on at a pace only if it may have some datagrams under way.
const LEAST_DATAGRAMS: i32 = 2;

/// By how much windows are narrower than they would be.
#[derive(Debug)]
pub(super) struct Squeeze {
    halvings: u32,
    /// The share of each.
    least: i32,
    /// One of the windows that were to be narrowed since the last change was above its least.
    has_slack: bool,
    look: Every,
    changed_ns: i64,
    /// Before windows are doubled to what was too much …
    patience_ns: i64,
    /// … when they were halved so often.
    too_much_at: u32,
    last: Change,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Halved,
    Doubled,
}

impl Default for Squeeze {
    fn default() -> Self {
        Self {
            halvings: 0,
            least: 0,
            has_slack: false,
            look: Every::new(LOOK_NS),
            changed_ns: i64::MIN,
            patience_ns: FIRST_PATIENCE_NS,
            too_much_at: u32::MAX,
            last: Change::Halved,
        }
    }
}

impl Squeeze {
    pub(super) fn is_look_due(&mut self, now_ns: i64) -> bool {
        self.look.is_due(now_ns)
    }

    /// After a look: whether something was lost since the last one, and the share of each stream in what fits, in bytes.
    pub(super) fn looked(&mut self, has_lost: bool, share: usize, now_ns: i64) {
        let stood_ns = now_ns.saturating_sub(self.changed_ns);
        let share = i32::try_from(share).unwrap_or(i32::MAX);
        if self.halvings == 0 {
            self.least = share;
        }
        if has_lost {
            if stood_ns < SETTLE_NS || !self.has_slack {
                return;
            }
            if stood_ns >= SAME_CROWD.saturating_mul(self.patience_ns) {
                self.forget_crowd();
            } else if self.last == Change::Doubled {
                self.patience_ns = MAX_PATIENCE_NS.min(2 * self.patience_ns);
                self.too_much_at = self.halvings;
            }
            self.halvings += 1;
            self.changed(Change::Halved, share, now_ns);
        } else if self.halvings > 0 && stood_ns >= self.wait_ns() {
            if self.halvings <= self.too_much_at {
                // What was too much is so no more.
                self.forget_crowd();
            }
            self.halvings -= 1;
            self.changed(Change::Doubled, share, now_ns);
        }
    }

    /// Until the next doubling, which may be too much or not.
    fn wait_ns(&self) -> i64 {
        if self.halvings > self.too_much_at.saturating_add(1) {
            FIRST_PATIENCE_NS
        } else {
            self.patience_ns
        }
    }

    fn forget_crowd(&mut self) {
        self.patience_ns = FIRST_PATIENCE_NS;
        self.too_much_at = u32::MAX;
    }

    /// Shares change only when windows do anyway: each change is told to the sender of each stream.
    fn changed(&mut self, change: Change, share: i32, now_ns: i64) {
        self.changed_ns = now_ns;
        self.last = change;
        self.least = share;
        self.has_slack = false;
    }

    /// What becomes of the window of a stream with datagrams of this length. Notes whether less is possible.
    pub(super) fn narrow(&mut self, window: i32, mtu: i32) -> i32 {
        let least = self.least.max(LEAST_DATAGRAMS.saturating_mul(mtu));
        let halved = window.checked_shr(self.halvings).unwrap_or(0);
        self.has_slack |= halved > least;
        if self.halvings == 0 {
            return window;
        }
        halved.max(least).min(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: i32 = 1 << 20;
    const MTU: i32 = 1_408;
    const SHARE: usize = 4 * 1_024;

    struct Bench {
        squeeze: Squeeze,
        now_ns: i64,
    }

    impl Bench {
        fn new() -> Self {
            Self {
                squeeze: Squeeze::default(),
                now_ns: 0,
            }
        }

        fn window(&mut self) -> i32 {
            self.squeeze.narrow(WINDOW, MTU)
        }

        /// Looks all the time until so long from now.
        fn run(&mut self, nanos: i64, has_lost: bool) {
            let end_ns = self.now_ns + nanos;
            while self.now_ns < end_ns {
                self.now_ns += LOOK_NS;
                self.window();
                assert!(self.squeeze.is_look_due(self.now_ns));
                self.squeeze.looked(has_lost, SHARE, self.now_ns);
                assert!(!self.squeeze.is_look_due(self.now_ns + LOOK_NS - 1));
            }
        }

        /// How long it takes until windows are wider.
        fn wider_after_ns(&mut self) -> i64 {
            let (begin_ns, window) = (self.now_ns, self.window());
            while self.window() == window {
                self.run(LOOK_NS, false);
            }
            self.now_ns - begin_ns
        }
    }

    #[test]
    fn where_nothing_is_lost_windows_stay() {
        let mut bench = Bench::new();
        bench.run(10 * MAX_PATIENCE_NS, false);
        assert_eq!(bench.window(), WINDOW);
    }

    #[test]
    fn they_are_halved_as_long_as_something_is_lost() {
        let mut bench = Bench::new();
        for halvings in 1..=3 {
            bench.run(SETTLE_NS, true);
            assert_eq!(bench.window(), WINDOW >> halvings);
        }
    }

    #[test]
    fn they_do_not_fall_below_what_fits_nor_below_two_datagrams() {
        let mut bench = Bench::new();
        bench.run(100 * SETTLE_NS, true);
        assert_eq!(bench.window(), SHARE as i32);
        assert_eq!(WINDOW >> bench.squeeze.halvings, SHARE as i32);
        assert_eq!(bench.squeeze.narrow(WINDOW, 8_960), 2 * 8_960);
        assert_eq!(bench.squeeze.narrow(2_000, MTU), 2_000, "none is widened");
    }

    #[test]
    fn a_window_that_fits_stays_whatever_is_lost() {
        let mut squeeze = Squeeze::default();
        for now_ns in (0..10).map(|times| times * SETTLE_NS) {
            assert_eq!(squeeze.narrow(SHARE as i32, MTU), SHARE as i32);
            squeeze.looked(true, SHARE, now_ns);
        }
    }

    #[test]
    fn halvings_that_would_change_nothing_need_not_be_taken_back() {
        let mut squeeze = Squeeze::default();
        for now_ns in (0..100).map(|times| times * SETTLE_NS) {
            squeeze.narrow(WINDOW, 60_000);
            squeeze.looked(true, SHARE, now_ns);
        }
        assert_eq!(WINDOW >> squeeze.halvings, 65_536);
        assert_eq!(squeeze.narrow(WINDOW, 60_000), 120_000);
    }

    #[test]
    fn a_crowd_that_is_still_there_is_tried_ever_less() {
        // However often they are halved after a try that was too early.
        for halvings in 1..=2 {
            let mut bench = Bench::new();
            bench.run(2 * SETTLE_NS, true);
            let mut patience_ns = FIRST_PATIENCE_NS;
            for _ in 0..12 {
                assert!((bench.wider_after_ns() - patience_ns).abs() <= SETTLE_NS);
                patience_ns = MAX_PATIENCE_NS.min(2 * patience_ns);
                bench.run(halvings * SETTLE_NS, true);
                for _ in 1..halvings {
                    assert!(bench.wider_after_ns() <= FIRST_PATIENCE_NS);
                }
            }
            assert_eq!(patience_ns, MAX_PATIENCE_NS);
        }
    }

    #[test]
    fn when_it_is_gone_they_come_back_soon() {
        let mut bench = Bench::new();
        bench.run(8 * SETTLE_NS, true);
        for _ in 0..5 {
            bench.wider_after_ns();
            bench.run(SETTLE_NS, true);
        }
        let patience_ns = 32 * FIRST_PATIENCE_NS;
        bench.run(2 * patience_ns + 10 * FIRST_PATIENCE_NS, false);
        assert_eq!(bench.window(), WINDOW);
        // And the next crowd is another one.
        bench.run(SAME_CROWD * FIRST_PATIENCE_NS, false);
        bench.run(SETTLE_NS, true);
        assert_eq!(bench.window(), WINDOW >> 1);
        assert!(bench.wider_after_ns() <= FIRST_PATIENCE_NS);
        assert_eq!(bench.window(), WINDOW);
    }
}
