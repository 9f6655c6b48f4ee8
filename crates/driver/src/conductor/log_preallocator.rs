// SPDX-License-Identifier: Apache-2.0
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
    preallocation: Preallocation,
    file: Option<LogFile>,
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

    pub(crate) fn add(&mut self, preallocation: Preallocation) {
        self.bytes += preallocation.length;
        self.streams.insert(preallocation.stream_id);
        self.files.insert(
            preallocation.ticket,
            Entry {
                preallocation,
                file: None,
            },
        );
    }

    /// Handles a created file, or the failure to create it. Returns the file if it was not preallocated.
    pub(crate) fn on_created(&mut self, ticket: u64, file: Option<LogFile>) -> Option<LogFile> {
        match (self.files.get_mut(&ticket), file) {
            (Some(entry), Some(file)) => entry.file.replace(file),
            (Some(_), None) => self.remove(ticket),
            (None, file) => file,
        }
    }

    /// Returns the file for the command that needs it, or its status.
    pub(crate) fn take(&mut self, ticket: u64) -> PreallocationStatus {
        match self.files.get(&ticket) {
            None => PreallocationStatus::Unavailable,
            Some(entry) if entry.file.is_none() => PreallocationStatus::InFlight,
            Some(_) => self
                .remove(ticket)
                .map_or(PreallocationStatus::Unavailable, PreallocationStatus::Ready),
        }
    }

    /// Removes a preallocation and returns its file if it was created.
    pub(crate) fn remove(&mut self, ticket: u64) -> Option<LogFile> {
        let Entry {
            preallocation,
            file,
        } = self.files.remove(&ticket)?;
        self.bytes -= preallocation.length;
        self.streams.remove(&preallocation.stream_id);
        file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: usize = BYTES / 2;

    fn preallocation(ticket: u64, stream_id: i32) -> Preallocation {
        Preallocation {
            ticket,
            stream_id,
            length: LENGTH,
        }
    }

    #[test]
    fn take_created_file_returns_it_once() {
        let mut preallocator = LogPreallocator::default();
        preallocator.add(preallocation(1, 10));
        assert!(matches!(
            preallocator.take(1),
            PreallocationStatus::InFlight
        ));
        assert!(
            preallocator
                .on_created(1, Some(LogFile::detached()))
                .is_none()
        );
        assert!(matches!(
            preallocator.take(1),
            PreallocationStatus::Ready(_)
        ));
        assert!(matches!(
            preallocator.take(1),
            PreallocationStatus::Unavailable
        ));
        assert!(
            preallocator
                .on_created(2, Some(LogFile::detached()))
                .is_some()
        );
    }

    #[test]
    fn take_failed_file_is_unavailable() {
        let mut preallocator = LogPreallocator::default();
        preallocator.add(preallocation(1, 10));
        assert!(preallocator.on_created(1, None).is_none());
        assert!(matches!(
            preallocator.take(1),
            PreallocationStatus::Unavailable
        ));
        assert!(preallocator.has_room(10, BYTES));
    }

    #[test]
    fn remove_returns_created_file() {
        let mut preallocator = LogPreallocator::default();
        for ticket in [1, 2] {
            preallocator.add(preallocation(ticket, ticket as i32));
        }
        preallocator.on_created(1, Some(LogFile::detached()));
        assert!(preallocator.remove(1).is_some() && preallocator.remove(2).is_none());
        assert!(
            preallocator
                .on_created(2, Some(LogFile::detached()))
                .is_some()
        );
    }

    #[test]
    fn has_room_limits_bytes_and_files_per_stream() {
        let mut preallocator = LogPreallocator::default();
        preallocator.add(preallocation(1, 10));
        assert!(preallocator.has_room(11, LENGTH) && !preallocator.has_room(11, LENGTH + 1));
        assert!(!preallocator.has_room(10, LENGTH), "one for each stream");
        preallocator.remove(1);
        assert!(preallocator.has_room(10, BYTES));
    }
}
