//! How far the sender may run ahead of its receivers (spec/02 §4).

mod max;

use std::fmt::Debug;

use crate::boundary::FlowControlSpec;

/// A valid status message as flow control sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatusReport {
    /// Who.
    pub(super) receiver_id: i64,
    /// Its group, if it tells.
    #[expect(dead_code, reason = "tagged flow control will go by it")]
    pub(super) group_tag: Option<i64>,
    /// Consumption position.
    pub(super) position: i64,
    /// Bytes it takes beyond.
    pub(super) window: i32,
    /// It has everything or leaves.
    pub(super) is_end_of_stream: bool,
}

/// Turns what receivers say into the sender's limit. One per publication, owned by its sender half.
///
/// Input comes through the `on_…` methods; those that return a position return the new sender limit. All times are
/// `Now::nanos`.
pub(super) trait FlowControl: Send + Debug {
    /// A status message arrived.
    fn on_status(&mut self, report: &StatusReport, limit: i64, now_ns: i64) -> i64;

    /// Nothing was sent in this turn.
    fn on_idle(&mut self, limit: i64, now_ns: i64) -> i64;

    /// A receiver asked for a SETUP.
    fn on_setup_requested(&mut self, group_tag: Option<i64>);

    /// A requested SETUP is about to be sent.
    fn on_requested_setup(&mut self, limit: i64, now_ns: i64);

    /// A receiver rejected the stream.
    fn on_error(&mut self, receiver_id: i64, group_tag: Option<i64>, now_ns: i64);

    /// There are as many receivers as the strategy asks for.
    fn has_required_receivers(&self) -> bool;

    /// Longest answer to one NAK, as a multiple of the receiver window.
    fn retransmit_window_multiple(&self) -> i32;
}

pub(super) fn build(spec: &FlowControlSpec) -> Box<dyn FlowControl> {
    match *spec {
        FlowControlSpec::Max {
            retransmit_window_multiple,
        } => Box::new(max::Max::new(retransmit_window_multiple)),
    }
}
