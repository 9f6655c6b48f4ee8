// SPDX-License-Identifier: Apache-2.0
//! A simulated disk: durable is only what was synced.
//!
//! A [`SimDisk`] belongs to a host and lives as long as it. Processes use it through a [`ProcessDisk`] each, which is a
//! [`Disk`], and which [`HostEnv::disk`](crate::HostEnv::disk) returns. The end of a process ([`ProcessDisk::revoke_all`]) makes its handles and locks invalid and keeps all written
//! bytes: they are in the page cache. A power cut ([`SimDisk::power_cut`]) ends all processes and loses any part of what was
//! not synced: sectors in any order, torn ones, lengths, and names whose directory was not synced.
//!
//! Everything random comes from the seed.
//!
//! ```
//! use std::path::Path;
//! use taran_sim::disk::{SimDisk, SimDiskOptions};
//! use taran_storage::{Disk, OpenOptions, SyncKind};
//!
//! let disk = SimDisk::new(7, SimDiskOptions::default());
//! let process = disk.process();
//! let path = Path::new("/log");
//! let file = process.open(path, OpenOptions::create_new()).unwrap();
//! file.write_at(b"record", 0).unwrap();
//! file.sync(SyncKind::Data).unwrap();
//! process.sync_directory(Path::new("/")).unwrap();
//!
//! disk.power_cut();
//! assert!(file.write_at(b"more", 6).is_err());
//! let file = disk.process().open(path, OpenOptions::read()).unwrap();
//! assert_eq!(6, file.len().unwrap());
//! ```

mod contents;
mod faults;
mod handle;
mod names;
mod state;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use taran_storage::{
    DirEntry, Disk, DiskError, DiskFile, DiskLock, FileKind, InlineQueue, Metadata, OpenOptions,
    Operation, Space,
};

pub use faults::{DiskFaults, DiskSpeed, DiskTimes};

use handle::{LockGuard, SimFile};
use state::{ProcessId, State};

/// Options of a [`SimDisk`].
#[derive(Clone, Copy, Debug)]
pub struct SimDiskOptions {
    /// Bytes that the device writes at once: 512 or 4096.
    pub sector_bytes: usize,
    /// A power cut can also leave a mixture of old and new bytes within a sector.
    pub torn_sectors: bool,
    /// Size in bytes.
    pub capacity: u64,
}

impl Default for SimDiskOptions {
    fn default() -> Self {
        Self {
            sector_bytes: 512,
            torn_sectors: true,
            capacity: 1 << 40,
        }
    }
}

/// The disk of a host. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct SimDisk(Arc<Mutex<State>>);

impl SimDisk {
    /// Creates an empty disk.
    ///
    /// # Panics
    ///
    /// If the sector is not of 512 or 4096 bytes.
    pub fn new(seed: u64, options: SimDiskOptions) -> Self {
        assert!(
            [512, 4096].contains(&options.sector_bytes),
            "sector_bytes={} is neither 512 nor 4096",
            options.sector_bytes
        );
        Self(Arc::new(Mutex::new(State::new(seed, options))))
    }

    /// Returns the disk for a new process.
    pub fn process(&self) -> ProcessDisk {
        let process = self.lock().start_process();
        ProcessDisk {
            disk: self.clone(),
            process,
        }
    }

    /// Ends all processes and loses any part of what was not synced.
    pub fn power_cut(&self) {
        self.lock().power_cut();
    }

    /// Sets the probabilities of faults.
    pub fn set_faults(&self, faults: DiskFaults) {
        self.lock().faults = faults;
    }

    /// Changes the probabilities of faults.
    pub fn change_faults(&self, change: impl FnOnce(&mut DiskFaults)) {
        change(&mut self.lock().faults);
    }

    /// Sets the durations of queued operations.
    pub fn set_speed(&self, speed: DiskSpeed) {
        self.lock().speed = speed;
    }

    /// Sets the size in bytes. If files occupy more, there is no space until files are removed or it grows again.
    pub fn set_capacity(&self, capacity: u64) {
        self.lock().capacity = capacity;
    }

    /// Gives the disk its original size.
    pub fn restore_capacity(&self) {
        let mut state = self.lock();
        state.capacity = state.original_capacity();
    }

    /// Leaves this number of free bytes, until [`restore_capacity`](Self::restore_capacity).
    pub fn fill(&self, left: u64) {
        let mut state = self.lock();
        state.capacity = state.used().saturating_add(left);
    }

