// SPDX-License-Identifier: Apache-2.0
//! Writer thread of the event log.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use taran_core::clock::{Clock, SystemClock};
use taran_protocol::event::EventSet;

use super::{EventClock, EventConsumer, EventLog, text};
use crate::error::DriverError;

/// Sleep when there is nothing to write. Producers never wake the thread, because that would be a system call.
const SLEEP: Duration = Duration::from_millis(2);
/// Sleep after a long time without events.
const LONG_SLEEP: Duration = Duration::from_millis(20);
/// Short sleeps in a row after which the sleep is long.
const SHORT_SLEEP_LIMIT: u32 = 100;
/// Records per write.
const BATCH: usize = 64;

/// Enabled events and output of the log.
#[derive(Debug)]
pub(crate) struct EventWriterSpec {
    /// Enabled events.
    pub(crate) enabled: EventSet,
    /// File to append to; `None` for standard output.
    pub(crate) path: Option<PathBuf>,
    /// Length of the queue in bytes.
    pub(crate) capacity: usize,
    /// Clock of the times.
    pub(crate) clock: EventClock,
}

/// Writes the event log. Dropping it writes everything that was logged.
#[derive(Debug)]
pub(crate) struct EventWriter {
    log: EventLog,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl EventWriter {
    /// Opens the file, writes the first line, and starts the thread.
    pub(crate) fn start(spec: EventWriterSpec) -> Result<Self, DriverError> {
        let EventWriterSpec {
            enabled,
            path,
            capacity,
            clock,
        } = spec;
        let mut out: Box<dyn Write + Send> = match path {
            None => Box::new(io::stdout()),
            Some(path) => Box::new(
                OpenOptions::new()
                    .append(true)
                    .create(true)
                    .open(&path)
                    .map_err(|source| DriverError::EventLog { path, source })?,
            ),
        };
        let (log, consumer) =
            EventLog::new(enabled, capacity, clock.now_ns()).map_err(|error| DriverError::Cnc {
                what: "the queue of events",
                reason: error.to_string(),
            })?;
        let epoch_ms = SystemClock::new().now().epoch_millis;
        let start = text::start(clock, clock.now_ns()(), epoch_ms);
        // A closed standard output is ignored.
        let _ = write_all(out.as_mut(), &start);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("event-log".to_owned())
            .spawn(move || work(consumer, out, capacity, clock, &stopped))
            .map_err(|source| DriverError::Thread {
                agent: "the event log",
                source,
            })?;
        Ok(Self {
            log,
            stop,
            thread: Some(thread),
        })
    }

    /// Returns the producer end.
    pub(crate) fn log(&self) -> EventLog {
        self.log.clone()
    }
}

impl Drop for EventWriter {
    fn drop(&mut self) {
        // Release: events logged before are visible to the thread that acquires this.
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread does not panic.
            let _ = thread.join();
        }
    }
}

fn work(
    mut consumer: EventConsumer,
    mut out: Box<dyn Write + Send>,
    capacity: usize,
    clock: EventClock,
    stop: &AtomicBool,
) {
    let mut lines = String::new();
    let mut idle: u32 = 0;
    loop {
        let stopping = stop.load(Ordering::Acquire);
        lines.clear();
        consumer.read(BATCH, |number, record| {
            text::append(&mut lines, clock, number, record);
        });
        let lost = consumer.take_lost();
        if lost > 0 {
            lines.push_str(&text::lost(clock, clock.now_ns()(), lost, capacity));
        }
        if !lines.is_empty() {
            idle = 0;
            // A full disk or a closed pipe neither stops the driver nor lets the queue fill up.
            let _ = write_all(out.as_mut(), &lines);
        } else if consumer.is_empty() {
            if stopping {
                return;
            }
            idle = idle.saturating_add(1);
            thread::park_timeout(if idle > SHORT_SLEEP_LIMIT {
                LONG_SLEEP
            } else {
                SLEEP
            });
        }
    }
}

fn write_all(out: &mut dyn Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}
