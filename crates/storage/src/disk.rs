// SPDX-License-Identifier: Apache-2.0
//! The interface of disks and their files.

use std::any::Any;
use std::ffi::OsString;
use std::fmt;
use std::fmt::Debug;
use std::io::IoSlice;
use std::path::Path;

use crate::{DiskError, ErrorKind, Operation};

/// Presence of a file before it is opened. Exhaustive, because a disk has to implement each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Create {
    /// The file must exist.
    #[default]
    Never,
    /// The file is created if it does not exist.
    IfMissing,
    /// The file must not exist.
    New,
}

/// Options of [`Disk::open`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Open for writing as well as reading.
    pub write: bool,
    /// Presence of the file that the open requires.
    pub create: Create,
    /// Bypass the page cache: offsets, lengths and memory addresses must be multiples of
    /// [`ALIGNMENT`](crate::ALIGNMENT).
    pub direct: bool,
    /// Reserve the blocks of the first bytes, and make the file at least that long. A new file whose blocks cannot be
    /// reserved is removed again.
    pub allocate: u64,
}

impl OpenOptions {
    /// An existing file, for reading.
    #[must_use]
    pub fn read() -> Self {
        Self::default()
    }

    /// An existing file, for reading and writing.
    #[must_use]
    pub fn write() -> Self {
        Self {
            write: true,
            ..Self::default()
        }
    }

    /// A file that does not exist, for reading and writing.
    #[must_use]
    pub fn create_new() -> Self {
        Self::write().with_create(Create::New)
    }

    /// Sets whether the file must exist.
    #[must_use]
    pub fn with_create(self, create: Create) -> Self {
        Self { create, ..self }
    }

    /// Bypasses the page cache.
    #[must_use]
    pub fn with_direct(self) -> Self {
        Self {
            direct: true,
            ..self
        }
    }

    /// Reserves the blocks of the first `len` bytes.
    #[must_use]
    pub fn with_allocate(self, len: u64) -> Self {
        Self {
            allocate: len,
            ..self
        }
    }
}

/// Kind of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A link, device, socket or pipe.
    Other,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirEntry {
    /// The name within the directory.
    pub name: OsString,
    /// The kind; links are not followed.
    pub kind: FileKind,
}

impl DirEntry {
    /// Creates an entry.
    #[must_use]
    pub fn new(name: OsString, kind: FileKind) -> Self {
        Self { name, kind }
    }
}

/// Kind and length of a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metadata {
    /// The kind; links are followed.
    pub kind: FileKind,
    /// Length of a regular file in bytes.
    pub len: u64,
}

impl Metadata {
    /// Creates the metadata of a file of `len` bytes, or of another entry.
    #[must_use]
    pub fn new(kind: FileKind, len: u64) -> Self {
        Self { kind, len }
    }
}

/// Space of a file system in bytes. `u64::MAX` in both fields: without a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Space {
    /// Bytes that this user can still allocate.
    pub free: u64,
    /// Size of the file system.
    pub total: u64,
}

impl Space {
    /// Space without a limit.
    pub const UNLIMITED: Self = Self::new(u64::MAX, u64::MAX);

    /// Creates the space of a file system of `total` bytes.
    #[must_use]
    pub const fn new(free: u64, total: u64) -> Self {
        Self { free, total }
    }
}

/// A lock of a file or directory; released on drop, and by the system when the process ends for any reason.
pub struct DiskLock(#[expect(dead_code, reason = "held for its drop")] Box<dyn Any + Send + Sync>);

impl DiskLock {
    /// Wraps a value whose drop releases the lock.
    pub fn new(guard: impl Any + Send + Sync) -> Self {
        Self(Box::new(guard))
    }
}

impl Debug for DiskLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DiskLock")
    }
}

/// Synced part of a file. Exhaustive, because a disk has to implement each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SyncKind {
    /// Bytes, length and allocation: all that reading needs (`fdatasync`).
    Data,
    /// Also times and mode (`fsync`).
    All,
}

/// Expected access to a range of a file. Advice never changes contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// No particular order.
    Normal,
    /// From low to high offsets: read ahead more.
    Sequential,
    /// At random: do not read ahead.
    Random,
    /// Soon: start reading into the page cache.
    WillNeed,
    /// Not soon: drop synced pages from the page cache.
    DontNeed,
    /// Start writing unsynced bytes to the device, so that the next sync has less to do. Makes nothing durable.
    WriteBack,
}

