// SPDX-License-Identifier: Apache-2.0
//! Log buffer files of the Aeron directory.
//!
//! `request` starts the creation of a file after a check of the usable space, `poll` returns the created file, `extend`
//! (on each poll of the stream) starts to reserve more of its pages if they are needed soon, and `poll` returns the
//! outcome, which belongs to [`LogFile::on_reserved`]. That returns what to record when a shortage of space begins or ends;
//! `take_change` returns the shortages that `extend` found. `retire` takes a file back when the driver has stopped using it,
//! and `delete_retired` (once per duty cycle) starts the deletion of a few retired files. Counted are mapped bytes
//! (system counter 35) and failed deletions (17); the next timer tick retries a failed deletion.

mod space;

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taran_core::clock::Now;
use taran_core::counters::Counter;
use taran_core::error_log::ErrorHandler;
use taran_core::memory::{CreateOptions, InsufficientSpace, MemoryError, Region, Storage};

use super::failure::Failure;
use super::file_worker::{FileRequest, FileResult, FileWorker, RequestOrigin, ReserveRequest};
use super::log_reservation::{LogDimensions, LogReservation, ReservationStep};
use super::storage_errors;

/// Subfolder of the Aeron directory for a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum LogFolder {
    Publications,
    Images,
}

impl LogFolder {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Publications => "publications",
            Self::Images => "images",
        }
    }
}

/// Key of a log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LogKey {
    pub(crate) folder: LogFolder,
    /// Registration id of the publication or correlation id of the image.
    pub(crate) id: i64,
}

impl LogKey {
    fn origin(self) -> RequestOrigin {
        match self.folder {
            LogFolder::Publications => RequestOrigin::Client,
            LogFolder::Images => RequestOrigin::Peer,
        }
    }
}

/// Request to create a log file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogRequest {
    pub(crate) key: LogKey,
    pub(crate) dimensions: LogDimensions,
    /// Start position of the stream.
    pub(crate) start_position: i64,
    /// Position up to which pages are reserved at creation.
    pub(crate) reserve_to: i64,
    /// False if all pages are reserved and populated at creation. Otherwise they are reserved as the stream proceeds.
    pub(crate) sparse: bool,
}

impl LogRequest {
    /// Returns the bytes that are reserved when the file is created.
    pub(crate) fn reserved_at_creation(&self) -> u64 {
        self.reservation().1.length()
    }

    fn reservation(&self) -> (LogReservation, ReservationStep) {
        LogReservation::new(
            self.dimensions,
            self.start_position,
            self.reserve_to,
            !self.sparse,
        )
    }
}

/// A mapped log file. Returned with [`LogFiles::retire`], which keeps the byte count and deletes the file.
#[derive(Debug)]
pub(crate) struct LogFile {
    key: LogKey,
    path: PathBuf,
    name: String,
    region: Region,
    reservation: LogReservation,
    /// The stream, for error texts.
    stream: Box<str>,
}

impl LogFile {
    /// Creates a log file without a file, for tests.
    #[cfg(test)]
    pub(crate) fn detached() -> Self {
        let dimensions = LogDimensions {
            term_length: 65_536,
            file_length: 200_704,
            page_size: 4_096,
        };
        Self {
            key: LogKey {
                folder: LogFolder::Publications,
                id: 0,
            },
            path: PathBuf::new(),
            name: String::new(),
            region: Region::anonymous(4096).expect("a page of memory"),
            reservation: LogReservation::new(dimensions, 0, 0, true).0,
            stream: Box::default(),
        }
    }

    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    /// Returns the path as sent to clients.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn reservation(&self) -> &LogReservation {
        &self.reservation
    }

    /// Requires that the pages up to a position are reserved soon; [`LogFiles::extend`] starts it.
    pub(crate) fn require(&mut self, position: i64) {
        self.reservation.require(position);
    }

    /// Sets the stream that error texts name.
    pub(crate) fn set_stream(&mut self, session_id: i32, stream_id: i32, channel: &str) {
        self.stream =
            format!("stream={stream_id} session-id={session_id} channel={channel}").into();
    }

    /// Handles the outcome of a reservation. Returns what is to be recorded about it.
    pub(crate) fn on_reserved(
        &mut self,
        outcome: &ReservationOutcome,
        now_ns: i64,
    ) -> Option<SpaceChange> {
        let is_reserved = outcome.result.is_ok();
        if !self.reservation.on_done(outcome.to, is_reserved, now_ns) {
            return None;
        }
        let origin = self.key.origin();
        Some(match &outcome.result {
            Ok(()) => SpaceChange {
                origin,
                record: storage_errors::has_space_again(&self.stream),
            },
            Err(error) => self.shortage(error, 0),
        })
    }

    /// Returns the record of a shortage that begins; `kept` bytes are left to clients.
    fn shortage(&self, error: &MemoryError, kept: u64) -> SpaceChange {
        let origin = self.key.origin();
        let record = match error {
            MemoryError::StorageFull { path, shortage } => storage_errors::cannot_extend(
                path.parent().unwrap_or(path),
                &self.stream,
                origin,
                &InsufficientSpace {
                    requested: self.reservation.unreserved().saturating_add(kept),
                    ..*shortage
                },
                kept,
            ),
            other => Failure::generic(format!(
                "{} waits because the next pages of its log cannot be reserved: {other}",
                self.stream
            )),
        };
        SpaceChange { origin, record }
    }
}

