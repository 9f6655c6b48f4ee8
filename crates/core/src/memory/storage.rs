// SPDX-License-Identifier: Apache-2.0
//! Storage of the files of an Aeron directory.

use std::{ffi::OsString, fmt::Debug, io, path::Path};

use super::{DirectoryLock, InsufficientSpace, LockFile, LockProbe, MemoryError, Region};

/// Options for creating a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// Reserve all pages at creation. Otherwise the file is sparse, and a process that first accesses a page when the
    /// file system is full is killed (SIGBUS), unless [`Storage::reserve`] reserved that page.
    pub reserve: bool,
    /// Fault in all pages at creation, which avoids page faults in this process later.
    pub populate: bool,
}

impl CreateOptions {
    /// Pages are reserved, and mapped on first access.
    pub const RESERVED: Self = Self {
        reserve: true,
        populate: false,
    };
    /// No pages are reserved.
    pub const SPARSE: Self = Self {
        reserve: false,
        populate: false,
    };
}

/// Storage of the files of an Aeron directory: real files ([`FileStorage`](super::FileStorage)), or memory for tests
/// and simulation ([`MemoryStorage`](super::MemoryStorage)). All implementations pass the same tests.
pub trait Storage: Send + Sync + Debug {
    /// Creates a file of `len` zero bytes and maps all of it. The file must not exist; its directory must. Mode 0666
    /// minus the umask. Leaves no file after an error.
    ///
    /// # Errors
    ///
    /// [`MemoryError::StorageFull`] if there are too few pages to reserve.
    fn create(&self, path: &Path, len: u64, options: CreateOptions) -> Result<Region, MemoryError>;

    /// Reserves the pages of a range of an existing file, so that an access to them cannot fail for lack of space.
    /// `region` is a view of the file, which was created or opened here before; `path` is its name.
    /// `offset` and the end of the range are multiples of the page size or the end of the file. Requires that no byte of
    /// an unreserved page has been written. Reserved pages stay reserved. After an error some pages may be reserved.
    ///
    /// # Errors
    ///
    /// [`MemoryError::StorageFull`] if there are too few pages, [`MemoryError::Truncated`] if the range is not inside
    /// the file, [`MemoryError::Replaced`] if the name belongs to another file by now, whose pages would not help.
    fn reserve(
        &self,
        path: &Path,
        region: &Region,
        offset: u64,
        len: u64,
    ) -> Result<(), MemoryError>;

    /// Maps the whole of an existing file for reading and writing.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Empty`] if it has no bytes yet.
    fn open(&self, path: &Path) -> Result<Region, MemoryError>;

    /// As [`open`](Self::open), for a file that must have at least `expected` bytes.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Truncated`] if it has fewer.
    fn open_at_least(&self, path: &Path, expected: u64) -> Result<Region, MemoryError> {
        let region = self.open(path)?;
        let len = region.len() as u64;
        if len < expected {
            return Err(MemoryError::Truncated {
                path: path.to_path_buf(),
                len,
                expected,
            });
        }
        Ok(region)
    }

    /// Opens an existing file for reading without a mapping. The default reads a mapping, for storages in memory.
    ///
    /// # Errors
    ///
    /// The file does not exist, or cannot be opened.
    #[cfg(not(loom))]
    fn open_file(&self, path: &Path) -> io::Result<super::StoredFile> {
        let region = self.open(path).map_err(io::Error::other)?;
        Ok(super::StoredFile::from_region(region))
    }

    /// Removes a file. Its mappings remain valid.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Returns the bytes that can still be reserved in a directory.
    fn available(&self, directory: &Path) -> io::Result<u64>;

    /// Returns the size in bytes of the file system of a directory; `None` if it is unlimited or unknown.
    fn capacity(&self, directory: &Path) -> Option<u64> {
        let _ = directory;
        None
    }

    /// Returns the error detail for `requested` bytes that do not fit a directory.
    fn insufficient_space(&self, directory: &Path, requested: u64) -> InsufficientSpace {
        InsufficientSpace {
            requested,
            available: self.available(directory).unwrap_or(0),
            capacity: self.capacity(directory),
        }
    }

    /// Returns true if there is a file or a directory of that name.
    fn exists(&self, path: &Path) -> bool;

    /// Creates a directory and its parents; succeeds if it exists. Mode 0777 minus the umask.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Takes the advisory lock of a directory, which is held until the returned value is dropped.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] if another holder has it.
    fn try_lock(&self, directory: &Path) -> io::Result<DirectoryLock> {
        let _ = directory;
        Ok(DirectoryLock::default())
    }

    /// Creates a small file that is locked until the returned value is dropped or this process ends; observers find it
    /// with [`find_lock`](Self::find_lock). The file must not exist; its directory must. On a file system without locks
    /// there is no file afterwards, and nothing is locked. Leaves no file after an error.
    fn create_locked(&self, path: &Path, contents: &[u8]) -> io::Result<LockFile> {
        let _ = (path, contents);
        Ok(LockFile::default())
    }

    /// Opens a file of [`create_locked`](Self::create_locked) to observe its lock. Returns `None` if there is none, and
    /// if its lock cannot be observed from here: it was taken on another machine, or the file cannot be read.
    fn find_lock(&self, path: &Path) -> Option<LockProbe> {
        let _ = path;
        None
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::DirectoryNotEmpty`] if it is not empty.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Removes a directory and its contents.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Writes a small ordinary file, such as a report; replaces an existing one.
    fn write_file(&self, path: &Path, contents: &[u8]) -> io::Result<()>;

    /// Returns the names of the files in a directory, in any order. A storage without directories to list has none, which is
    /// the default.
    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        let _ = directory;
        Ok(Vec::new())
    }
}