/// Files and directories of one host. Paths are as the implementation understands them; [`OsDisk`](crate::OsDisk) uses
/// those of the system.
///
/// Contract:
///
/// * A write is durable when a later [`DiskFile::sync`] of that file has succeeded. Until then a power cut loses any part
///   of it, whatever was written before or after it.
/// * A created, renamed or removed name is durable when a later [`Disk::sync_directory`] of each directory concerned has
///   succeeded. Syncing a file does not make its name durable.
/// * After a failed sync the unsynced bytes may be lost, and the next sync succeeds without them, as on Linux.
///   [`DiskQueue`](crate::DiskQueue) makes such a failure sticky; callers of this interface must remember it.
/// * All calls can block for as long as the device does. Agents use a [`DiskQueue`](crate::DiskQueue).
///
/// All implementations pass [`conformance`](crate::conformance).
pub trait Disk: Debug + Send + Sync {
    /// Opens or creates a file.
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Box<dyn DiskFile>, DiskError>;

    /// Returns the entries of a directory, sorted by name.
    fn list(&self, directory: &Path) -> Result<Vec<DirEntry>, DiskError>;

    /// Returns kind and length of a file or directory.
    fn metadata(&self, path: &Path) -> Result<Metadata, DiskError>;

    /// Renames a file or directory within a file system; replaces an existing file. After a power cut either the old or
    /// the new name is there.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError>;

    /// Removes a file. Open handles remain valid.
    fn remove_file(&self, path: &Path) -> Result<(), DiskError>;

    /// Creates a directory; its parent must exist.
    fn create_directory(&self, path: &Path) -> Result<(), DiskError>;

    /// Removes an empty directory.
    fn remove_directory(&self, path: &Path) -> Result<(), DiskError>;

    /// Makes the names in a directory durable, not those in its parents.
    fn sync_directory(&self, directory: &Path) -> Result<(), DiskError>;

    /// Returns the space of the file system of an existing file or directory.
    fn space(&self, path: &Path) -> Result<Space, DiskError>;

    /// Takes the exclusive lock of an existing file or directory, without waiting. The lock decides whether another
    /// process is alive; a time stamp in a file only informs. The lock belongs to the file, not to its name: lock
    /// the directory if the file may be replaced.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`] if another handle holds it, in this process or another one.
    fn try_lock(&self, path: &Path) -> Result<DiskLock, DiskError>;
}

/// An open file of a [`Disk`]. All methods take positions, so one handle serves several threads. Closed on drop.
#[expect(clippy::len_without_is_empty, reason = "finding the length can fail")]
pub trait DiskFile: Debug + Send + Sync {
    /// Returns the path by which the file was opened.
    fn path(&self) -> &Path;

    /// Reads at `offset` and returns the number of bytes, which is less than that of `buffer` only at the end of the
    /// file. Holes read as zeros.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, DiskError>;

    /// Reads all of `buffer`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnexpectedEnd`] if the file ends before.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), DiskError> {
        let needed = buffer.len();
        let len = self.read_at(buffer, offset)?;
        if len < needed {
            let kind = ErrorKind::UnexpectedEnd {
                offset,
                needed,
                len,
            };
            return Err(DiskError::new(Operation::Read, self.path(), kind));
        }
        Ok(())
    }

    /// Reads bytes that are in memory, and never waits for the device: an agent can read straight into its destination.
    /// Returns `None` if the first byte is not in memory, or if that cannot be found out; then read through the queue. A
    /// count less than that of `buffer` says that the file ends there or that the rest is not in memory.
    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> Result<Option<usize>, DiskError>;

    /// Writes all bytes at `offset`, and extends the file if needed. After an error any part of them may be written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), DiskError>;

    /// Writes all bytes of several buffers, one after the other, at `offset`. Advances the slices as it writes.
    fn write_vectored_at(&self, buffers: &mut [IoSlice<'_>], offset: u64) -> Result<(), DiskError>;

    /// Returns the length in bytes.
    fn len(&self) -> Result<u64, DiskError>;

    /// Sets the length. New bytes are zero and have no blocks; bytes beyond a smaller length are zero if the file grows
    /// again.
    fn set_len(&self, len: u64) -> Result<(), DiskError>;

    /// Reserves the blocks of a range, so that writing into it does not find the disk full, and makes the file at least
    /// that long. Keeps the contents; new bytes are zero.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] if the file system cannot reserve.
    fn allocate(&self, offset: u64, len: u64) -> Result<(), DiskError>;

    /// Gives the blocks of a range back; its bytes are zero then. Keeps the length.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] if the file system cannot do that.
    fn punch_hole(&self, offset: u64, len: u64) -> Result<(), DiskError>;

    /// Makes all writes and lengths up to now durable.
    ///
    /// # Errors
    ///
    /// After an error the unsynced bytes may be lost for good, although they can still be read for a while, and the next
    /// sync succeeds without them: write them again, or cut the file before them.
    fn sync(&self, kind: SyncKind) -> Result<(), DiskError>;

    /// Advises on a range; `len` zero stands for the rest of the file.
    fn advise(&self, offset: u64, len: u64, advice: Advice) -> Result<(), DiskError>;
}
