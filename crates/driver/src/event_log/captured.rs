//! For tests: a log whose lines can be looked at.

use taran_protocol::event::EventSet;

use super::{EventConsumer, EventLog, text};

/// Bytes of the queue.
const CAPACITY: usize = 64 * 1024;

impl EventLog {
    /// A log of these events, all of which happen 5.000000007 s after 1970; and its other end.
    pub(crate) fn captured(enabled: &str) -> (Self, EventConsumer) {
        Self::new(EventSet::parse(enabled).unwrap(), CAPACITY, || {
            5_000_000_007
        })
        .unwrap()
    }
}

impl EventConsumer {
    /// All that was logged since the last time.
    pub(crate) fn lines(&mut self) -> String {
        let mut lines = String::new();
        while self.read(10, |number, record| {
            text::append(&mut lines, number, record);
        }) > 0
        {}
        lines
    }
}
