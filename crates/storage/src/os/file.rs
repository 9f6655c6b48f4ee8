// SPDX-License-Identifier: Apache-2.0
//! Open files of the system.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice as SystemAdvice, FallocateFlags, fadvise, fallocate};
use rustix::io::{Errno, ReadWriteFlags, preadv2, retry_on_intr};
use taran_core::memory::start_write_back;

use crate::{ALIGNMENT, Advice, DiskError, DiskFile, ErrorKind, Operation, SyncKind};

/// Highest offset of a file.
const MAX_OFFSET: u64 = i64::MAX.cast_unsigned();

/// Maximum number of buffers of one vectored write (`IOV_MAX` of Linux).
const MAX_BUFFERS: usize = 1024;

#[derive(Debug)]
pub(super) struct OsFile {
    file: File,
    path: PathBuf,
    direct: bool,
}

impl OsFile {
    pub(super) fn new(file: File, path: &Path, direct: bool) -> Self {
        Self {
            file,
            path: path.to_path_buf(),
            direct,
        }
    }

    /// Reserves the first `len` bytes of a file of `current` bytes. Where the file system cannot reserve, writes zeros
    /// behind the current end.
    pub(super) fn allocate_at_open(&self, current: u64, len: u64) -> Result<(), DiskError> {
        match self.allocate(0, len) {
            Err(error) if error.kind == ErrorKind::Unsupported => self
                .write_zeros(current, len)
                .map_err(|error| self.failed(Operation::Allocate, 0, len, &error)),
            result => result,
        }
    }

    fn write_zeros(&self, mut offset: u64, end: u64) -> io::Result<()> {
        let zeros = crate::AlignedBuf::new(64 * 1024);
        while offset < end {
            let len =
                usize::try_from(end - offset).map_or(zeros.len(), |left| left.min(zeros.len()));
            self.file.write_all_at(&zeros[..len], offset)?;
            offset += len as u64;
        }
        Ok(())
    }

    /// Checks the range of an operation.
    fn check(&self, operation: Operation, offset: u64, len: u64) -> Result<(), DiskError> {
        if offset.checked_add(len).is_none_or(|end| end > MAX_OFFSET) {
            let kind = ErrorKind::InvalidRange {
                offset,
                len,
                limit: MAX_OFFSET,
            };
            return Err(DiskError::new(operation, &self.path, kind));
        }
        Ok(())
    }

    /// Checks the alignment of a direct transfer.
    fn check_aligned(
        &self,
        operation: Operation,
        bytes: &[u8],
        offset: u64,
    ) -> Result<(), DiskError> {
        let is_aligned = |number: u64| number.is_multiple_of(ALIGNMENT as u64);
        if !self.direct
            || (is_aligned(offset)
                && is_aligned(bytes.len() as u64)
                && is_aligned(bytes.as_ptr().addr() as u64))
        {
            return Ok(());
        }
        let kind = ErrorKind::Misaligned {
            offset,
            len: bytes.len(),
            alignment: ALIGNMENT,
        };
        Err(DiskError::new(operation, &self.path, kind))
    }

    fn failed(&self, operation: Operation, offset: u64, len: u64, error: &io::Error) -> DiskError {
        let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
        let kind = ErrorKind::from_errno(errno, offset, len, || {
            let stat = rustix::fs::fstatvfs(&self.file).ok()?;
            Some(stat.f_bavail.saturating_mul(stat.f_frsize))
        });
        DiskError::new(operation, &self.path, kind)
    }
}

