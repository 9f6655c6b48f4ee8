// SPDX-License-Identifier: Apache-2.0
//! Creating segment files.

use std::path::Path;

use taran_storage::{Disk, DiskError, DiskFile, OpenOptions};

use super::super::SyncLevel;
use super::super::side_file;
use super::name::SegmentName;
use super::scan::reserve;

/// Creates segment files with reserved space in one directory.
///
/// The next segment is reserved under another name, which Aeron ignores: an empty segment file behind an incomplete one
/// would be taken for the end of the recording after a crash. Recovery removes reserved files.
#[derive(Clone, Copy, Debug)]
pub struct SegmentCreator<'a> {
    /// The disk.
    pub disk: &'a dyn Disk,
    /// Directory of the archive.
    pub directory: &'a Path,
    /// The durability of a file that was created.
    pub sync: SyncLevel,
}

impl SegmentCreator<'_> {
    /// Reserves the space of a segment, so that [`create`](Self::create) cannot find the disk full.
    ///
    /// # Errors
    ///
    /// The disk is full or failed. Nothing is left behind.
    pub fn reserve(&self, name: SegmentName, length: i32) -> Result<(), DiskError> {
        let path = name.reserved_path(self.directory);
        match self.disk.remove_file(&path) {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => (),
        }
        let file = self.disk.open(&path, OpenOptions::create_new())?;
        let reserved = reserve(&*file, u64::from(length.unsigned_abs()));
        if reserved.is_err() {
            // The first error says more than this one.
            let _ = self.disk.remove_file(&path);
        }
        reserved
    }

    /// Creates a segment file, from the reserved one if there is one, and opens it for writing. An existing file with that
    /// name is used if it has only zeros, as one that was created before a crash; otherwise it is kept aside.
    ///
    /// # Errors
    ///
    /// The disk is full or failed.
    pub fn create(&self, name: SegmentName, length: i32) -> Result<Box<dyn DiskFile>, DiskError> {
        let path = name.path(self.directory);
        let len = u64::from(length.unsigned_abs());
        match self.disk.open(&path, OpenOptions::write()) {
            Ok(file) => {
                if side_file::last_nonzero(&*file, 0..file.len()?)?.is_none() {
                    reserve(&*file, len)?;
                    self.release(name)?;
                    return Ok(file);
                }
                side_file::keep_whole(self.disk, &path)?;
            }
            Err(error) if error.is_not_found() => (),
            Err(error) => return Err(error),
        }
        match self.disk.metadata(&name.reserved_path(self.directory)) {
            Ok(_) => (),
            Err(error) if error.is_not_found() => self.reserve(name, length)?,
            Err(error) => return Err(error),
        }
        self.disk
            .rename(&name.reserved_path(self.directory), &path)?;
        let file = self.disk.open(&path, OpenOptions::write())?;
        if let Some(kind) = self.sync.kind() {
            file.sync(kind)?;
            self.disk.sync_directory(self.directory)?;
        }
        Ok(file)
    }

    /// Gives the space of a reserved segment back.
    ///
    /// # Errors
    ///
    /// The disk failed.
    pub fn release(&self, name: SegmentName) -> Result<(), DiskError> {
        match self.disk.remove_file(&name.reserved_path(self.directory)) {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }
}
