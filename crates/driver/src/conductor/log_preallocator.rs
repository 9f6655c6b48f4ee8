//! Preallocation of log files for queued commands.
//!
//! Commands of one client run in order. While one of them waits for its log file, the files of the commands behind it
//! are created as well, so that adding a thousand publications does not wait a thousand times for the file worker.
//!
//! Contract: `add` a requested file; `on_created` delivers it; `take` it when its command runs, or `remove` it with the
//! command. A preallocation is a guess: a command also gets its file without one.

use std::collections::{BTreeMap, BTreeSet};

use super::log_files::LogFile;

/// Maximum bytes of preallocated files: one log with 64 MiB terms, or a thousand with 64 KiB terms.
const BYTES: usize = 256 * 1024 * 1024;

/// A log file requested for a queued command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Preallocation {
    /// Ticket of the file request.
    pub(crate) ticket: u64,
    pub(crate) stream_id: i32,
    pub(crate) length: usize,
}

/// Status of a preallocated file.
#[derive(Debug)]
pub(crate) enum PreallocationStatus {
    Ready(LogFile),
    InFlight,
    /// Creation failed, or the file was not preallocated.
    Unavailable,
}

#[derive(Debug)]
struct Entry {
    of: Preallocation,
    made: Option<LogFile>,
}

/// All preallocated files.
#[derive(Debug, Default)]
pub(crate) struct LogPreallocator {
    files: BTreeMap<u64, Entry>,
    streams: BTreeSet<i32>,
    bytes: usize,
}

impl LogPreallocator {
    /// Returns true if a file of `length` bytes may be preallocated. One per stream, since further commands for the
    /// stream are likely to share the publication.
    pub(crate) fn has_room(&self, stream_id: i32, length: usize) -> bool {
        self.bytes + length <= BYTES && !self.streams.contains(&stream_id)
    }

    pub(crate) fn expect(&mut self, of: Preallocation) {
        self.bytes += of.length;
        self.streams.insert(of.stream_id);
        self.files.insert(of.ticket, Entry { of, made: None });
    }

    /// Handles a created file, or the failure to create it. Returns the file if it was not preallocated.
    pub(crate) fn made(&mut self, ticket: u64, file: Option<LogFile>) -> Option<LogFile> {
        match (self.files.get_mut(&ticket), file) {
            (Some(expected), Some(file)) => expected.made.replace(file),
            (Some(_), None) => self.forget(ticket),
            (None, file) => file,
        }
    }

    /// Returns the file for the command that needs it, or its status.
    pub(crate) fn take(&mut self, ticket: u64) -> PreallocationStatus {
        match self.files.get(&ticket) {
            None => PreallocationStatus::Unavailable,
            Some(expected) if expected.made.is_none() => PreallocationStatus::InFlight,
            Some(_) => self
                .forget(ticket)
                .map_or(PreallocationStatus::Unavailable, PreallocationStatus::Ready),
        }
    }

    /// Removes a preallocation and returns its file if it was created.
    pub(crate) fn forget(&mut self, ticket: u64) -> Option<LogFile> {
        let Entry { of, made } = self.files.remove(&ticket)?;
        self.bytes -= of.length;
        self.streams.remove(&of.stream_id);
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: usize = BYTES / 2;

    fn foreseen(ticket: u64, stream_id: i32) -> Preallocation {
        Preallocation {
            ticket,
            stream_id,
            length: LENGTH,
        }
    }

    #[test]
    fn a_file_is_there_for_its_command_once() {
        let mut foresight = LogPreallocator::default();
        foresight.expect(foreseen(1, 10));
        assert!(matches!(foresight.take(1), PreallocationStatus::InFlight));
        assert!(foresight.made(1, Some(LogFile::detached())).is_none());
        assert!(matches!(foresight.take(1), PreallocationStatus::Ready(_)));
        assert!(matches!(
            foresight.take(1),
            PreallocationStatus::Unavailable
        ));
        assert!(foresight.made(2, Some(LogFile::detached())).is_some());
    }

    #[test]
    fn a_file_that_cannot_be_made_is_none() {
        let mut foresight = LogPreallocator::default();
        foresight.expect(foreseen(1, 10));
        assert!(foresight.made(1, None).is_none());
        assert!(matches!(
            foresight.take(1),
            PreallocationStatus::Unavailable
        ));
        assert!(foresight.has_room(10, BYTES));
    }

    #[test]
    fn what_is_forgotten_is_given_back() {
        let mut foresight = LogPreallocator::default();
        for ticket in [1, 2] {
            foresight.expect(foreseen(ticket, ticket as i32));
        }
        foresight.made(1, Some(LogFile::detached()));
        assert!(foresight.forget(1).is_some() && foresight.forget(2).is_none());
        assert!(foresight.made(2, Some(LogFile::detached())).is_some());
    }

    #[test]
    fn room_and_streams_are_limited() {
        let mut foresight = LogPreallocator::default();
        foresight.expect(foreseen(1, 10));
        assert!(foresight.has_room(11, LENGTH) && !foresight.has_room(11, LENGTH + 1));
        assert!(!foresight.has_room(10, LENGTH), "one for each stream");
        foresight.forget(1);
        assert!(foresight.has_room(10, BYTES));
    }
}