impl DiskFile for OsFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, DiskError> {
        self.check(Operation::Read, offset, buffer.len() as u64)?;
        self.check_aligned(Operation::Read, buffer, offset)?;
        let mut len = 0;
        while len < buffer.len() {
            match self.file.read_at(&mut buffer[len..], offset + len as u64) {
                Ok(0) => break,
                Ok(read) => len += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let needed = buffer.len() as u64;
                    return Err(self.failed(Operation::Read, offset, needed, &error));
                }
            }
            // A direct read ends at the end of the file with a partial block; the next one would not be aligned.
            if self.direct && !len.is_multiple_of(ALIGNMENT) {
                break;
            }
        }
        Ok(len)
    }

    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> Result<Option<usize>, DiskError> {
        let needed = buffer.len() as u64;
        self.check(Operation::Read, offset, needed)?;
        if self.direct {
            return Ok(None);
        }
        let slices = &mut [IoSliceMut::new(buffer)];
        match retry_on_intr(|| preadv2(&self.file, slices, offset, ReadWriteFlags::NOWAIT)) {
            Ok(len) => Ok(Some(len)),
            // Not in memory, or not known to this kernel or file system.
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(None),
            Err(error) => Err(self.failed(Operation::Read, offset, needed, &error.into())),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), DiskError> {
        self.check(Operation::Write, offset, bytes.len() as u64)?;
        self.check_aligned(Operation::Write, bytes, offset)?;
        self.file
            .write_all_at(bytes, offset)
            .map_err(|error| self.failed(Operation::Write, offset, bytes.len() as u64, &error))
    }

    fn write_vectored_at(
        &self,
        mut buffers: &mut [IoSlice<'_>],
        mut offset: u64,
    ) -> Result<(), DiskError> {
        let total: u64 = buffers.iter().map(|buffer| buffer.len() as u64).sum();
        self.check(Operation::Write, offset, total)?;
        for buffer in &*buffers {
            self.check_aligned(Operation::Write, buffer, offset)?;
        }
        // Skips empty buffers, for which the system writes nothing.
        IoSlice::advance_slices(&mut buffers, 0);
        while !buffers.is_empty() {
            let count = buffers.len().min(MAX_BUFFERS);
            let written =
                retry_on_intr(|| rustix::io::pwritev(&self.file, &buffers[..count], offset))
                    .and_then(|written| {
                        if written == 0 {
                            Err(Errno::IO)
                        } else {
                            Ok(written)
                        }
                    })
                    .map_err(|error| self.failed(Operation::Write, offset, total, &error.into()))?;
            IoSlice::advance_slices(&mut buffers, written);
            offset += written as u64;
        }
        Ok(())
    }

    fn len(&self) -> Result<u64, DiskError> {
        let metadata = self.file.metadata();
        Ok(metadata
            .map_err(|error| self.failed(Operation::Metadata, 0, 0, &error))?
            .len())
    }

    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.check(Operation::SetLength, len, 0)?;
        // Not File::set_len: on a handle for reading the system answers EINVAL, which that would report as such.
        match retry_on_intr(|| rustix::fs::ftruncate(&self.file, len)) {
            Ok(()) => Ok(()),
            Err(Errno::INVAL) => Err(DiskError::new(
                Operation::SetLength,
                &self.path,
                ErrorKind::NotWritable,
            )),
            Err(error) => Err(self.failed(Operation::SetLength, len, 0, &error.into())),
        }
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        self.check(Operation::Allocate, offset, len)?;
        if len == 0 {
            return Ok(());
        }
        retry_on_intr(|| fallocate(&self.file, FallocateFlags::empty(), offset, len))
            .map_err(|error| self.failed(Operation::Allocate, offset, len, &error.into()))
    }

    fn punch_hole(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        self.check(Operation::PunchHole, offset, len)?;
        if len == 0 {
            return Ok(());
        }
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        retry_on_intr(|| fallocate(&self.file, mode, offset, len))
            .map_err(|error| self.failed(Operation::PunchHole, offset, len, &error.into()))
    }

    fn sync(&self, kind: SyncKind) -> Result<(), DiskError> {
        match kind {
            SyncKind::Data => self.file.sync_data(),
            SyncKind::All => self.file.sync_all(),
        }
        .map_err(|error| self.failed(Operation::Sync, 0, 0, &error))
    }

    fn advise(&self, offset: u64, len: u64, advice: Advice) -> Result<(), DiskError> {
        self.check(Operation::Advise, offset, len)?;
        let system = match advice {
            Advice::Normal => SystemAdvice::Normal,
            Advice::Sequential => SystemAdvice::Sequential,
            Advice::Random => SystemAdvice::Random,
            Advice::WillNeed => SystemAdvice::WillNeed,
            Advice::DontNeed => SystemAdvice::DontNeed,
            Advice::WriteBack => {
                return start_write_back(&self.file, offset, len)
                    .map_err(|error| self.failed(Operation::Advise, offset, len, &error));
            }
        };
        fadvise(&self.file, offset, NonZeroU64::new(len), system)
            .map_err(|error| self.failed(Operation::Advise, offset, len, &error.into()))
    }
}
