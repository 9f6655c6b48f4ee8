// SPDX-License-Identifier: Apache-2.0
//! The thread that writes the event log.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use chrono::{DateTime, Local};
use taran_core::clock::{SystemWallClock, WallClock};
use taran_protocol::event::ArchiveEventSet;

use super::{EventConsumer, EventLog, Line};

/// Lines that wait at most.
const CAPACITY: usize = 16 * 1024;

/// Enabled events and output of the log.
#[derive(Debug)]
pub(crate) struct EventWriterSpec<'a> {
    pub(crate) enabled: ArchiveEventSet,
    /// File to append to; `None` for standard output.
    pub(crate) path: Option<&'a Path>,
    /// Commit of the program, for the first line.
    pub(crate) commit: &'a str,
}

/// The event log could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EventLogError {
    /// The file cannot be opened.
    #[error("cannot append to the event log {} (aeron.event.log.filename): {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// The thread cannot be started.
    #[error("cannot start the thread of the event log: {0}")]
    Thread(io::Error),
}

/// Writes the event log. Dropping it writes what was logged before.
#[derive(Debug, Default)]
pub(crate) struct EventWriter {
    log: EventLog,
    thread: Option<JoinHandle<()>>,
}

impl EventWriter {
    /// Opens the file, writes the first line, and starts the thread. Without enabled events, there is none.
    pub(crate) fn start(spec: &EventWriterSpec<'_>) -> Result<Self, EventLogError> {
        if spec.enabled.is_empty() {
            return Ok(Self::default());
        }
        let mut out: Box<dyn Write + Send> = match spec.path {
            None => Box::new(io::stdout()),
            Some(path) => {
                let file = OpenOptions::new().append(true).create(true).open(path);
                Box::new(file.map_err(|source| EventLogError::File {
                    path: path.to_path_buf(),
                    source,
                })?)
            }
        };
        let now_ns = || SystemWallClock.epoch_nanos();
        let (log, consumer) = EventLog::new(spec.enabled, CAPACITY, now_ns);
        let start = start_line(now_ns(), spec.commit);
        // A closed standard output is ignored.
        let _ = write_all(out.as_mut(), &start);
        let thread = thread::Builder::new()
            .name("archive-events".to_owned())
            .spawn(move || work(&consumer, out))
            .map_err(EventLogError::Thread)?;
        Ok(Self {
            log,
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
        if let Some(thread) = self.thread.take() {
            self.log.end();
            // The thread does not panic.
            let _ = thread.join();
        }
    }
}

fn work(consumer: &EventConsumer, mut out: Box<dyn Write + Send>) {
    let mut text = String::new();
    while let Ok(Some(line)) = consumer.lines.recv() {
        text.clear();
        append(&mut text, &line);
        let lost = consumer.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            // Writing to a string does not fail, here and below.
            let _ = writeln!(
                text,
                "{}ARCHIVE: {lost} events lost: more came than could be written, log fewer events",
                time(line.time_ns)
            );
        }
        // A full disk or a closed pipe neither stops the archive nor lets the queue fill up.
        let _ = write_all(out.as_mut(), &text);
    }
}

fn start_line(now_ns: i64, commit: &str) -> String {
    let date = DateTime::from_timestamp_nanos(now_ns)
        .with_timezone(&Local)
        .format("%Y-%m-%d %H:%M:%S%.3f%z");
    format!(
        "{}log started {date}, enabled loggers: {{ARCHIVE: version={} commit={commit}}}\n",
        time(now_ns),
        env!("CARGO_PKG_VERSION"),
    )
}

/// Appends the line of an event: `[<time>] ARCHIVE: <name> [<length>/<length>]: <fields>`.
fn append(text: &mut String, line: &Line) {
    let Line {
        time_ns,
        event,
        length,
        text: fields,
    } = line;
    text.push_str(&time(*time_ns));
    let _ = write!(text, "ARCHIVE: {} [{length}/{length}]: ", event.name());
    // Texts of clients are escaped where they are shown; other texts have no line breaks, and none can forge a line.
    text.extend(fields.chars().map(|c| if c.is_control() { ' ' } else { c }));
    text.push('\n');
}

fn time(now_ns: i64) -> String {
    DateTime::from_timestamp_nanos(now_ns)
        .with_timezone(&Local)
        .format("[%Y-%m-%d %H:%M:%S%.9f%z] ")
        .to_string()
}

fn write_all(out: &mut dyn Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use taran_protocol::event::ArchiveEventCode;

    use super::*;

    #[test]
    fn first_line_has_the_commit_of_the_program() {
        let line = start_line(1_700_000_000_123_456_789, "0123456789");
        assert!(line.ends_with(" commit=0123456789}\n"), "{line}");
    }

    #[test]
    fn line_has_time_name_lengths_and_fields_and_no_line_break_of_others() {
        let mut text = String::new();
        let line = Line {
            time_ns: 1_700_000_000_123_456_789,
            event: ArchiveEventCode::CmdInReplay,
            length: 96,
            text: "recordingId=3, replayChannel=aeron:ipc\n[forged]".to_owned(),
        };
        append(&mut text, &line);
        assert!(text.starts_with("[2023-11-1"), "{text}");
        assert!(
            text.ends_with(
                "] ARCHIVE: CMD_IN_REPLAY [96/96]: recordingId=3, replayChannel=aeron:ipc [forged]\n"
            ),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1);
    }
}
