// SPDX-License-Identifier: Apache-2.0
//! A simulated disk whose power is cut before a chosen write, sync or change of names.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use taran_sim::disk::{ProcessDisk, SimDisk, SimDiskOptions};
use taran_storage::{
    Advice, DirEntry, Disk, DiskError, DiskFile, DiskLock, Metadata, OpenOptions, Space, SyncKind,
};

/// The directory of the archive under test.
pub(super) const DIRECTORY: &str = "/archive";

/// A disk with a directory for an archive, as a process sees it.
#[derive(Clone, Debug)]
pub(super) struct CrashingDisk {
    sim: SimDisk,
    process: ProcessDisk,
    /// Operations until the power cut.
    left: Arc<AtomicU64>,
    /// The process is killed in place of the power cut.
    is_kill: bool,
}

impl CrashingDisk {
    /// Creates a disk with an empty durable directory.
    pub(super) fn new(seed: u64, torn_sectors: bool) -> Self {
        let options = SimDiskOptions {
            torn_sectors,
            ..SimDiskOptions::default()
        };
        let sim = SimDisk::new(seed, options);
        let process = sim.process();
        process.create_directory(Path::new(DIRECTORY)).unwrap();
        process.sync_directory(Path::new("/")).unwrap();
        Self {
            sim,
            process,
            left: Arc::new(AtomicU64::new(u64::MAX)),
            is_kill: false,
        }
    }

    /// Returns the same process, with a kill of it in place of a power cut.
    pub(super) fn with_kill(self) -> Self {
        Self {
            is_kill: true,
            ..self
        }
    }

    pub(super) fn sim(&self) -> &SimDisk {
        &self.sim
    }

    pub(super) fn disk(&self) -> Arc<dyn Disk> {
        Arc::new(self.clone())
    }

    fn crash(&self) {
        if self.is_kill {
            self.process.revoke_all();
        } else {
            self.sim.power_cut();
        }
    }

    /// Crashes before the operation with this number, from now.
    pub(super) fn crash_before(&self, operation: u64) {
        self.left.store(operation, Ordering::Relaxed);
    }

    /// Crashes now, and returns the disk for a new process.
    pub(super) fn restart(&self) -> Self {
        self.crash();
        Self {
            sim: self.sim.clone(),
            process: self.sim.process(),
            left: Arc::new(AtomicU64::new(u64::MAX)),
            is_kill: false,
        }
    }

    fn count(&self) {
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            self.crash();
        } else if left != u64::MAX {
            self.left.store(left - 1, Ordering::Relaxed);
        }
    }
}

impl Disk for CrashingDisk {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Box<dyn DiskFile>, DiskError> {
        if options.create != taran_storage::Create::Never {
            self.count();
        }
        let file = self.process.open(path, options)?;
        Ok(Box::new(CrashingFile {
            disk: self.clone(),
            file,
        }))
    }

    fn list(&self, directory: &Path) -> Result<Vec<DirEntry>, DiskError> {
        self.process.list(directory)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata, DiskError> {
        self.process.metadata(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.count();
        self.process.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        self.count();
        self.process.remove_file(path)
    }

    fn create_directory(&self, path: &Path) -> Result<(), DiskError> {
        self.count();
        self.process.create_directory(path)
    }

    fn remove_directory(&self, path: &Path) -> Result<(), DiskError> {
        self.count();
        self.process.remove_directory(path)
    }

    fn sync_directory(&self, directory: &Path) -> Result<(), DiskError> {
        self.count();
        self.process.sync_directory(directory)
    }

    fn space(&self, path: &Path) -> Result<Space, DiskError> {
        self.process.space(path)
    }

    fn try_lock(&self, path: &Path) -> Result<DiskLock, DiskError> {
        self.process.try_lock(path)
    }
}

#[derive(Debug)]
struct CrashingFile {
    disk: CrashingDisk,
    file: Box<dyn DiskFile>,
}

impl DiskFile for CrashingFile {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, DiskError> {
        self.file.read_at(buffer, offset)
    }

    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> Result<Option<usize>, DiskError> {
        self.file.read_cached_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), DiskError> {
        self.disk.count();
        self.file.write_at(bytes, offset)
    }

    fn write_vectored_at(
        &self,
        buffers: &mut [std::io::IoSlice<'_>],
        offset: u64,
    ) -> Result<(), DiskError> {
        self.disk.count();
        self.file.write_vectored_at(buffers, offset)
    }

    fn len(&self) -> Result<u64, DiskError> {
        self.file.len()
    }

    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.disk.count();
        self.file.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        self.disk.count();
        self.file.allocate(offset, len)
    }

    fn punch_hole(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        self.disk.count();
        self.file.punch_hole(offset, len)
    }

    fn sync(&self, kind: SyncKind) -> Result<(), DiskError> {
        self.disk.count();
        self.file.sync(kind)
    }

    fn advise(&self, offset: u64, len: u64, advice: Advice) -> Result<(), DiskError> {
        self.file.advise(offset, len, advice)
    }
}

/// Returns the path of a file of the archive.
pub(super) fn path(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

/// Returns the contents of a file of the archive.
pub(super) fn contents(disk: &dyn Disk, name: &str) -> Vec<u8> {
    let file = disk.open(&path(name), OpenOptions::read()).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}
