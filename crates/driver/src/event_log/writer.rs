//! The thread that writes the event log.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use taran_core::clock::{Clock, SystemClock};
use taran_protocol::event::EventSet;

use super::{EventConsumer, EventLog, text};
use crate::error::DriverError;

/// How long the thread sleeps when there is nothing to write. Who logs never wakes it up: that would be a system call.
const SLEEP: Duration = Duration::from_millis(2);
/// The sleep when there has been nothing for a while.
const LONG_SLEEP: Duration = Duration::from_millis(20);
/// Sleeps after which it is a while.
const SHORT_SLEEP_LIMIT: u32 = 100;
/// Records that become one write.
const BATCH: usize = 64;

/// What is logged, and where to.
#[derive(Debug)]
pub(crate) struct EventWriterSpec {
    /// The events.
    pub(crate) enabled: EventSet,
    /// The file to append to; `None` for standard output.
    pub(crate) path: Option<PathBuf>,
    /// Bytes of the queue.
    pub(crate) capacity: usize,
}

/// Writes what the driver logs. When it is dropped, all that was logged has been written.
#[derive(Debug)]
pub(crate) struct EventWriter {
    log: EventLog,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl EventWriter {
    /// Opens the file, says that the log begins, and starts the thread.
    pub(crate) fn start(spec: EventWriterSpec) -> Result<Self, DriverError> {
        let EventWriterSpec {
            enabled,
            path,
            capacity,
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
            EventLog::new(enabled, capacity, monotonic_ns).map_err(|error| DriverError::Cnc {
                what: "the queue of events",
                reason: error.to_string(),
            })?;
        let now = SystemClock::new().now();
        // Where nobody reads it, nobody misses it.
        let _ = write_all(out.as_mut(), &text::start(now.nanos, now.epoch_millis));
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("event-log".to_owned())
            .spawn(move || work(consumer, out, capacity, &stopped))
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

    /// The end for those who log.
    pub(crate) fn log(&self) -> EventLog {
        self.log.clone()
    }
}

impl Drop for EventWriter {
    fn drop(&mut self) {
        // Release: what was logged before is seen by the thread that acquires this.
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It has nothing that could panic.
            let _ = thread.join();
        }
    }
}

fn monotonic_ns() -> i64 {
    SystemClock::new().now().nanos
}

fn work(
    mut consumer: EventConsumer,
    mut out: Box<dyn Write + Send>,
    capacity: usize,
    stop: &AtomicBool,
) {
    let mut lines = String::new();
    let mut idle: u32 = 0;
    loop {
        let stopping = stop.load(Ordering::Acquire);
        lines.clear();
        consumer.read(BATCH, |number, record| {
            text::append(&mut lines, number, record);
        });
        let lost = consumer.take_lost();
        if lost > 0 {
            lines.push_str(&text::lost(monotonic_ns(), lost, capacity));
        }
        if !lines.is_empty() {
            idle = 0;
            // A full disk or a closed pipe is no reason to stop the driver, or to let the queue run over.
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
