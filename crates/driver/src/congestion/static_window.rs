//! The same window always.

use super::{Advice, CongestionControl, Progress};

#[derive(Debug)]
pub(crate) struct StaticWindow {
    window: i32,
}

impl StaticWindow {
    pub(crate) fn new(window: i32) -> Self {
        Self { window }
    }
}

impl CongestionControl for StaticWindow {
    fn initial_window(&self) -> i32 {
        self.window
    }

    fn is_constant(&self) -> bool {
        true
    }

    fn advise(&mut self, _progress: &Progress, _now_ns: i64) -> Advice {
        Advice {
            window: self.window,
            is_urgent: false,
        }
    }
}
