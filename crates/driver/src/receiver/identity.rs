// SPDX-License-Identifier: Apache-2.0
//! Identity of a receive endpoint, and the frames that carry it.

use taran_protocol::frame::{IntoBytes, StatusMessage, StatusMessageWithTag};

/// Receiver id and group tag of an endpoint (docs/spec/wire.md §5.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    pub(super) receiver_id: i64,
    pub(super) group_tag: Option<i64>,
}

/// Fields of a status message except the receiver's identity.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StatusFields {
    pub(super) flags: u8,
    pub(super) session_id: i32,
    pub(super) stream_id: i32,
    pub(super) term_id: i32,
    pub(super) term_offset: i32,
    pub(super) window: i32,
}

/// A status message ready to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatusDatagram {
    frame: StatusMessageWithTag,
    has_tag: bool,
}

impl StatusDatagram {
    pub(super) fn bytes(&self) -> &[u8] {
        if self.has_tag {
            self.frame.as_bytes()
        } else {
            self.frame.message.as_bytes()
        }
    }
}

impl Identity {
    pub(super) fn status_message(&self, status: &StatusFields) -> StatusDatagram {
        let header = match self.group_tag {
            None => StatusMessage::header(status.flags),
            Some(_) => StatusMessageWithTag::header(status.flags),
        };
        let message = StatusMessage {
            header,
            session_id: status.session_id.into(),
            stream_id: status.stream_id.into(),
            consumption_term_id: status.term_id.into(),
            consumption_term_offset: status.term_offset.into(),
            receiver_window: status.window.into(),
            receiver_id: self.receiver_id.into(),
        };
        let group_tag = self.group_tag.unwrap_or(0).into();
        StatusDatagram {
            frame: StatusMessageWithTag { message, group_tag },
            has_tag: self.group_tag.is_some(),
        }
    }

    /// Returns a status message that requests a SETUP; session and stream 0 address any session (docs/spec/wire.md
    /// §5.3).
    pub(super) fn setup_request(&self, session_id: i32, stream_id: i32) -> StatusDatagram {
        self.status_message(&StatusFields {
            flags: StatusMessage::SEND_SETUP,
            session_id,
            stream_id,
            ..StatusFields::default()
        })
    }
}
