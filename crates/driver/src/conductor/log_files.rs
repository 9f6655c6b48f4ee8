//! Log buffer files of the Aeron directory.
//!
//! `request` starts the creation of a file after a check of the usable space, `poll` returns the created file, `retire`
//! takes it back when the driver has stopped using it, and `delete_retired` (once per duty cycle) starts the deletion
//! of a few retired files. Counted are mapped bytes (system counter 35) and failed deletions (17); the next timer tick
//! retries a failed deletion.

mod space;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taran_core::counters::Counter;
use taran_core::error_log::ErrorHandler;
use taran_core::memory::{CreateOptions, MemoryError, Region, Storage};

use super::failure::Failure;
use super::file_worker::{FileRequest, FileResult, FileWorker, RequestOrigin};
use super::storage_errors;

/// Subfolder of the Aeron directory for a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Request to create a log file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogRequest {
    pub(crate) folder: LogFolder,
    /// Registration id of the publication or correlation id of the image.
    pub(crate) id: i64,
    /// Length of the file in bytes.
    pub(crate) length: usize,
    /// True if pages are populated on first use, false if at creation. They are reserved in both cases.
    pub(crate) sparse: bool,
}

/// A mapped log file. Returned with [`LogFiles::retire`], which keeps the byte count and deletes the file.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    name: String,
    region: Region,
}

impl LogFile {
    /// Creates a log file without a file, for tests.
    #[cfg(test)]
    pub(crate) fn detached() -> Self {
        Self {
            path: PathBuf::new(),
            name: String::new(),
            region: Region::anonymous(4096).expect("a page of memory"),
        }
    }

    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    /// Returns the path as sent to clients.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
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
    /// Requests that the worker has not completed.
    in_flight: usize,
    /// Bytes of files whose creation is in flight; the file system may not report them as used yet.
    pending_bytes: u64,
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
            in_flight: 0,
            pending_bytes: 0,
            retired: VecDeque::new(),
            undeleted: Vec::new(),
            bytes_mapped: counters.bytes_mapped,
            failed_frees: counters.failed_frees,
            errors,
        }
    }

    /// Starts to create `<folder>/<id>.logbuffer`, zeroed and with its pages reserved. Returns the ticket under which
    /// `poll` returns the file.
    pub(crate) fn request(
        &mut self,
        request: &LogRequest,
        now_epoch_ms: i64,
    ) -> Result<u64, Failure> {
        let length = request.length as u64;
        let directory = self.settings.directory.join(request.folder.name());
        let origin = match request.folder {
            LogFolder::Publications => RequestOrigin::Client,
            LogFolder::Images => RequestOrigin::Peer,
        };
        if self.settings.check_storage {
            self.check_space(&directory, length, origin, now_epoch_ms)?;
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.in_flight += 1;
        self.pending_bytes += length;
        let file = FileRequest {
            path: directory.join(format!("{}.logbuffer", request.id)),
            length,
            options: CreateOptions {
                // With storage checks disabled, a sparse log allocates only the pages that it uses.
                reserve: self.settings.check_storage || !request.sparse,
                populate: !request.sparse,
            },
            origin,
        };
        self.worker.create(ticket, file);
        Ok(ticket)
    }

    /// Returns true if creations or deletions are in flight.
    pub(crate) fn has_in_flight(&self) -> bool {
        self.in_flight > 0
    }

    /// Returns the next created file, or the reason why it could not be created.
    pub(crate) fn poll(&mut self) -> Option<(u64, Result<LogFile, Failure>)> {
        while self.in_flight > 0 {
            let result = self.worker.poll()?;
            self.in_flight -= 1;
            match result {
                FileResult::Created {
                    ticket,
                    path,
                    length,
                    result,
                } => {
                    self.pending_bytes -= length;
                    return Some((ticket, self.created(path, result)));
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
        path: PathBuf,
        result: Result<Region, MemoryError>,
    ) -> Result<LogFile, Failure> {
        let region = result.map_err(|error| creation_failure(&path, &error))?;
        self.bytes_mapped.add(region.len() as i64);
        let name = path.to_string_lossy().into_owned();
        Ok(LogFile { path, name, region })
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
