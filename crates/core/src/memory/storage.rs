//! Where the files of an Aeron directory live.

use std::{fmt::Debug, io, path::Path};

use super::{DirectoryLock, InsufficientSpace, MemoryError, Region};

/// How a file is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// Reserve all pages now. Without it the file is sparse, and a file system that fills up later kills whoever
    /// touches a page first.
    pub reserve: bool,
    /// Map all pages now, so that nobody in this process meets a page fault later.
    pub populate: bool,
}

impl CreateOptions {
    /// Pages reserved, mapped when touched.
    pub const RESERVED: Self = Self {
        reserve: true,
        populate: false,
    };
    /// Nothing reserved.
    pub const SPARSE: Self = Self {
        reserve: false,
        populate: false,
    };
}

/// Where the files of the Aeron directory live: real files ([`FileStorage`](super::FileStorage)), or memory for tests
/// and simulation ([`MemoryStorage`](super::MemoryStorage)). Every implementation passes the same tests.
pub trait Storage: Send + Sync + Debug {
    /// Creates a file of `len` zero bytes and maps all of it. The file must not exist, its directory must. Mode 0666
    /// less the umask. When it fails it leaves no file behind.
    ///
    /// # Errors
    ///
    /// [`MemoryError::StorageFull`] when pages are to be reserved and there are not enough.
    fn create(&self, path: &Path, len: u64, options: CreateOptions) -> Result<Region, MemoryError>;

    /// Maps the whole of an existing file for reading and writing.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Empty`] when it has no bytes yet.
    fn open(&self, path: &Path) -> Result<Region, MemoryError>;

    /// As [`open`](Self::open), for a file that must have at least `expected` bytes.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Truncated`] when it has less.
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

    /// Removes a file's name. Mappings of it live on.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Bytes that can still be reserved in a directory.
    fn available(&self, directory: &Path) -> io::Result<u64>;

    /// Bytes of the file system that holds a directory, free and used; `None` where it has no limit or does not tell.
    fn capacity(&self, directory: &Path) -> Option<u64> {
        let _ = directory;
        None
    }

    /// What to say where `requested` bytes are too much for a directory.
    fn insufficient_space(&self, directory: &Path, requested: u64) -> InsufficientSpace {
        InsufficientSpace {
            requested,
            available: self.available(directory).unwrap_or(0),
            capacity: self.capacity(directory),
        }
    }

    /// True when there is a file or a directory of that name.
    fn exists(&self, path: &Path) -> bool;

    /// Creates a directory and its parents; fine when it exists. Mode 0777 less the umask.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Takes the lock of a directory, until what is returned is dropped. It keeps nobody out who does not ask for it.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] when somebody else has it.
    fn try_lock(&self, directory: &Path) -> io::Result<DirectoryLock> {
        let _ = directory;
        Ok(DirectoryLock::default())
    }

    /// Removes a directory that holds nothing.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::DirectoryNotEmpty`] when it holds something.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Removes a directory and all below it.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Writes a small ordinary file, such as a text for people; replaces an old one.
    fn write_file(&self, path: &Path, contents: &[u8]) -> io::Result<()>;
}