    /// Ends all faults: capacity and durations are those of the start, and no operation fails. What faults have done to
    /// files stays.
    pub fn end_faults(&self) {
        self.lock().end_faults();
    }

    /// Returns the bytes that files occupy, removed ones that are open included.
    pub fn used(&self) -> u64 {
        self.lock().used()
    }

    /// Fails the next operation of a kind: [`Operation::Read`], [`Operation::Write`], [`Operation::Sync`] or
    /// [`Operation::SyncDirectory`], with EIO.
    pub fn fail_next(&self, operation: Operation) {
        self.lock().forced.push(operation);
    }

    /// Flips a bit of a random byte of some file. Returns false if there was none at the place tried.
    pub fn rot(&self) -> bool {
        self.lock().rot()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The disk as one process sees it. Clones belong to the same process.
#[derive(Clone, Debug)]
pub struct ProcessDisk {
    disk: SimDisk,
    process: ProcessId,
}

impl ProcessDisk {
    /// Ends the process: its files and locks are closed, and each later call on them or on this disk fails. Written bytes
    /// stay in the page cache.
    pub fn revoke_all(&self) {
        self.disk.lock().end_process(self.process);
    }

    /// Returns the disk's durations, for a queue over a disk that wraps this one.
    #[must_use]
    pub fn times(&self) -> DiskTimes {
        DiskTimes(self.disk.clone())
    }

    /// Returns a queue over this disk with the disk's durations.
    pub fn queue(&self, workers: usize, depth: usize) -> InlineQueue<DiskTimes> {
        let disk: Arc<dyn Disk> = Arc::new(self.clone());
        InlineQueue::new(&disk, workers, depth, self.times())
    }

    /// Runs an operation of this process; gives its error operation and path.
    fn run<T>(
        &self,
        operation: Operation,
        path: &Path,
        call: impl FnOnce(&mut State) -> Result<T, taran_storage::ErrorKind>,
    ) -> Result<T, DiskError> {
        let mut state = self.disk.lock();
        state
            .check_process(self.process)
            .and_then(|()| call(&mut state))
            .map_err(|kind| DiskError::new(operation, path, kind))
    }
}

impl Disk for ProcessDisk {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Box<dyn DiskFile>, DiskError> {
        let handle = self.run(Operation::Open, path, |state| {
            state.open(self.process, path, options)
        })?;
        Ok(Box::new(SimFile::new(
            self.disk.clone(),
            handle,
            path,
            options,
        )))
    }

    fn list(&self, directory: &Path) -> Result<Vec<DirEntry>, DiskError> {
        self.run(Operation::List, directory, |state| {
            let id = state.names.find(directory)?;
            let entries = &state.names.directory(id)?.entries;
            let kind = |id| match state.names.is_directory(id) {
                true => FileKind::Directory,
                false => FileKind::File,
            };
            Ok(entries
                .iter()
                .map(|(name, id)| DirEntry::new(name.clone(), kind(*id)))
                .collect())
        })
    }

    fn metadata(&self, path: &Path) -> Result<Metadata, DiskError> {
        self.run(Operation::Metadata, path, |state| {
            let id = state.names.find(path)?;
            Ok(match state.names.file(id) {
                Ok(contents) => Metadata::new(FileKind::File, contents.len()),
                Err(_) => Metadata::new(FileKind::Directory, 0),
            })
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.run(Operation::Rename, from, |state| state.rename(from, to))
    }

    fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        self.run(Operation::Remove, path, |state| state.remove_file(path))
    }

    fn create_directory(&self, path: &Path) -> Result<(), DiskError> {
        self.run(Operation::CreateDirectory, path, |state| {
            state.create_directory(path)
        })
    }

    fn remove_directory(&self, path: &Path) -> Result<(), DiskError> {
        self.run(Operation::Remove, path, |state| {
            state.remove_directory(path)
        })
    }

    fn sync_directory(&self, directory: &Path) -> Result<(), DiskError> {
        self.run(Operation::SyncDirectory, directory, |state| {
            state.sync_directory(directory)
        })
    }

    fn space(&self, path: &Path) -> Result<Space, DiskError> {
        self.run(Operation::Space, path, |state| {
            state.names.find(path)?;
            Ok(Space::new(state.free(), state.capacity))
        })
    }

    fn try_lock(&self, path: &Path) -> Result<DiskLock, DiskError> {
        let (node, number) = self.run(Operation::Lock, path, |state| {
            state.try_lock(self.process, path)
        })?;
        Ok(DiskLock::new(LockGuard {
            disk: self.disk.clone(),
            node,
            number,
        }))
    }
}
