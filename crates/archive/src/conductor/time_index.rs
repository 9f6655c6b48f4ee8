// SPDX-License-Identifier: Apache-2.0
//! Time indexes: written while recordings are active, searched for replays from a time and for retention.
//!
//! An index is a help and no part of a recording: its failures are logged, and the recording goes on.

use std::collections::HashMap;

use taran_archive_client::protocol::ErrorCode;
use taran_storage::{
    AlignedBuf, Create, DiskError, OpenOptions, Outcome, QueuedFile, Request as DiskRequest,
};

use super::ConductorCore;
use super::replays::TimedReplay;
use super::truncation::PendingFileOperation;
use crate::files::{Bound, ENTRY_LENGTH, IndexSearch, TimeEntry, time_index_path};

/// Entries after which an index is synced, if recordings are.
const SYNC_INTERVAL: u64 = 64;

/// An index of an active recording.
#[derive(Debug)]
struct Writer {
    file: Option<QueuedFile>,
    /// Position at which the recording goes on: later entries are of what was cut off.
    start: i64,
    count: u64,
    last: TimeEntry,
    state: WriterState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriterState {
    /// Entries that do not belong to the recording any more are cut off.
    Opening,
    Ready,
    Writing,
    Failed,
}

/// The indexes of all active recordings.
#[derive(Debug, Default)]
pub(super) struct TimeIndexes {
    writers: HashMap<i64, Writer>,
    next_ns: i64,
}

/// A search for a position.
#[derive(Debug)]
pub(super) struct Lookup {
    pub(super) recording_id: i64,
    search: IndexSearch,
    then: LookupFor,
}

/// Purpose of a lookup.
#[derive(Debug)]
pub(super) enum LookupFor {
    Replay(Box<TimedReplay>),
    Retention,
}

/// Continuation of a request to the disk queue that concerns an index.
#[derive(Debug)]
pub(super) enum IndexOperation {
    OpenToWrite(i64),
    MeasureToWrite(i64),
    ProbeToWrite(i64, IndexSearch),
    Cut(i64, IndexSearch),
    Write(i64, TimeEntry),
    Sync,
    Measure(Box<Lookup>),
    Open(Box<Lookup>),
    Probe(Box<Lookup>, QueuedFile),
    Remove,
}

/// Result of a request to the disk queue.
type Done = Result<Outcome, DiskError>;

impl ConductorCore {
    fn submit_index(&mut self, request: DiskRequest, operation: IndexOperation) {
        self.submit(request, PendingFileOperation::TimeIndex(operation));
    }

    fn probe(&mut self, file: &QueuedFile, entry: u64, operation: IndexOperation) {
        let request = DiskRequest::Read {
            file: file.clone(),
            offset: entry * ENTRY_LENGTH as u64,
            buffer: AlignedBuf::new(ENTRY_LENGTH),
            range: 0..ENTRY_LENGTH,
        };
        self.submit_index(request, operation);
    }

    // --- writing ---

    /// Opens the index of a recording that goes on at a position.
    pub(super) fn start_time_index(&mut self, recording_id: i64, start: i64) {
        if self.config.time_index_interval_ns <= 0 {
            return;
        }
        let writer = Writer {
            file: None,
            start,
            count: 0,
            last: TimeEntry {
                time_ms: i64::MIN,
                position: i64::MIN,
            },
            state: WriterState::Opening,
        };
        self.time_indexes.writers.insert(recording_id, writer);
        let path = time_index_path(&self.config.dir, recording_id);
        let options = OpenOptions::write().with_create(Create::IfMissing);
        self.submit_index(
            DiskRequest::Open { path, options },
            IndexOperation::OpenToWrite(recording_id),
        );
    }

    /// Writes entries for recordings that have moved, once in an interval.
    pub(super) fn poll_time_indexes(&mut self) -> usize {
        let now_ns = self.now.nanos;
        if now_ns < self.time_indexes.next_ns || self.time_indexes.writers.is_empty() {
            return 0;
        }
        self.time_indexes.next_ns = now_ns.saturating_add(self.config.time_index_interval_ns);
        let ready = self.time_indexes.writers.iter();
        let ready = ready.filter(|(_, writer)| writer.state == WriterState::Ready);
        let ids: Vec<i64> = ready.map(|(id, _)| *id).collect();
        let mut work = 0;
        for recording_id in ids {
            if let Some(position) = self.recorded_position(recording_id) {
                work += usize::from(self.write_entry(recording_id, position));
            }
        }
        work
    }

