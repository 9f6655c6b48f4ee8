//! How far the sender may run ahead of its receivers (docs/spec/wire.md §4).
//!
//! A strategy is chosen when a publication is made, by the driver's options and the channel's `fc`, or by whoever embeds
//! the driver ([`DriverContext::flow_control`](crate::DriverContext::flow_control)). From then on it belongs to the
//! publication's sender half, and is asked when a receiver speaks and when there is nothing to send: never for a message.

mod max;
mod min;

use std::fmt::Debug;

use crate::boundary::SenderFlowControlSpec;

/// A status message that was accepted, as flow control sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusReport {
    /// Who.
    pub receiver_id: i64,
    /// Its group, if it tells.
    pub group_tag: Option<i64>,
    /// Up to where it has consumed the stream, in bytes; within half a term of the sender's position.
    pub position: i64,
    /// Bytes that it takes beyond, not negative.
    pub window: i32,
    /// It has everything, or leaves.
    pub is_end_of_stream: bool,
}

/// Turns what receivers say into the sender's limit. One per publication, owned by its sender half.
///
/// Input comes through the `on_…` methods, in the sender's duty cycle: they must not block. Those that return a position
/// return the sender limit from now on: nothing behind it is sent. `now_ns` is the driver's monotonic clock.
pub trait FlowControl: Send + Debug {
    /// A status message was accepted. `limit` is the present sender limit.
    fn on_status(&mut self, report: &StatusReport, limit: i64, now_ns: i64) -> i64;

    /// Nothing was sent in this duty cycle: the time to forget receivers. `limit` is the present sender limit.
    fn on_idle(&mut self, limit: i64, now_ns: i64) -> i64;

    /// Until when [`on_idle`](Self::on_idle) changes nothing if no receiver speaks before: it need not be asked for so long.
    /// By default it is, in each duty cycle or, where nothing was sent for a while, in one of several. Asked after each look
    /// and each status message; where the latter brings an earlier time, that must be now.
    fn next_deadline_ns(&self) -> i64 {
        i64::MIN
    }

    /// A receiver, with the group tag that it told, asked for a SETUP.
    fn on_setup_requested(&mut self, group_tag: Option<i64>) {
        let _ = group_tag;
    }

    /// A SETUP that was asked for is about to be sent.
    fn on_requested_setup(&mut self, limit: i64, now_ns: i64) {
        let _ = (limit, now_ns);
    }

    /// A receiver rejected the stream.
    fn on_error(&mut self, receiver_id: i64, group_tag: Option<i64>, now_ns: i64) {
        let _ = (receiver_id, group_tag, now_ns);
    }

    /// There are as many receivers as the strategy asks for: without, the publication is not connected.
    fn has_required_receivers(&self) -> bool {
        true
    }

    /// Whether, since this was last asked, there were too many receivers to wait for one that counts. The driver records it
    /// as an error.
    fn take_rejected(&mut self) -> bool {
        false
    }

    /// Longest answer to one NAK, as a multiple of the receiver window (docs/spec/wire.md §3.8); at least 1.
    fn retransmit_window_multiple(&self) -> i32;
}

/// The publication that a strategy is wanted for.
#[derive(Clone, Copy, Debug)]
pub struct FlowControlRequest<'a> {
    /// Its channel, as its client gave it.
    pub channel: &'a str,
    /// Its registration id.
    pub registration_id: i64,
    /// Its session.
    pub session_id: i32,
    /// Its stream.
    pub stream_id: i32,
    /// Length of its terms in bytes.
    pub term_length: i32,
    /// It may have many receivers: multicast, or several destinations.
    pub is_group: bool,
}

/// Chooses strategies; `None` leaves the choice to options and channel.
pub type FlowControlSupplier =
    Box<dyn FnMut(&FlowControlRequest<'_>) -> Option<Box<dyn FlowControl>> + Send>;

pub(super) fn build(spec: SenderFlowControlSpec) -> Box<dyn FlowControl> {
    match spec {
        SenderFlowControlSpec::Max {
            retransmit_window_multiple,
        } => Box::new(max::MaxFlowControl::new(retransmit_window_multiple)),
        SenderFlowControlSpec::Min(spec) => Box::new(min::MinFlowControl::new(spec)),
        SenderFlowControlSpec::Custom(strategy) => strategy,
    }
}
