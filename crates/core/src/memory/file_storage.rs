// SPDX-License-Identifier: Apache-2.0
//! Storage in real files.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::{FileExt, MetadataExt},
    path::Path,
};

use rustix::io::Errno;

use super::{
    CreateOptions, DirectoryLock, LockFile, LockProbe, MemoryError, Region, Storage, StoredFile,
    error::directory,
    mapping::{FileIdentity, Mapping},
    reserve::{is_full, reserve},
};

/// Maximum length of the contents of a lock file, in bytes.
const LOCK_CONTENTS_MAX: u64 = 1024;
/// Maximum length of the id of a kernel, in bytes.
const KERNEL_ID_MAX: u64 = 64;
/// Bytes that are copied at once.
const COPY_BLOCK: usize = 1 << 20;
/// Granularity in bytes in which copies leave out zeros.
const COPY_PAGE: usize = 4096;

/// Files of the file system, mapped for all processes that open them.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileStorage;

impl Storage for FileStorage {
    fn create(&self, path: &Path, len: u64, options: CreateOptions) -> Result<Region, MemoryError> {
        let map_len = mappable(len)?;
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(|error| MemoryError::from_io("create", path, error))?;
        let region = self.fill(&file, path, map_len, options);
        if region.is_err() {
            // The first error is reported.
            let _ = fs::remove_file(path);
        }
        region
    }

    fn open_file(&self, path: &Path) -> io::Result<StoredFile> {
        File::open(path).map(StoredFile::from_file)
    }

