// SPDX-License-Identifier: Apache-2.0
//! Flow control: the sender limit of a publication (docs/spec/wire.md §4).
//!
//! A strategy is chosen when a publication is created, by the driver's options and the channel's `fc`, or by a program
//! that embeds the driver ([`DriverContext::flow_control`](crate::DriverContext::flow_control)). It is owned by the
//! sender's half of the publication, and called for status messages and when there is nothing to send, never per
//! message.

mod max;
mod min;

use std::fmt::Debug;

use crate::boundary::SenderFlowControlSpec;

/// An accepted status message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatusReport {
    /// Id of the receiver.
    pub receiver_id: i64,
    /// Group tag of the receiver, if the message has one.
    pub group_tag: Option<i64>,
    /// Consumption position in bytes; within half a term of the sender position.
    pub position: i64,
    /// Receiver window in bytes, not negative.
    pub window: i32,
    /// True if the receiver has the whole stream, or leaves.
    pub is_end_of_stream: bool,
}

impl StatusReport {
    /// Creates the report of a receiver without a group tag, for tests of a [`FlowControl`].
    #[must_use]
    pub fn new(receiver_id: i64, position: i64, window: i32) -> Self {
        Self {
            receiver_id,
            group_tag: None,
            position,
            window,
            is_end_of_stream: false,
        }
    }

    /// Sets the group tag of the receiver.
    #[must_use]
    pub fn with_group_tag(self, group_tag: i64) -> Self {
        Self {
            group_tag: Some(group_tag),
            ..self
        }
    }

    /// States that the receiver has the whole stream, or leaves.
    #[must_use]
    pub fn at_end_of_stream(self) -> Self {
        Self {
            is_end_of_stream: true,
            ..self
        }
    }
}

/// Flow control strategy of a publication. Computes the sender limit.
///
/// Input comes through the `on_…` methods, in the sender's duty cycle: they must not block. Those that return a
/// position return the new sender limit: nothing beyond it is sent. `now_ns` is the driver's monotonic clock.
pub trait FlowControl: Send + Debug {
    /// Handles an accepted status message. `limit` is the current sender limit. Returns the new one.
    fn on_status(&mut self, report: &StatusReport, limit: i64, now_ns: i64) -> i64;

    /// Called in a duty cycle that sent nothing, to remove receivers that timed out. `limit` is the current sender
    /// limit. Returns the new one.
    fn on_idle(&mut self, limit: i64, now_ns: i64) -> i64;

    /// Returns the last time at which [`on_idle`](Self::on_idle) changes nothing unless a status message arrives
    /// before: it is not called until then. By default it is called in each duty cycle or, for an idle publication,
    /// when that is polled. The driver reads the deadline after each poll and each status message. A status message
    /// that brings it forward must make it due at once.
    fn next_deadline_ns(&self) -> i64 {
        i64::MIN
    }

    /// Handles a receiver's request for a SETUP.
    fn on_setup_requested(&mut self, group_tag: Option<i64>) {
        let _ = group_tag;
    }

    /// Called before a SETUP is sent that a receiver has requested.
    fn on_requested_setup(&mut self, limit: i64, now_ns: i64) {
        let _ = (limit, now_ns);
    }

    /// Handles an error of a receiver: it rejects the stream.
    fn on_error(&mut self, receiver_id: i64, group_tag: Option<i64>, now_ns: i64) {
        let _ = (receiver_id, group_tag, now_ns);
    }

    /// Returns true if there are as many receivers as the strategy requires. Otherwise the publication is not
    /// connected.
    fn has_required_receivers(&self) -> bool {
        true
    }

    /// Returns true if a receiver was rejected since the last call, because there are too many. The driver records it
    /// as an error.
    fn take_rejected(&mut self) -> bool {
        false
    }

    /// Returns the limit of the data retransmitted for one NAK, as a multiple of the receiver window; at least 1
    /// (docs/spec/wire.md §3.8).
    fn retransmit_window_multiple(&self) -> i32;
}

/// The publication that a strategy is requested for.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FlowControlRequest<'a> {
    /// Channel, as given by the client.
    pub channel: &'a str,
    /// Registration id.
    pub registration_id: i64,
    /// Session id.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// Term length in bytes.
    pub term_length: i32,
    /// True if it may have many receivers: multicast, or several destinations.
    pub is_group: bool,
}

/// Factory of strategies. `None` leaves the choice to options and channel.
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
