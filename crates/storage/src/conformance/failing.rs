// SPDX-License-Identifier: Apache-2.0
//! A disk whose next operations fail.

use std::io::IoSlice;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::{
    Advice, DirEntry, Disk, DiskError, DiskFile, DiskLock, ErrorKind, Metadata, OpenOptions,
    Operation, Space, SyncKind,
};

/// Numbers of operations that fail next, with EIO and without effect.
#[derive(Debug, Default)]
pub struct Failures {
    /// Writes.
    pub writes: AtomicUsize,
    /// Syncs.
    pub syncs: AtomicUsize,
    /// Writes, syncs and readings of metadata that panic.
    pub panics: AtomicUsize,
    /// Syncs executed, failed ones included.
    pub syncs_executed: AtomicUsize,
    /// Readings of metadata wait while this is locked, as for a device that does not answer.
    pub gate: Mutex<()>,
}

impl Failures {
    fn panic(&self) {
        let counter = &self.panics;
        let panics = counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| {
            count.checked_sub(1)
        });
        assert!(panics.is_err(), "a panic on request");
    }

    fn take(counter: &AtomicUsize, operation: Operation, path: &Path) -> Result<(), DiskError> {
        let failing = counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| {
            count.checked_sub(1)
        });
        match failing {
            Ok(_) => Err(DiskError::new(operation, path, ErrorKind::Io { code: 5 })),
            Err(_) => Ok(()),
        }
    }
}

/// Wraps a disk; operations fail on request.
#[derive(Debug)]
pub struct FailingDisk {
    inner: Arc<dyn Disk>,
    failures: Arc<Failures>,
}

impl FailingDisk {
    /// Wraps a disk.
    pub fn new(inner: Arc<dyn Disk>) -> Self {
        Self {
            inner,
            failures: Arc::default(),
        }
    }

    /// Returns the failures to come.
    pub fn failures(&self) -> Arc<Failures> {
        Arc::clone(&self.failures)
    }
}

impl Disk for FailingDisk {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Box<dyn DiskFile>, DiskError> {
        Ok(Box::new(FailingFile {
            inner: self.inner.open(path, options)?,
            failures: self.failures(),
        }))
    }

    fn list(&self, directory: &Path) -> Result<Vec<DirEntry>, DiskError> {
        self.inner.list(directory)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata, DiskError> {
        drop(
            self.failures
                .gate
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        self.failures.panic();
        self.inner.metadata(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.inner.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        self.inner.remove_file(path)
    }

    fn create_directory(&self, path: &Path) -> Result<(), DiskError> {
        self.inner.create_directory(path)
    }

    fn remove_directory(&self, path: &Path) -> Result<(), DiskError> {
        self.inner.remove_directory(path)
    }

    fn sync_directory(&self, directory: &Path) -> Result<(), DiskError> {
        self.inner.sync_directory(directory)
    }

    fn space(&self, path: &Path) -> Result<Space, DiskError> {
        self.inner.space(path)
    }

    fn try_lock(&self, path: &Path) -> Result<DiskLock, DiskError> {
        self.inner.try_lock(path)
    }
}

#[derive(Debug)]
struct FailingFile {
    inner: Box<dyn DiskFile>,
    failures: Arc<Failures>,
}

impl DiskFile for FailingFile {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, DiskError> {
        self.inner.read_at(buffer, offset)
    }

    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> Result<Option<usize>, DiskError> {
        self.inner.read_cached_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), DiskError> {
        self.failures.panic();
        Failures::take(&self.failures.writes, Operation::Write, self.path())?;
        self.inner.write_at(bytes, offset)
    }

    fn write_vectored_at(&self, buffers: &mut [IoSlice<'_>], offset: u64) -> Result<(), DiskError> {
        self.failures.panic();
        Failures::take(&self.failures.writes, Operation::Write, self.path())?;
        self.inner.write_vectored_at(buffers, offset)
    }

    fn len(&self) -> Result<u64, DiskError> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.inner.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        self.inner.allocate(offset, len)
    }

    fn punch_hole(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        self.inner.punch_hole(offset, len)
    }

    fn sync(&self, kind: SyncKind) -> Result<(), DiskError> {
        self.failures.panic();
        self.failures.syncs_executed.fetch_add(1, Ordering::SeqCst);
        Failures::take(&self.failures.syncs, Operation::Sync, self.path())?;
        self.inner.sync(kind)
    }

    fn advise(&self, offset: u64, len: u64, advice: Advice) -> Result<(), DiskError> {
        self.inner.advise(offset, len, advice)
    }
}
