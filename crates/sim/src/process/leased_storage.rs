// SPDX-License-Identifier: Apache-2.0
//! Storage of one process.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use taran_core::memory::{
    CreateOptions, DirectoryLock, InsufficientSpace, LockFile, LockProbe, MemoryError,
    MemoryStorage, Region, Storage, StoredFile,
};

use super::Lease;

/// The storage of a host, as long as the lease is valid. A region that was mapped before remains readable and writable;
/// locks are released.
#[derive(Clone, Debug)]
pub(super) struct LeasedStorage {
    storage: MemoryStorage,
    lease: Lease,
}

impl LeasedStorage {
    pub(super) fn new(storage: MemoryStorage, lease: Lease) -> Self {
        Self { storage, lease }
    }

    fn check(&self, operation: &'static str, path: &Path) -> Result<(), MemoryError> {
        self.lease.check().map_err(|source| MemoryError::Io {
            operation,
            path: path.to_path_buf(),
            source,
        })
    }
}

impl Storage for LeasedStorage {
    fn create(&self, path: &Path, len: u64, options: CreateOptions) -> Result<Region, MemoryError> {
        self.check("create", path)?;
        self.storage.create(path, len, options)
    }

    fn reserve(
        &self,
        path: &Path,
        region: &Region,
        offset: u64,
        len: u64,
    ) -> Result<(), MemoryError> {
        self.check("reserve pages of", path)?;
        self.storage.reserve(path, region, offset, len)
    }

    fn open(&self, path: &Path) -> Result<Region, MemoryError> {
        self.check("open", path)?;
        self.storage.open(path)
    }

    fn open_file(&self, path: &Path) -> io::Result<StoredFile> {
        self.lease.check()?;
        self.storage.open_file(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.lease.check()?;
        self.storage.remove(path)
    }

    fn available(&self, directory: &Path) -> io::Result<u64> {
        self.lease.check()?;
        self.storage.available(directory)
    }

    fn capacity(&self, directory: &Path) -> Option<u64> {
        self.storage.capacity(directory)
    }

    fn insufficient_space(&self, directory: &Path, requested: u64) -> InsufficientSpace {
        self.storage.insufficient_space(directory, requested)
    }

    fn exists(&self, path: &Path) -> bool {
        !self.lease.is_revoked() && self.storage.exists(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.lease.check()?;
        self.storage.create_dir_all(path)
    }

    fn try_lock(&self, directory: &Path) -> io::Result<DirectoryLock> {
        self.lease.check()?;
        self.storage.try_lock(directory)
    }

    fn create_locked(&self, path: &Path, contents: &[u8]) -> io::Result<LockFile> {
        self.lease.check()?;
        let is_holder_dead = self.lease.revoked_flag();
        self.storage
            .create_locked_by(path, contents, is_holder_dead)
    }

    fn find_lock(&self, path: &Path) -> Option<LockProbe> {
        self.lease.check().ok()?;
        self.storage.find_lock(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.lease.check()?;
        self.storage.remove_dir(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.lease.check()?;
        self.storage.remove_dir_all(path)
    }

    fn write_file(&self, path: &Path, contents: &[u8]) -> io::Result<()> {
        self.lease.check()?;
        self.storage.write_file(path, contents)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        self.lease.check()?;
        self.storage.list(directory)
    }
}