    fn reserve(
        &self,
        path: &Path,
        region: &Region,
        offset: u64,
        len: u64,
    ) -> Result<(), MemoryError> {
        self.check_available(path, len)?;
        let file = File::options()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|error| MemoryError::from_io("open", path, error))?;
        let metadata = file
            .metadata()
            .map_err(|error| MemoryError::from_io("examine", path, error))?;
        if region.file_identity() != Some(FileIdentity::of(&metadata)) {
            return Err(MemoryError::Replaced {
                path: path.to_path_buf(),
            });
        }
        let file_len = metadata.len();
        let end = offset.saturating_add(len);
        if end > file_len {
            return Err(MemoryError::Truncated {
                path: path.to_path_buf(),
                len: file_len,
                expected: end,
            });
        }
        if len == 0 {
            return Ok(());
        }
        reserve(&file, offset, len).map_err(|error| {
            if is_full(&error) {
                self.storage_full(path, len)
            } else {
                MemoryError::from_io("reserve pages of", path, error)
            }
        })
    }

    fn open(&self, path: &Path) -> Result<Region, MemoryError> {
        let (file, len) = open_regular(path, File::options().read(true).write(true))?;
        map(&file, path, len)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn available(&self, directory: &Path) -> io::Result<u64> {
        Ok(space(directory)?.map_or(u64::MAX, |space| space.available))
    }

    fn capacity(&self, directory: &Path) -> Option<u64> {
        space(directory).ok()?.map(|space| space.capacity)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn try_lock(&self, directory: &Path) -> io::Result<DirectoryLock> {
        let file = File::open(directory)?;
        file.try_lock().map_err(io::Error::from)?;
        let locked = file.metadata()?;
        let named = fs::metadata(directory)?;
        // The directory may have been removed and created again since it was opened.
        if (locked.dev(), locked.ino()) != (named.dev(), named.ino()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(DirectoryLock::of(file))
    }

    fn create_locked(&self, path: &Path, contents: &[u8]) -> io::Result<LockFile> {
        let Some(kernel) = kernel_id() else {
            return Ok(LockFile::default());
        };
        let mut file = File::options().write(true).create_new(true).open(path)?;
        // The contents come last: observers ignore the lock of a file without them.
        let locked = match file.try_lock() {
            Ok(()) => file
                .write_all(&[contents, kernel.as_bytes()].concat())
                .map(|()| LockFile::of_file(file)),
            // No locks here, or another program has locked a file that is not its own.
            Err(TryLockError::Error(_) | TryLockError::WouldBlock) => {
                fs::remove_file(path)?;
                return Ok(LockFile::default());
            }
        };
        if locked.is_err() {
            // The first error is reported.
            let _ = fs::remove_file(path);
        }
        locked
    }

    fn find_lock(&self, path: &Path) -> Option<LockProbe> {
        // A pipe or device of that name must not be opened.
        if !fs::symlink_metadata(path).ok()?.is_file() {
            return None;
        }
        let file = File::open(path).ok()?;
        let mut contents = Vec::new();
        let longest = LOCK_CONTENTS_MAX + KERNEL_ID_MAX;
        (&file).take(longest).read_to_end(&mut contents).ok()?;
        if !contents.is_empty() {
            // Another machine may share the files of this one, but not its locks.
            let own = contents.strip_suffix(kernel_id()?.as_bytes())?.len();
            contents.truncate(own);
        }
        Some(LockProbe::of_file(file, contents))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn write_file(&self, path: &Path, contents: &[u8]) -> io::Result<()> {
        fs::write(path, contents)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(directory)?
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect()
    }
}

impl FileStorage {
    /// Returns a copy of the contents of a file, in memory of this process. Unlike a mapping, it allocates no pages where
    /// the file has holes, so it cannot fail for lack of space in the file system. The copy of a file that is being
    /// written has each byte as it was at some time during the call, earlier bytes at an earlier time.
    ///
    /// # Errors
    ///
    /// As [`Storage::open`], but needs no permission to write; if the file cannot be read, or memory is short.
    pub fn copy(&self, path: &Path) -> Result<Region, MemoryError> {
        let (file, len) = open_regular(path, File::options().read(true))?;
        let copy = Region::anonymous(len)?;
        let mut block = vec![0; COPY_BLOCK];
        let mut offset = 0;
        while offset < len {
            let wanted = COPY_BLOCK.min(len - offset);
            let count = match file.read_at(&mut block[..wanted], offset as u64) {
                // Another process has cut the file.
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(MemoryError::from_io("read", path, error)),
            };
            // Pages without contents are not touched in the copy either.
            for (index, page) in block[..count].chunks(COPY_PAGE).enumerate() {
                if page.iter().any(|&byte| byte != 0) {
                    copy.write(offset + index * COPY_PAGE, page);
                }
            }
            offset += count;
        }
        Ok(copy)
    }

    /// Sets the length of a new file, reserves its pages if requested, and maps it.
    fn fill(
        &self,
        file: &File,
        path: &Path,
        len: usize,
        options: CreateOptions,
    ) -> Result<Region, MemoryError> {
        let sized = if options.reserve {
            self.check_available(path, len as u64)?;
            reserve(file, 0, len as u64)
        } else {
            file.set_len(len as u64)
        };
        if let Err(error) = sized {
            if !is_full(&error) {
                return Err(MemoryError::from_io("set the length of", path, error));
            }
            // Frees the allocated blocks, so that the error reports the available space. The first error is reported.
            let _ = file.set_len(0);
            return Err(self.storage_full(path, len as u64));
        }
        let region = map(file, path, len)?;
        if options.populate {
            // Best effort: otherwise pages are faulted in one by one.
            let _ = region.populate();
        }
        Ok(region)
    }

    /// Checks that `len` bytes are available. Done before they are reserved, because some file systems allocate all
    /// free blocks before they report that there are too few.
    fn check_available(&self, path: &Path, len: u64) -> Result<(), MemoryError> {
        let available = self.available(directory(path)).unwrap_or(u64::MAX);
        if len > available {
            return Err(self.storage_full(path, len));
        }
        Ok(())
    }

    fn storage_full(&self, path: &Path, len: u64) -> MemoryError {
        MemoryError::StorageFull {
            path: path.to_path_buf(),
            shortage: self.insufficient_space(directory(path), len),
        }
    }
}

/// Opens a regular file that is not empty. Returns it with its length.
fn open_regular(path: &Path, options: &OpenOptions) -> Result<(File, usize), MemoryError> {
    let metadata = fs::metadata(path).map_err(|error| MemoryError::from_io("open", path, error))?;
    if !metadata.is_file() {
        return Err(MemoryError::NotAFile {
            path: path.to_path_buf(),
        });
    }
    let file = options
        .open(path)
        .map_err(|error| MemoryError::from_io("open", path, error))?;
    // The length of the open file: the name may refer to another file by now.
    let len = file
        .metadata()
        .map_err(|error| MemoryError::from_io("examine", path, error))?
        .len();
    if len == 0 {
        return Err(MemoryError::Empty {
            path: path.to_path_buf(),
        });
    }
    Ok((file, mappable(len)?))
}

/// Returns the id of the running kernel, which changes with each boot and is the same in all its containers.
fn kernel_id() -> Option<String> {
    let file = File::open("/proc/sys/kernel/random/boot_id").ok()?;
    let mut id = String::new();
    file.take(KERNEL_ID_MAX).read_to_string(&mut id).ok()?;
    (!id.is_empty()).then_some(id)
}

/// Space of a file system in bytes.
struct Space {
    available: u64,
    capacity: u64,
}

/// Returns the space of the file system of a directory; `None` if it has no limit, such as tmpfs with size=0.
fn space(directory: &Path) -> io::Result<Option<Space>> {
    let answer = rustix::fs::statvfs(directory)?;
    let bytes = |blocks: u64| blocks.saturating_mul(answer.f_frsize);
    let (available, capacity) = (bytes(answer.f_bavail), bytes(answer.f_blocks));
    Ok((capacity > 0).then_some(Space {
        available,
        capacity,
    }))
}

fn map(file: &File, path: &Path, len: usize) -> Result<Region, MemoryError> {
    let mapping = Mapping::file(file, len).map_err(|error| match error.raw_os_error() {
        Some(code) if code == Errno::NOMEM.raw_os_error() => {
            MemoryError::OutOfMemory { len: len as u64 }
        }
        _ => MemoryError::from_io("map", path, error),
    })?;
    Ok(Region::whole(mapping))
}

fn mappable(len: u64) -> Result<usize, MemoryError> {
    match isize::try_from(len) {
        Ok(len) if len > 0 => Ok(len.unsigned_abs()),
        _ => Err(MemoryError::InvalidLength { len }),
    }
}
