//! The log buffer files of the Aeron directory: checked for space, made reserved, deleted in small portions.
//!
//! `request` asks for a file, `poll` brings it, `retire` takes it back when nobody in the driver uses it any more, and
//! `free_some` (once each duty cycle) sends a few of those to be deleted. Bytes mapped are counted (system counter 35),
//! failed deletions too (17); a failed deletion is tried again with the next timer.

mod room;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taran_core::counters::Counter;
use taran_core::error_log::ErrorHandler;
use taran_core::memory::{CreateOptions, MemoryError, Region, Storage};

use super::failure::Failure;
use super::file_worker::{AskedBy, FileRequest, FileResult, FileWorker};
use super::storage_space;

/// Which folder of the Aeron directory a log lives in.
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

/// A log file to be made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogRequest {
    pub(crate) folder: LogFolder,
    /// Registration id of the publication, correlation id of the image.
    pub(crate) id: i64,
    /// Of the file, in bytes.
    pub(crate) length: usize,
    /// Whether the pages are touched when they are first used (true) or at once. They are reserved in any case.
    pub(crate) sparse: bool,
}

/// A mapped log file. Goes back through [`LogFiles::retire`], so that it is counted and deleted.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    name: String,
    region: Region,
}

impl LogFile {
    /// Of no file, for tests.
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

    /// The path as clients are told.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// How log files are made.
#[derive(Debug, Clone)]
pub(crate) struct LogFileSettings {
    pub(crate) directory: PathBuf,
    /// Compare the length with the usable space first.
    pub(crate) check_storage: bool,
    /// Usable space, in bytes, at or below which a warning is recorded.
    pub(crate) low_storage_warning: u64,
}

/// All log files of the driver.
#[derive(Debug)]
pub(crate) struct LogFiles {
    storage: Arc<dyn Storage>,
    worker: Box<dyn FileWorker>,
    settings: LogFileSettings,
    next_ticket: u64,
    /// Results that are still to come from the worker.
    under_way: usize,
    /// Bytes of files that were asked for and are not made yet: the file system may not miss them so far.
    promised: u64,
    retired: VecDeque<LogFile>,
    /// Files that are unmapped and could not be removed.
    stuck: Vec<PathBuf>,
    bytes_mapped: Counter,
    failed_frees: Counter,
    errors: ErrorHandler,
}

/// The counters that log files move.
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
            under_way: 0,
            promised: 0,
            retired: VecDeque::new(),
            stuck: Vec::new(),
            bytes_mapped: counters.bytes_mapped,
            failed_frees: counters.failed_frees,
            errors,
        }
    }

    /// Asks for `<folder>/<id>.logbuffer`, zeroed, its pages reserved. The file comes out of `poll` under the ticket
    /// that is returned.
    pub(crate) fn request(
        &mut self,
        request: &LogRequest,
        now_epoch_ms: i64,
    ) -> Result<u64, Failure> {
        let length = request.length as u64;
        let directory = self.settings.directory.join(request.folder.name());
        let asked_by = match request.folder {
            LogFolder::Publications => AskedBy::Client,
            LogFolder::Images => AskedBy::Peer,
        };
        if self.settings.check_storage {
            self.check_space(&directory, length, asked_by, now_epoch_ms)?;
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.under_way += 1;
        self.promised += length;
        let file = FileRequest {
            path: directory.join(format!("{}.logbuffer", request.id)),
            length,
            options: CreateOptions {
                // Where the operator has switched the checks off, a log that may be sparse takes the pages that it uses.
                reserve: self.settings.check_storage || !request.sparse,
                populate: !request.sparse,
            },
            asked_by,
        };
        self.worker.create(ticket, file);
        Ok(ticket)
    }

    /// Whether files are being made or deleted.
    pub(crate) fn is_under_way(&self) -> bool {
        self.under_way > 0
    }

    /// A file that was asked for, or why there is none.
    pub(crate) fn poll(&mut self) -> Option<(u64, Result<LogFile, Failure>)> {
        while self.under_way > 0 {
            let result = self.worker.poll()?;
            self.under_way -= 1;
            match result {
                FileResult::Created {
                    ticket,
                    path,
                    length,
                    result,
                } => {
                    self.promised -= length;
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
                        self.stuck.push(path);
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

    /// Takes a log back. The file goes with one of the next calls of `free_some`.
    pub(crate) fn retire(&mut self, file: LogFile) {
        self.retired.push_back(file);
    }

    /// Sends up to `limit` retired files to be deleted; returns how many.
    pub(crate) fn free_some(&mut self, limit: usize) -> usize {
        let count = limit.min(self.retired.len());
        for file in self.retired.drain(..count) {
            self.under_way += 1;
            self.worker.delete(file.path, Some(file.region));
        }
        count
    }

    /// Once per timer interval: tries again what could not be removed.
    pub(crate) fn retry_stuck(&mut self) {
        for path in self.stuck.drain(..) {
            self.under_way += 1;
            self.worker.delete(path, None);
        }
    }
}

fn creation_failure(path: &Path, error: &MemoryError) -> Failure {
    match error {
        // The same text for each log of a directory, so that the error log counts it instead of filling up.
        MemoryError::StorageFull { shortage, .. } => {
            storage_space::exhausted(path.parent().unwrap_or(path), shortage)
        }
        other => Failure::generic(format!("cannot create {}: {other}", path.display())),
    }
}
