// SPDX-License-Identifier: Apache-2.0
//! The files of an archive that does not run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use taran_storage::{Disk, DiskLock};

use super::super::catalog::{
    Catalog, CatalogFile, CatalogOptions, CatalogReport, Change, Entry, UpdateError,
};
use super::super::checksum::Checksum;
use super::super::layout::RecordingLayout;
use super::super::mark::{LIVENESS_TIMEOUT_MS, MarkFileError, MarkFileInfo};
use super::super::segments::ScanTarget;
use super::super::{CATALOG_FILE, EntryState};
use super::ToolError;

/// The files of an archive that does not run, locked against a start of one of ours while this value exists.
#[derive(Debug)]
pub struct StoppedArchive {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) directory: PathBuf,
    pub(super) catalog: Catalog,
    file: CatalogFile,
    report: CatalogReport,
    _lock: DiskLock,
}

impl StoppedArchive {
    /// Opens the files in a directory. Repairs of the catalog are in [`report`](Self::report).
    ///
    /// # Errors
    ///
    /// An archive runs there, there is none, or its catalog cannot be used.
    pub fn open(
        disk: &Arc<dyn Disk>,
        directory: &Path,
        options: CatalogOptions,
        now_ms: i64,
    ) -> Result<Self, ToolError> {
        // A missing directory or catalog is told as such, and nothing is created.
        let _ = CatalogFile::read(&**disk, directory, options)?;
        let lock = disk.try_lock(directory).map_err(|error| {
            if error.is_locked() {
                ToolError::Locked {
                    directory: directory.to_path_buf(),
                }
            } else {
                error.into()
            }
        })?;
        match MarkFileInfo::read(&**disk, directory) {
            Ok((path, info, _)) => {
                let age_ms = now_ms.saturating_sub(info.activity_timestamp);
                if !info.is_released() && !info.has_lock() && age_ms < LIVENESS_TIMEOUT_MS {
                    return Err(ToolError::Active {
                        path,
                        pid: info.pid,
                        age_ms,
                    });
                }
            }
            Err(MarkFileError::Disk(error)) if error.is_not_found() => (),
            Err(error) => return Err(error.into()),
        }
        let (file, catalog, report) = CatalogFile::open(disk, directory, options)?;
        Ok(Self {
            disk: Arc::clone(disk),
            directory: directory.to_path_buf(),
            catalog,
            file,
            report,
            _lock: lock,
        })
    }

    /// Returns the catalog.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Returns what opening the catalog found and repaired.
    #[must_use]
    pub fn report(&self) -> &CatalogReport {
        &self.report
    }

    /// Returns the path of the catalog.
    #[must_use]
    pub fn catalog_path(&self) -> PathBuf {
        self.directory.join(CATALOG_FILE)
    }

    /// Marks a recording as INVALID.
    ///
    /// # Errors
    ///
    /// There is no such recording, or it was purged.
    pub fn mark_invalid(&mut self, recording_id: i64) -> Result<(), ToolError> {
        let change = self.catalog.set_state(recording_id, EntryState::Invalid)?;
        self.apply(&change)
    }

    /// Marks an INVALID recording as VALID.
    ///
    /// # Errors
    ///
    /// There is no such recording, or it was purged.
    pub fn mark_valid(&mut self, recording_id: i64) -> Result<(), ToolError> {
        let change = self.catalog.set_state(recording_id, EntryState::Valid)?;
        self.apply(&change)
    }

    pub(super) fn apply(&mut self, change: &Change) -> Result<(), ToolError> {
        Ok(self.file.apply(change)?)
    }

    /// Returns the ids of all entries, or the given one.
    pub(super) fn ids(&self, recording_id: Option<i64>) -> Result<Vec<i64>, ToolError> {
        match recording_id {
            Some(recording_id) => self
                .catalog
                .entry(recording_id)
                .map(|_| vec![recording_id])
                .ok_or_else(|| UpdateError::Unknown { recording_id }.into()),
            None => Ok(self
                .catalog
                .entries()
                .iter()
                .map(|entry| entry.descriptor().recording_id)
                .collect()),
        }
    }

    pub(super) fn target(
        &self,
        layout: RecordingLayout,
        entry: &Entry,
        checksum: Option<Checksum>,
    ) -> ScanTarget<'_> {
        ScanTarget {
            disk: &*self.disk,
            directory: &self.directory,
            layout,
            stream_id: entry.descriptor().stream_id,
            checksum,
        }
    }
}
