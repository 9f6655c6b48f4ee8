//! How much a receiver lets the sender run ahead (spec/02 §5.7).

mod static_window;

use std::fmt::Debug;

use crate::boundary::CongestionControlSpec;

/// What congestion control wants told to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Advice {
    /// Receiver window, bytes.
    pub(super) window: i32,
    /// Tell it now, whether or not the position moved.
    pub(super) is_urgent: bool,
}

/// Sets the receiver window. One per image, owned by its receiver half. All times are `Now::nanos`.
pub(super) trait CongestionControl: Send + Debug {
    /// Once per duty cycle: subscribers are at `consumed`, the sender was last told `told`, and `has_loss` says that a
    /// new gap was found since the last call.
    fn advise(&mut self, consumed: i64, told: i64, has_loss: bool, now_ns: i64) -> Advice;

    /// True if a round trip should be measured now; asked once per duty cycle.
    fn wants_round_trip(&mut self, now_ns: i64) -> bool;

    /// A round trip took so long.
    fn on_round_trip(&mut self, round_trip_ns: i64, now_ns: i64);

    /// The window before anything is known.
    fn initial_window(&self) -> i32;
}

pub(super) fn build(spec: &CongestionControlSpec) -> Box<dyn CongestionControl> {
    match *spec {
        CongestionControlSpec::Static { window } => {
            Box::new(static_window::StaticWindow::new(window))
        }
    }
}