    /// Writes an entry, if position and wall clock are beyond the last one.
    fn write_entry(&mut self, recording_id: i64, position: i64) -> bool {
        let entry = TimeEntry {
            time_ms: self.now.epoch_millis,
            position,
        };
        let Some(writer) = self.time_indexes.writers.get_mut(&recording_id) else {
            return false;
        };
        let Some(file) = writer.file.clone() else {
            return false;
        };
        if writer.state != WriterState::Ready
            || position <= writer.last.position
            || entry.time_ms <= writer.last.time_ms
        {
            return false;
        }
        writer.state = WriterState::Writing;
        let offset = writer.count * ENTRY_LENGTH as u64;
        let mut buffer = AlignedBuf::new(ENTRY_LENGTH);
        buffer[..ENTRY_LENGTH].copy_from_slice(&entry.encode(recording_id));
        let request = DiskRequest::Write {
            file,
            offset,
            buffer,
            range: 0..ENTRY_LENGTH,
        };
        self.submit_index(request, IndexOperation::Write(recording_id, entry));
        true
    }

    /// Ends the index of a recording that has stopped at a position.
    pub(super) fn stop_time_index(&mut self, recording_id: i64, position: i64) {
        self.write_entry(recording_id, position);
        let writer = self.time_indexes.writers.remove(&recording_id);
        if let Some(file) = writer.and_then(|writer| writer.file) {
            self.submit_index(DiskRequest::Close { file }, IndexOperation::Sync);
        }
    }

    /// Removes the index of a deleted recording.
    pub(super) fn remove_time_index(&mut self, recording_id: i64) {
        let path = time_index_path(&self.config.dir, recording_id);
        self.submit_index(DiskRequest::RemoveFile { path }, IndexOperation::Remove);
    }

    // --- searching ---

    /// Searches the last entry within a bound.
    pub(super) fn look_up(&mut self, recording_id: i64, bound: Bound, then: LookupFor) {
        let lookup = Lookup {
            recording_id,
            search: IndexSearch::new(bound, 0),
            then,
        };
        let path = time_index_path(&self.config.dir, recording_id);
        let operation = IndexOperation::Measure(Box::new(lookup));
        self.submit_index(DiskRequest::Metadata { path }, operation);
    }

    fn probe_lookup(&mut self, lookup: Box<Lookup>, file: QueuedFile) {
        if let Some(entry) = lookup.search.next() {
            let operation = IndexOperation::Probe(lookup, file.clone());
            self.probe(&file, entry, operation);
        } else {
            self.submit_index(DiskRequest::Close { file }, IndexOperation::Sync);
            self.finish_lookup(*lookup);
        }
    }

    fn finish_lookup(&mut self, lookup: Lookup) {
        let found = lookup.search.found();
        match lookup.then {
            LookupFor::Replay(replay) => self.start_timed_replay(&replay, found),
            LookupFor::Retention => self.on_age_found(lookup.recording_id, found),
        }
    }

    // --- completions ---

    pub(super) fn on_index_operation(
        &mut self,
        operation: IndexOperation,
        done: Done,
        bytes: Option<&[u8]>,
    ) {
        match operation {
            IndexOperation::OpenToWrite(id) => self.on_opened_to_write(id, done),
            IndexOperation::MeasureToWrite(id) => self.on_measured_to_write(id, done),
            IndexOperation::ProbeToWrite(id, mut search) => match done {
                Ok(_) => {
                    search.on_entry(bytes.and_then(|bytes| TimeEntry::decode(bytes, id)));
                    self.probe_to_write(id, search);
                }
                Err(error) => self.fail_time_index(id, &error),
            },
            IndexOperation::Cut(id, search) => self.on_cut(id, &search, done),
            IndexOperation::Write(id, entry) => self.on_entry_written(id, entry, done),
            IndexOperation::Sync => self.log_index_failure(done.err()),
            IndexOperation::Remove => {
                self.log_index_failure(done.err().filter(|error| !error.is_not_found()));
            }
            IndexOperation::Measure(mut lookup) => match done {
                Ok(Outcome::Metadata(metadata)) => {
                    lookup.search = lookup.search.resized(metadata.len / ENTRY_LENGTH as u64);
                    let path = time_index_path(&self.config.dir, lookup.recording_id);
                    let options = OpenOptions::read();
                    self.submit_index(
                        DiskRequest::Open { path, options },
                        IndexOperation::Open(lookup),
                    );
                }
                // Without an index, the recording is as if it had an empty one.
                Ok(_) => self.finish_lookup(*lookup),
                Err(error) => {
                    self.log_index_failure(Some(error).filter(|error| !error.is_not_found()));
                    self.finish_lookup(*lookup);
                }
            },
            IndexOperation::Open(lookup) => match done {
                Ok(Outcome::Opened(file)) => {
                    let file = self.io.attach(file);
                    self.probe_lookup(lookup, file);
                }
                done => {
                    self.log_index_failure(done.err());
                    self.finish_lookup(*lookup);
                }
            },
            IndexOperation::Probe(mut lookup, file) => {
                // What cannot be read ends the search before it.
                let entry = bytes.and_then(|bytes| TimeEntry::decode(bytes, lookup.recording_id));
                lookup.search.on_entry(entry.filter(|_| done.is_ok()));
                self.log_index_failure(done.err());
                self.probe_lookup(lookup, file);
            }
        }
    }