/// The beginning or the end of a shortage of space for the pages of a log in use.
#[derive(Debug)]
pub(crate) struct SpaceChange {
    pub(crate) origin: RequestOrigin,
    /// Entry for the error log.
    pub(crate) record: Failure,
}

/// Outcome of a reservation that [`LogFiles::extend`] started.
#[derive(Debug)]
pub(crate) struct ReservationOutcome {
    pub(crate) log: LogKey,
    to: i64,
    result: Result<(), MemoryError>,
}

/// Completion of an operation on a log file.
#[derive(Debug)]
pub(crate) enum LogEvent {
    /// The file of a request was created, or could not be.
    Created(u64, Result<LogFile, Failure>),
    /// Pages of a file were reserved, or could not be.
    Reserved(ReservationOutcome),
}

/// Settings of log file creation.
#[derive(Debug, Clone)]
pub(crate) struct LogFileSettings {
    pub(crate) directory: PathBuf,
    /// True if the usable space is checked before creation.
    pub(crate) check_storage: bool,
    /// Usable space, in bytes, at or below which a warning is recorded.
    pub(crate) low_storage_warning: u64,
}

/// All log files of the driver.
#[doc(alias = "LogFactory")]
#[derive(Debug)]
pub(crate) struct LogFiles {
    storage: Arc<dyn Storage>,
    worker: Box<dyn FileWorker>,
    settings: LogFileSettings,
    next_ticket: u64,
    /// Files in creation, by ticket.
    creating: HashMap<u64, (LogKey, LogReservation)>,
    /// Requests that the worker has not completed.
    in_flight: usize,
    /// Bytes whose reservation is in flight; the file system may not report them as used yet.
    pending_bytes: u64,
    /// Shortages that are to be recorded.
    changes: Vec<SpaceChange>,
    retired: VecDeque<LogFile>,
    /// Files that are unmapped but could not be removed.
    undeleted: Vec<PathBuf>,
    bytes_mapped: Counter,
    failed_frees: Counter,
    errors: ErrorHandler,
}

/// Counters updated by [`LogFiles`].
#[derive(Debug)]
pub(crate) struct LogFileCounters {
    pub(crate) bytes_mapped: Counter,
    pub(crate) failed_frees: Counter,
}

