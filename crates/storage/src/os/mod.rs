// SPDX-License-Identifier: Apache-2.0
//! The disk of the operating system, which is Linux.

mod file;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::{
    Create, DirEntry, Disk, DiskError, DiskFile, DiskLock, ErrorKind, FileKind, Metadata,
    OpenOptions, Operation, Space,
};

use self::file::OsFile;

/// Files and directories of the operating system. Files are created with mode 0666, directories with 0777, minus the umask.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsDisk;

impl Disk for OsDisk {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Box<dyn DiskFile>, DiskError> {
        let mut system = File::options();
        system.read(true).write(options.write);
        match options.create {
            Create::Never => {}
            Create::IfMissing => {
                system.create(true);
            }
            Create::New => {
                system.create_new(true);
            }
        }
        if options.direct {
            system.custom_flags(OFlags::DIRECT.bits().cast_signed());
        }
        let file = system.open(path).map_err(|error| {
            // The error of file systems without direct I/O.
            if options.direct && Errno::from_io_error(&error) == Some(Errno::INVAL) {
                DiskError::new(Operation::Open, path, ErrorKind::Unsupported)
            } else {
                failed(Operation::Open, path, &error)
            }
        })?;
        let metadata = file
            .metadata()
            .map_err(|error| failed(Operation::Open, path, &error))?;
        if !metadata.is_file() {
            return Err(DiskError::new(Operation::Open, path, ErrorKind::NotAFile));
        }
        let file = OsFile::new(file, path, options.direct);
        if options.allocate > 0
            && let Err(error) = file.allocate_at_open(metadata.len(), options.allocate)
        {
            if options.create == Create::New {
                // The first error is reported.
                let _ = fs::remove_file(path);
            }
            return Err(error);
        }
        Ok(Box::new(file))
    }

    fn list(&self, directory: &Path) -> Result<Vec<DirEntry>, DiskError> {
        let failed = |error| failed(Operation::List, directory, &error);
        let mut entries = Vec::new();
        for entry in fs::read_dir(directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = kind_of(entry.file_type().map_err(failed)?);
            entries.push(DirEntry::new(entry.file_name(), kind));
        }
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata, DiskError> {
        let metadata =
            fs::metadata(path).map_err(|error| failed(Operation::Metadata, path, &error))?;
        Ok(Metadata::new(kind_of(metadata.file_type()), metadata.len()))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        fs::rename(from, to).map_err(|error| failed(Operation::Rename, from, &error))
    }

    fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        fs::remove_file(path).map_err(|error| failed(Operation::Remove, path, &error))
    }

    fn create_directory(&self, path: &Path) -> Result<(), DiskError> {
        fs::create_dir(path).map_err(|error| failed(Operation::CreateDirectory, path, &error))
    }

    fn remove_directory(&self, path: &Path) -> Result<(), DiskError> {
        fs::remove_dir(path).map_err(|error| failed(Operation::Remove, path, &error))
    }

    fn sync_directory(&self, directory: &Path) -> Result<(), DiskError> {
        let failed = |error| failed(Operation::SyncDirectory, directory, &error);
        let opened = File::open(directory).map_err(failed)?;
        if !opened.metadata().map_err(failed)?.is_dir() {
            return Err(failed(Errno::NOTDIR.into()));
        }
        opened.sync_all().map_err(failed)
    }

    fn space(&self, path: &Path) -> Result<Space, DiskError> {
        let stat = rustix::fs::statvfs(path)
            .map_err(|error| failed(Operation::Space, path, &error.into()))?;
        // Some file systems without a limit, such as tmpfs with size=0, report zero blocks.
        Ok(if stat.f_blocks == 0 {
            Space::UNLIMITED
        } else {
            Space::new(
                stat.f_bavail.saturating_mul(stat.f_frsize),
                stat.f_blocks.saturating_mul(stat.f_frsize),
            )
        })
    }

    fn try_lock(&self, path: &Path) -> Result<DiskLock, DiskError> {
        let failed = |error| failed(Operation::Lock, path, &error);
        let locked = || DiskError::new(Operation::Lock, path, ErrorKind::Locked);
        let file = File::open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(locked()),
            Err(fs::TryLockError::Error(error)) => return Err(failed(error)),
        }
        let held = file.metadata().map_err(failed)?;
        let named = fs::metadata(path).map_err(failed)?;
        // The name may belong to another file since it was opened.
        if (held.dev(), held.ino()) != (named.dev(), named.ino()) {
            return Err(locked());
        }
        Ok(DiskLock::new(LockedFile(file)))
    }
}

/// An open file with a lock, which is released on drop. Closing the file is not enough: a child process that another
/// thread is starting has a copy of the descriptor, and with it the lock, until it executes its program.
#[derive(Debug)]
struct LockedFile(File);

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing the file is what remains after an error.
        let _ = self.0.unlock();
    }
}

fn kind_of(kind: fs::FileType) -> FileKind {
    if kind.is_file() {
        FileKind::File
    } else if kind.is_dir() {
        FileKind::Directory
    } else {
        FileKind::Other
    }
}

/// Converts the system's error of an operation without a range.
fn failed(operation: Operation, path: &Path, error: &io::Error) -> DiskError {
    let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
    let kind = ErrorKind::from_errno(errno, 0, 0, || {
        OsDisk
            .space(path.parent().unwrap_or(path))
            .ok()
            .map(|space| space.free)
    });
    DiskError::new(operation, path, kind)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn locked_file_dropped_while_its_descriptor_has_a_copy_is_unlocked() {
        let path = std::env::temp_dir().join(format!("taran-storage-lock-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        file.lock().unwrap();
        let copy = file.try_clone().unwrap();
        drop(LockedFile(file));
        drop(OsDisk.try_lock(&path).unwrap());
        drop(copy);
        fs::remove_file(&path).unwrap();
    }
}
