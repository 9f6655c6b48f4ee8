// SPDX-License-Identifier: Apache-2.0
//! Event log for troubleshooting (`aeron.event.archive.log`, `docs/spec/archive.md` §8.3).
//!
//! The conductor makes the lines of the events that are enabled; a thread writes them. A disabled event costs one bit test. If
//! the thread does not keep up, events are dropped and counted: the conductor never waits.

mod writer;

use std::fmt::{self, Arguments};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use taran_protocol::event::{ArchiveEventCode, ArchiveEventSet};

pub(crate) use writer::{EventLogError, EventWriter, EventWriterSpec};

/// Producer end of the event log. Clones write to the same log.
#[derive(Clone, Default)]
pub(crate) struct EventLog {
    enabled: ArchiveEventSet,
    queue: Option<Queue>,
}

#[derive(Clone)]
struct Queue {
    /// `None` ends the log.
    lines: SyncSender<Option<Line>>,
    lost: Arc<AtomicU64>,
    now_ns: fn() -> i64,
}

/// An event.
#[derive(Debug)]
struct Line {
    /// Nanoseconds since 1970.
    time_ns: i64,
    event: ArchiveEventCode,
    /// Length in bytes of the message, or of the text.
    length: usize,
    text: String,
}

/// Consumer end of the event log.
struct EventConsumer {
    lines: Receiver<Option<Line>>,
    lost: Arc<AtomicU64>,
}

impl EventLog {
    /// Creates a log of these events with room for `capacity` lines, and its consumer.
    fn new(
        enabled: ArchiveEventSet,
        capacity: usize,
        now_ns: fn() -> i64,
    ) -> (Self, EventConsumer) {
        let (sender, lines) = sync_channel(capacity);
        let lost = Arc::new(AtomicU64::new(0));
        let log = Self {
            enabled,
            queue: Some(Queue {
                lines: sender,
                lost: Arc::clone(&lost),
                now_ns,
            }),
        };
        (log, EventConsumer { lines, lost })
    }

    /// Returns true if the event is enabled. Check it before computing expensive values.
    #[inline]
    pub(crate) fn is_enabled(&self, event: ArchiveEventCode) -> bool {
        self.enabled.contains(event)
    }

    /// Logs an event if it is enabled.
    #[inline]
    pub(crate) fn log(&self, event: ArchiveEventCode, fields: Arguments<'_>) {
        if self.is_enabled(event) {
            self.write(event, None, fields);
        }
    }

    /// Logs a message of the control protocol if its event is enabled.
    #[inline]
    pub(crate) fn message(&self, event: ArchiveEventCode, length: usize, fields: Arguments<'_>) {
        if self.is_enabled(event) {
            self.write(event, Some(length), fields);
        }
    }

    /// Ends the log: its consumer reads nothing that comes later.
    fn end(&self) {
        if let Some(queue) = &self.queue {
            // A consumer that is gone has ended.
            let _ = queue.lines.send(None);
        }
    }

    #[cold]
    fn write(&self, event: ArchiveEventCode, length: Option<usize>, fields: Arguments<'_>) {
        let Some(queue) = &self.queue else { return };
        let text = fields.to_string();
        let line = Line {
            time_ns: (queue.now_ns)(),
            event,
            length: length.unwrap_or(text.len()),
            text,
        };
        if queue.lines.try_send(Some(line)).is_err() {
            queue.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for EventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EventLog").field(&self.enabled).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_queue_drops_and_counts_events_and_disabled_ones_cost_nothing() {
        let enabled = ArchiveEventSet::NONE.with(ArchiveEventCode::CatalogResize);
        let (log, consumer) = EventLog::new(enabled, 2, || 7);
        for number in 0..5 {
            log.log(ArchiveEventCode::CatalogResize, format_args!("n={number}"));
        }
        log.log(ArchiveEventCode::CmdInReplay, format_args!("disabled"));
        log.message(ArchiveEventCode::CmdInReplay, 64, format_args!("disabled"));
        let lines: Vec<_> = consumer
            .lines
            .try_iter()
            .flatten()
            .map(|line| line.text)
            .collect();
        assert_eq!(lines, ["n=0", "n=1"]);
        assert_eq!(consumer.lost.load(Ordering::Relaxed), 3);
        EventLog::default().log(ArchiveEventCode::CatalogResize, format_args!("nowhere"));
    }
}
