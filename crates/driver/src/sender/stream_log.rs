// SPDX-License-Identifier: Apache-2.0
//! Event-log entries of one publication.

use std::sync::Arc;

use taran_protocol::event::EventCode;

use crate::event_log::{EventLog, FieldValue};

/// Event log with the identity of a publication.
#[derive(Clone, Debug)]
pub(crate) struct StreamLog {
    /// Event log.
    pub(crate) events: EventLog,
    /// Session.
    pub(crate) session_id: i32,
    /// Stream.
    pub(crate) stream_id: i32,
    /// The publication's channel.
    pub(crate) channel: Arc<str>,
}

impl StreamLog {
    /// Logs that flow control added a receiver.
    pub(super) fn receiver_added(&self, receiver_id: i64, count: usize) {
        self.receivers(EventCode::FlowControlReceiverAdded, receiver_id, count);
    }

    /// Logs that flow control removed a receiver.
    pub(super) fn receiver_removed(&self, receiver_id: i64, count: usize) {
        self.receivers(EventCode::FlowControlReceiverRemoved, receiver_id, count);
    }

    fn receivers(&self, event: EventCode, receiver_id: i64, count: usize) {
        self.events.log(
            event,
            &[
                FieldValue::Int(i32::try_from(count).unwrap_or(i32::MAX)),
                FieldValue::Long(receiver_id),
                FieldValue::Int(self.session_id),
                FieldValue::Int(self.stream_id),
                FieldValue::Text(&self.channel),
            ],
        );
    }

    /// Logs that a range is about to be retransmitted.
    pub(super) fn resend(&self, term_id: i32, term_offset: i32, length: i64) {
        self.events.log(
            EventCode::Resend,
            &[
                FieldValue::Int(self.session_id),
                FieldValue::Int(self.stream_id),
                FieldValue::Int(term_id),
                FieldValue::Int(term_offset),
                FieldValue::Int(i32::try_from(length).unwrap_or(i32::MAX)),
                FieldValue::Text(&self.channel),
            ],
        );
    }
}
