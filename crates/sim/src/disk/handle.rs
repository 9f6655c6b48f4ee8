// SPDX-License-Identifier: Apache-2.0
//! Open files and locks of a simulated disk.

use std::io::IoSlice;
use std::path::{Path, PathBuf};

use taran_storage::{
    ALIGNMENT, Advice, DiskError, DiskFile, ErrorKind, OpenOptions, Operation, SyncKind,
};

use super::SimDisk;
use super::names::NodeId;
use super::state::{HandleId, State};

/// Highest offset of a file.
const MAX_OFFSET: u64 = i64::MAX.cast_unsigned();

#[derive(Debug)]
pub(super) struct SimFile {
    disk: SimDisk,
    handle: HandleId,
    path: PathBuf,
    options: OpenOptions,
}

impl SimFile {
    pub(super) fn new(disk: SimDisk, handle: HandleId, path: &Path, options: OpenOptions) -> Self {
        Self {
            disk,
            handle,
            path: path.to_path_buf(),
            options,
        }
    }

    /// Runs an operation on a range that must be valid.
    fn run<T>(
        &self,
        operation: Operation,
        offset: u64,
        len: u64,
        call: impl FnOnce(&mut State) -> Result<T, ErrorKind>,
    ) -> Result<T, DiskError> {
        let is_valid = offset.checked_add(len).is_some_and(|end| end <= MAX_OFFSET);
        let result = if is_valid {
            call(&mut self.disk.lock())
        } else {
            Err(ErrorKind::InvalidRange {
                offset,
                len,
                limit: MAX_OFFSET,
            })
        };
        result.map_err(|kind| DiskError::new(operation, &self.path, kind))
    }

    fn check_writable(&self) -> Result<(), ErrorKind> {
        match self.options.write {
            true => Ok(()),
            false => Err(ErrorKind::NotWritable),
        }
    }

    /// Checks a direct transfer.
    fn check_aligned(&self, bytes: &[u8], offset: u64) -> Result<(), ErrorKind> {
        let is_aligned = |number: u64| number.is_multiple_of(ALIGNMENT as u64);
        if !self.options.direct
            || (is_aligned(offset)
                && is_aligned(bytes.len() as u64)
                && is_aligned(bytes.as_ptr().addr() as u64))
        {
            return Ok(());
        }
        Err(ErrorKind::Misaligned {
            offset,
            len: bytes.len(),
            alignment: ALIGNMENT,
        })
    }
}

impl DiskFile for SimFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, DiskError> {
        self.run(Operation::Read, offset, buffer.len() as u64, |state| {
            self.check_aligned(buffer, offset)?;
            state.read(self.handle, buffer, offset)
        })
    }

    /// Finds the bytes in memory half of the time.
    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> Result<Option<usize>, DiskError> {
        self.run(Operation::Read, offset, buffer.len() as u64, |state| {
            if self.options.direct || state.rng.bool() {
                return state.check_handle(self.handle).map(|()| None);
            }
            state.read(self.handle, buffer, offset).map(Some)
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), DiskError> {
        self.run(Operation::Write, offset, bytes.len() as u64, |state| {
            self.check_writable()?;
            self.check_aligned(bytes, offset)?;
            state.write(self.handle, bytes, offset)
        })
    }

    fn write_vectored_at(
        &self,
        mut buffers: &mut [IoSlice<'_>],
        offset: u64,
    ) -> Result<(), DiskError> {
        let total: u64 = buffers.iter().map(|buffer| buffer.len() as u64).sum();
        self.run(Operation::Write, offset, total, |state| {
            self.check_writable()?;
            let mut at = offset;
            for buffer in &*buffers {
                self.check_aligned(buffer, at)?;
                state.write(self.handle, buffer, at)?;
                at += buffer.len() as u64;
            }
            Ok(())
        })?;
        let count = usize::try_from(total).unwrap_or(usize::MAX);
        IoSlice::advance_slices(&mut buffers, count);
        Ok(())
    }

    fn len(&self) -> Result<u64, DiskError> {
        self.run(Operation::Metadata, 0, 0, |state| state.len(self.handle))
    }

    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.run(Operation::SetLength, len, 0, |state| {
            self.check_writable()?;
            state.set_len(self.handle, len)
        })
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        self.run(Operation::Allocate, offset, len, |state| {
            self.check_writable()?;
            state.allocate(self.handle, offset, len)
        })
    }

    fn punch_hole(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        self.run(Operation::PunchHole, offset, len, |state| {
            self.check_writable()?;
            state.punch_hole(self.handle, offset, len)
        })
    }

    fn sync(&self, _: SyncKind) -> Result<(), DiskError> {
        self.run(Operation::Sync, 0, 0, |state| state.sync(self.handle))
    }

    fn advise(&self, offset: u64, len: u64, _: Advice) -> Result<(), DiskError> {
        self.run(Operation::Advise, offset, len, |state| {
            state.check_handle(self.handle)
        })
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.disk.lock().close(self.handle);
    }
}

/// Releases a lock on drop.
#[derive(Debug)]
pub(super) struct LockGuard {
    pub(super) disk: SimDisk,
    pub(super) node: NodeId,
    pub(super) number: u64,
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        self.disk.lock().unlock(self.node, self.number);
    }
}
