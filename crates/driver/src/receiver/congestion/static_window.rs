//! The same window always.

use super::{Advice, CongestionControl};

#[derive(Debug)]
pub(super) struct StaticWindow {
    window: i32,
}

impl StaticWindow {
    pub(super) fn new(window: i32) -> Self {
        Self { window }
    }
}

impl CongestionControl for StaticWindow {
    fn advise(&mut self, _consumed: i64, _told: i64, _has_loss: bool, _now_ns: i64) -> Advice {
        Advice {
            window: self.window,
            is_urgent: false,
        }
    }

    fn wants_round_trip(&mut self, _now_ns: i64) -> bool {
        false
    }

    fn on_round_trip(&mut self, _round_trip_ns: i64, _now_ns: i64) {}

    fn initial_window(&self) -> i32 {
        self.window
    }
}