    fn on_opened_to_write(&mut self, id: i64, done: Done) {
        match done {
            Ok(Outcome::Opened(file)) => {
                let file = self.io.attach(file);
                if let Some(writer) = self.time_indexes.writers.get_mut(&id) {
                    writer.file = Some(file);
                } else {
                    self.submit_index(DiskRequest::Close { file }, IndexOperation::Sync);
                    return;
                }
                let path = time_index_path(&self.config.dir, id);
                self.submit_index(
                    DiskRequest::Metadata { path },
                    IndexOperation::MeasureToWrite(id),
                );
            }
            Ok(_) => {}
            Err(error) => self.fail_time_index(id, &error),
        }
    }

    fn on_measured_to_write(&mut self, id: i64, done: Done) {
        let Some(start) = self
            .time_indexes
            .writers
            .get(&id)
            .map(|writer| writer.start)
        else {
            return;
        };
        match done {
            Ok(Outcome::Metadata(metadata)) => {
                let bound = Bound::UpTo { position: start };
                let search = IndexSearch::new(bound, metadata.len / ENTRY_LENGTH as u64);
                self.probe_to_write(id, search);
            }
            Ok(_) => {}
            Err(error) => self.fail_time_index(id, &error),
        }
    }

    fn probe_to_write(&mut self, id: i64, search: IndexSearch) {
        let file = self
            .time_indexes
            .writers
            .get(&id)
            .and_then(|writer| writer.file.clone());
        let Some(file) = file else { return };
        if let Some(entry) = search.next() {
            self.probe(&file, entry, IndexOperation::ProbeToWrite(id, search));
        } else {
            let len = search.count() * ENTRY_LENGTH as u64;
            let cut = DiskRequest::SetLength { file, len };
            self.submit_index(cut, IndexOperation::Cut(id, search));
        }
    }

    fn on_cut(&mut self, id: i64, search: &IndexSearch, done: Done) {
        if let Err(error) = done {
            self.fail_time_index(id, &error);
            return;
        }
        let Some(writer) = self.time_indexes.writers.get_mut(&id) else {
            return;
        };
        writer.count = search.count();
        writer.state = WriterState::Ready;
        let start = writer.start;
        if let Some(last) = search.found() {
            writer.last = TimeEntry {
                position: last.position.min(start - 1),
                ..last
            };
        }
        // What follows was recorded after now.
        self.write_entry(id, start);
    }

    fn on_entry_written(&mut self, id: i64, entry: TimeEntry, done: Done) {
        let Some(writer) = self.time_indexes.writers.get_mut(&id) else {
            self.log_index_failure(done.err());
            return;
        };
        let Some(file) = writer.file.clone() else {
            return;
        };
        match done {
            Ok(_) => {
                writer.count += 1;
                writer.last = entry;
                writer.state = WriterState::Ready;
                if writer.count.is_multiple_of(SYNC_INTERVAL)
                    && let Some(kind) = self.config.file_sync_level.kind()
                {
                    self.submit_index(DiskRequest::Sync { file, kind }, IndexOperation::Sync);
                }
            }
            Err(error) if error.is_full() => {
                // The next entry is written in its place.
                writer.state = WriterState::Ready;
                self.submit_index(DiskRequest::ClearFailure { file }, IndexOperation::Sync);
            }
            Err(error) => self.fail_time_index(id, &error),
        }
    }

    /// Gives up the index of a recording until it is extended.
    fn fail_time_index(&mut self, id: i64, error: &DiskError) {
        self.log_index_failure(Some(error.clone()));
        if let Some(writer) = self.time_indexes.writers.get_mut(&id) {
            writer.state = WriterState::Failed;
        }
    }

    fn log_index_failure(&self, error: Option<DiskError>) {
        if let Some(error) = error {
            let text = format!("{error}; the time index is incomplete, and the recording goes on");
            self.log(ErrorCode::Generic, &text);
        }
    }
}
