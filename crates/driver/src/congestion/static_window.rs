// SPDX-License-Identifier: Apache-2.0
//! Congestion control with a constant window.

use super::{CongestionControl, ReceiverProgress, WindowUpdate};

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

    fn update_window(&mut self, _progress: &ReceiverProgress, _now_ns: i64) -> WindowUpdate {
        WindowUpdate {
            window: self.window,
            is_urgent: false,
        }
    }
}
