//! Windows while a socket overflows.
//!
//! Each image lets a window of its own be under way, and all of a socket share one buffer. Where the windows together are
//! longer than that, what is lost is sent again, and lost again. So windows are narrowed as long as datagrams find no room:
//! halved, and after a moment halved once more, but not below what fits for certain. After a while without loss they are
//! doubled, to find out whether the crowd is still there; each time it is, the next try comes later.
//!
//! Windows that fit are never touched, nor are those of several streams that are slow.

/// Between two looks at what was lost.
const LOOK_NS: i64 = 1_000_000;
/// After a change: what was under way before arrives still.
const SETTLE_NS: i64 = 10_000_000;
/// Without loss before windows are doubled, at first …
const FIRST_PATIENCE_NS: i64 = 100_000_000;
/// … and at most.
const MAX_PATIENCE_NS: i64 = 60_000_000_000;
/// Doubled windows that were without loss for so many times as long were right, until another crowd came.
const SAME_CROWD: i64 = 8;
/// A stream goes on at a pace only if it may have some datagrams under way.
const LEAST_DATAGRAMS: i32 = 2;

/// By how much windows are narrower than they would be.
#[derive(Debug)]
pub(super) struct Squeeze {
    halvings: u32,
    /// What fits for certain, for each.
    least: i32,
    /// Of the windows that were to be narrowed since the last change.
    widest: i32,
    looked_ns: i64,
    changed_ns: i64,
    patience_ns: i64,
    /// Windows were doubled, and nothing was lost since.
    is_trying: bool,
}

impl Default for Squeeze {
    fn default() -> Self {
        Self {
            halvings: 0,
            least: 0,
            widest: 0,
            looked_ns: i64::MIN,
            changed_ns: i64::MIN,
            patience_ns: FIRST_PATIENCE_NS,
            is_trying: false,
        }
    }
}

impl Squeeze {
    pub(super) fn is_look_due(&self, now_ns: i64) -> bool {
        now_ns.saturating_sub(self.looked_ns) >= LOOK_NS
    }

    /// After a look: whether something was lost since the last one, and what a socket has room for, in bytes, which so many
    /// streams share.
    pub(super) fn looked(&mut self, has_lost: bool, room: usize, streams: usize, now_ns: i64) {
        self.looked_ns = now_ns;
        let unchanged_ns = now_ns.saturating_sub(self.changed_ns);
        if has_lost {
            self.least = i32::try_from(room / streams.max(1)).unwrap_or(i32::MAX);
            if unchanged_ns < SETTLE_NS || self.halved(self.widest) <= self.least {
                return;
            }
            let is_same_crowd = self.is_trying && unchanged_ns < SAME_CROWD * self.patience_ns;
            self.patience_ns = if is_same_crowd {
                MAX_PATIENCE_NS.min(2 * self.patience_ns)
            } else {
                FIRST_PATIENCE_NS
            };
            self.is_trying = false;
            self.halvings += 1;
            self.changed(now_ns);
        } else if self.halvings > 0 && unchanged_ns >= self.patience_ns {
            self.is_trying = true;
            self.halvings -= 1;
            self.changed(now_ns);
        }
    }

    fn changed(&mut self, now_ns: i64) {
        self.changed_ns = now_ns;
        self.widest = 0;
    }

    /// What becomes of the window of a stream with datagrams of this length.
    pub(super) fn narrow(&mut self, window: i32, mtu: i32) -> i32 {
        self.widest = self.widest.max(window);
        if self.halvings == 0 {
            return window;
        }
        let least = self.least.max(LEAST_DATAGRAMS.saturating_mul(mtu));
        self.halved(window).max(least).min(window)
    }

    fn halved(&self, window: i32) -> i32 {
        window.checked_shr(self.halvings).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: i32 = 1 << 20;
    const MTU: i32 = 1_408;
    const ROOM: usize = 64 * 1_024;

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
                self.squeeze.looked(has_lost, ROOM, 16, self.now_ns);
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
        assert_eq!(bench.window(), ROOM as i32 / 16);
        assert_eq!(WINDOW >> bench.squeeze.halvings, ROOM as i32 / 16);
        assert_eq!(bench.squeeze.narrow(WINDOW, 8_960), 2 * 8_960);
        assert_eq!(bench.squeeze.narrow(2_000, MTU), 2_000, "none is widened");
    }

    #[test]
    fn a_window_that_fits_stays_whatever_is_lost() {
        let mut squeeze = Squeeze::default();
        for now_ns in (0..10).map(|times| times * SETTLE_NS) {
            assert_eq!(squeeze.narrow(ROOM as i32, MTU), ROOM as i32);
            squeeze.looked(true, ROOM, 1, now_ns);
        }
    }

    #[test]
    fn they_come_back_and_a_crowd_that_is_still_there_is_tried_ever_less() {
        let mut bench = Bench::new();
        bench.run(2 * SETTLE_NS, true);
        let mut patience_ns = FIRST_PATIENCE_NS;
        for _ in 0..10 {
            assert!((bench.wider_after_ns() - patience_ns).abs() <= SETTLE_NS);
            bench.run(SETTLE_NS, true);
            assert_eq!(bench.window(), WINDOW >> 2);
            patience_ns = MAX_PATIENCE_NS.min(2 * patience_ns);
        }
        // It goes at last.
        bench.run(2 * SAME_CROWD * MAX_PATIENCE_NS, false);
        assert_eq!(bench.window(), WINDOW);
        bench.run(SETTLE_NS, true);
        assert_eq!(bench.window(), WINDOW >> 1);
        assert!(bench.wider_after_ns() <= FIRST_PATIENCE_NS);
        assert_eq!(bench.window(), WINDOW);
    }
}
