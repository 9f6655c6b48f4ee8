// SPDX-License-Identifier: Apache-2.0
//! Responses and notifications to clients through the broadcast buffer.

use taran_core::broadcast::Transmitter;
use taran_protocol::response::Response;

use crate::event_log::EventLog;

/// The only writer of the to-clients buffer. Messages are encoded into a reused buffer.
#[doc(alias = "ClientProxy")]
#[derive(Debug)]
pub(crate) struct ResponseSender {
    transmitter: Transmitter,
    buffer: Vec<u8>,
    events: EventLog,
}

/// Maximum length of an error text, in bytes (docs/spec/uri-and-configuration.md §4.1).
const ERROR_TEXT_MAX: usize = 8192;

impl ResponseSender {
    pub(crate) fn new(transmitter: Transmitter, events: EventLog) -> Self {
        Self {
            transmitter,
            buffer: Vec::with_capacity(ERROR_TEXT_MAX),
            events,
        }
    }

    /// Transmits a message. There is no flow control: slow clients are lapped.
    pub(crate) fn send(&mut self, response: &Response<'_>) {
        self.buffer.clear();
        let type_id = response.encode(&mut self.buffer);
        self.events.response(type_id, &self.buffer);
        let sent = self.transmitter.transmit(type_id, &self.buffer);
        // The longest message (an error text, or a channel of 4095 bytes and a path) is far below an eighth of the
        // smallest buffer that the options allow.
        debug_assert!(
            sent.is_ok(),
            "message of {} bytes does not fit",
            self.buffer.len()
        );
    }

    /// Returns the error text, truncated to the maximum length.
    pub(crate) fn error_text(text: &str) -> &str {
        let mut end = text.len().min(ERROR_TEXT_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        &text[..end]
    }
}