impl LogFiles {
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        worker: Box<dyn FileWorker>,
        settings: LogFileSettings,
        counters: LogFileCounters,
        errors: ErrorHandler,
    ) -> Self {
        Self {
            storage,
            worker,
            settings,
            next_ticket: 0,
            creating: HashMap::new(),
            in_flight: 0,
            pending_bytes: 0,
            changes: Vec::new(),
            retired: VecDeque::new(),
            undeleted: Vec::new(),
            bytes_mapped: counters.bytes_mapped,
            failed_frees: counters.failed_frees,
            errors,
        }
    }

    /// Starts to create `<folder>/<id>.logbuffer`, zeroed and with its first pages reserved. Returns the ticket under
    /// which `poll` returns the file.
    pub(crate) fn request(
        &mut self,
        request: &LogRequest,
        now_epoch_ms: i64,
    ) -> Result<u64, Failure> {
        let LogRequest {
            key, dimensions, ..
        } = *request;
        let length = dimensions.file_length as u64;
        let directory = self.directory(key);
        if self.settings.check_storage {
            self.check_space(&directory, length, key.origin(), now_epoch_ms)?;
        }
        let (reservation, first) = request.reservation();
        let is_whole = reservation.position() == i64::MAX;
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.in_flight += 1;
        self.pending_bytes += first.length();
        let file = FileRequest {
            path: directory.join(format!("{}.logbuffer", key.id)),
            length,
            options: CreateOptions {
                reserve: is_whole,
                populate: !request.sparse,
            },
            ranges: if is_whole { Vec::new() } else { first.ranges },
            origin: key.origin(),
        };
        self.creating.insert(ticket, (key, reservation));
        self.worker.create(ticket, file);
        Ok(ticket)
    }

    /// Starts to reserve more pages of a file if they are required. Called on each poll of its stream; cheap if there
    /// is nothing to do.
    pub(crate) fn extend(&mut self, file: &mut LogFile, now: Now) {
        let Some(step) = file.reservation.next_step(now.nanos) else {
            return;
        };
        if let Err((kept, shortage)) = self.check_extension(file.key, step.length()) {
            if file.reservation.on_done(step.to, false, now.nanos) {
                let path = file.path.clone();
                let error = MemoryError::StorageFull { path, shortage };
                self.changes.push(file.shortage(&error, kept));
            }
            return;
        }
        self.in_flight += 1;
        self.pending_bytes += step.length();
        self.worker.reserve(ReserveRequest {
            log: file.key,
            path: file.path.clone(),
            region: file.region.clone(),
            to: step.to,
            ranges: step.ranges,
            origin: file.key.origin(),
        });
    }

    /// Returns a shortage of space that is to be recorded.
    pub(crate) fn take_change(&mut self) -> Option<SpaceChange> {
        self.changes.pop()
    }

    /// Returns the size in bytes of the file system; `None` if it is unlimited or unknown.
    pub(crate) fn capacity(&self) -> Option<u64> {
        self.storage.capacity(&self.settings.directory)
    }

    fn directory(&self, key: LogKey) -> PathBuf {
        self.settings.directory.join(key.folder.name())
    }

    /// Returns true if creations, reservations or deletions are in flight.
    pub(crate) fn has_in_flight(&self) -> bool {
        self.in_flight > 0
    }

    /// Returns true if requests are in flight, or a file or the record of a shortage waits for the next duty cycle.
    pub(crate) fn has_tasks(&self) -> bool {
        self.has_in_flight() || !self.retired.is_empty() || !self.changes.is_empty()
    }

    /// Returns the next completion.
    pub(crate) fn poll(&mut self) -> Option<LogEvent> {
        while self.in_flight > 0 {
            let result = self.worker.poll()?;
            self.in_flight -= 1;
            match result {
                FileResult::Created {
                    ticket,
                    path,
                    reserved,
                    result,
                } => {
                    self.pending_bytes -= reserved;
                    return Some(LogEvent::Created(
                        ticket,
                        self.created(ticket, path, result),
                    ));
                }
                FileResult::Reserved {
                    log,
                    to,
                    length,
                    result,
                } => {
                    self.pending_bytes -= length;
                    return Some(LogEvent::Reserved(ReservationOutcome { log, to, result }));
                }
                FileResult::Deleted {
                    path,
                    length,
                    result,
                } => {
                    self.bytes_mapped.add(-(length as i64));
                    if result.is_err() {
                        self.failed_frees.increment();
                        self.undeleted.push(path);
                    }
                }
            }
        }
        None
    }

    fn created(
        &mut self,
        ticket: u64,
        path: PathBuf,
        result: Result<Region, MemoryError>,
    ) -> Result<LogFile, Failure> {
        let creating = self.creating.remove(&ticket);
        let region = result.map_err(|error| creation_failure(&path, &error))?;
        let Some((key, reservation)) = creating else {
            return Err(Failure::generic(format!(
                "{} was created without a request",
                path.display()
            )));
        };
        self.bytes_mapped.add(region.len() as i64);
        let name = path.to_string_lossy().into_owned();
        Ok(LogFile {
            key,
            path,
            name,
            region,
            reservation,
            stream: Box::default(),
        })
    }

    /// Takes a log file back. A later call of `delete_retired` deletes it.
    pub(crate) fn retire(&mut self, file: LogFile) {
        self.retired.push_back(file);
    }

    /// Starts the deletion of up to `limit` retired files; returns their number.
    pub(crate) fn delete_retired(&mut self, limit: usize) -> usize {
        let count = limit.min(self.retired.len());
        for file in self.retired.drain(..count) {
            self.in_flight += 1;
            self.worker.delete(file.path, Some(file.region));
        }
        count
    }

    /// Retries failed deletions. Called once per timer interval.
    pub(crate) fn retry_deletions(&mut self) {
        for path in self.undeleted.drain(..) {
            self.in_flight += 1;
            self.worker.delete(path, None);
        }
    }
}

fn creation_failure(path: &Path, error: &MemoryError) -> Failure {
    match error {
        // The text is the same for every log of a directory, so that the distinct error log counts one entry.
        MemoryError::StorageFull { shortage, .. } => {
            storage_errors::insufficient_storage(path.parent().unwrap_or(path), shortage)
        }
        other => Failure::generic(format!("cannot create {}: {other}", path.display())),
    }
}
