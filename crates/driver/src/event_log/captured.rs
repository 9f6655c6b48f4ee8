// SPDX-License-Identifier: Apache-2.0
//! Test support: an event log whose lines can be inspected.

use taran_protocol::event::EventSet;

use super::{EventClock, EventConsumer, EventLog, text};

/// Length of the queue in bytes.
const CAPACITY: usize = 64 * 1024;

impl EventLog {
    /// Creates a log of these events with the fixed timestamp 5.000000007 s, and its consumer.
    pub(crate) fn captured(enabled: &str) -> (Self, EventConsumer) {
        Self::new(EventSet::parse(enabled).unwrap(), CAPACITY, || {
            5_000_000_007
        })
        .unwrap()
    }
}

impl EventConsumer {
    /// Returns all lines logged since the last call.
    pub(crate) fn lines(&mut self) -> String {
        let mut lines = String::new();
        while self.read(10, |number, record| {
            text::append(&mut lines, EventClock::Monotonic, number, record);
        }) > 0
        {}
        lines
    }
}
