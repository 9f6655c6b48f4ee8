//! The log buffer files of the Aeron directory: created reserved and checked for space, deleted in small portions.
//!
//! `create` brings a file into being, `retire` takes one back when nobody in the driver uses it any more, and
//! `free_some` (once each duty cycle) unmaps and deletes a few of those. Bytes mapped are counted (system counter 35),
//! failed deletions too (17); a failed deletion is tried again later.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taran_core::counters::Counter;
use taran_core::error_log::ErrorHandler;
use taran_core::memory::{CreateOptions, MemoryError, Region, Storage};
use taran_protocol::error_code::ErrorCode;
use taran_protocol::log::LogSpec;

use super::failure::Failure;

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

/// A mapped log file. Goes back through [`LogFiles::retire`], so that it is counted and deleted.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    name: String,
    region: Region,
}

impl LogFile {
    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    /// The path as clients are told.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn length(&self) -> i64 {
        self.region.len() as i64
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
    settings: LogFileSettings,
    retired: VecDeque<LogFile>,
    bytes_mapped: Counter,
    failed_frees: Counter,
    errors: ErrorHandler,
}

impl LogFiles {
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        settings: LogFileSettings,
        bytes_mapped: Counter,
        failed_frees: Counter,
        errors: ErrorHandler,
    ) -> Self {
        Self {
            storage,
            settings,
            retired: VecDeque::new(),
            bytes_mapped,
            failed_frees,
            errors,
        }
    }

    /// Creates `<folder>/<id>.logbuffer` of the length that `spec` calls for, zeroed, its pages reserved.
    ///
    /// `spec.is_sparse` only decides whether the pages are touched at once (false) or when first used.
    pub(crate) fn create(
        &mut self,
        folder: LogFolder,
        id: i64,
        spec: &LogSpec,
        now_epoch_ms: i64,
    ) -> Result<LogFile, Failure> {
        let length = spec.file_length() as u64;
        let directory = self.settings.directory.join(folder.name());
        if self.settings.check_storage {
            self.check_space(&directory, length, now_epoch_ms)?;
        }
        let path = directory.join(format!("{id}.logbuffer"));
        let options = CreateOptions {
            reserve: true,
            populate: !spec.is_sparse,
        };
        let region = self
            .storage
            .create(&path, length, options)
            .map_err(|error| creation_failure(&path, &error))?;
        self.bytes_mapped.add(length as i64);
        let name = path.to_string_lossy().into_owned();
        Ok(LogFile { path, name, region })
    }

    fn check_space(&self, directory: &Path, length: u64, now_epoch_ms: i64) -> Result<(), Failure> {
        let Ok(available) = self.storage.available(directory) else {
            // A file system that cannot tell is no reason to refuse; reserving the pages decides.
            return Ok(());
        };
        if available < length {
            return Err(no_space(directory, length, available));
        }
        if available <= self.settings.low_storage_warning {
            self.errors.on_error(
                now_epoch_ms,
                ErrorCode::StorageSpace.code(),
                &format!(
                    "WARNING: space is running low: threshold={} usable={available} path={}",
                    self.settings.low_storage_warning,
                    directory.display()
                ),
            );
        }
        Ok(())
    }

    /// Takes a log back. The file goes with one of the next calls of `free_some`.
    pub(crate) fn retire(&mut self, file: LogFile) {
        self.retired.push_back(file);
    }

    /// Deletes up to `limit` retired files; returns how many went.
    pub(crate) fn free_some(&mut self, limit: usize) -> usize {
        let mut freed = 0;
        for _ in 0..limit.min(self.retired.len()) {
            let Some(file) = self.retired.pop_front() else {
                break;
            };
            match self.storage.remove(&file.path) {
                // Somebody else's deletion serves as well.
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    self.failed_frees.increment();
                    self.retired.push_back(file);
                }
                _ => {
                    self.bytes_mapped.add(-file.length());
                    freed += 1;
                }
            }
        }
        freed
    }
}

fn creation_failure(path: &Path, error: &MemoryError) -> Failure {
    match error {
        MemoryError::StorageFull {
            requested,
            available,
            ..
        } => no_space(path, *requested, *available),
        other => Failure::generic(format!("cannot create {}: {other}", path.display())),
    }
}

fn no_space(path: &Path, needed: u64, available: u64) -> Failure {
    Failure::new(
        ErrorCode::StorageSpace,
        format!(
            "insufficient usable storage for a new log: needed={needed} available={available} bytes in {}; use a \
             smaller term-length, or give the file system more room (a container: --shm-size)",
            path.display()
        ),
    )
}
