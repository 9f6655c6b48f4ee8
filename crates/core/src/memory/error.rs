//! Ways in which shared memory can fail, each with what was wanted, what was found and what to do.

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use super::InsufficientSpace;

/// A range that does not lie inside a region, or does not start where its type must start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{len} bytes at offset {offset} (alignment {align}) do not fit a region of {region_len} bytes"
)]
pub struct OutOfBounds {
    /// First byte of the range.
    pub offset: usize,
    /// Length of the range in bytes.
    pub len: usize,
    /// Alignment that the offset must have.
    pub align: usize,
    /// Length of the region in bytes.
    pub region_len: usize,
}

/// Why memory could not be created or opened.
#[derive(Debug, Error)]
pub enum MemoryError {
    /// The file system has no room for the file. Nothing is left behind.
    #[error(
        "no room for {}: {shortage}, or choose a directory on another file system (aeron.dir)", path.display()
    )]
    StorageFull {
        /// The file that was to be created.
        path: PathBuf,
        /// Its length, and the bytes available in its directory.
        shortage: InsufficientSpace,
    },
    /// A file is created exclusively, and there is one of that name.
    #[error("{} exists already; another process may own it", path.display())]
    AlreadyExists {
        /// The file that was to be created.
        path: PathBuf,
    },
    /// There is no such file, or for a creation no such directory.
    #[error("{} does not exist", path.display())]
    NotFound {
        /// The file, or the directory that was to hold it.
        path: PathBuf,
    },
    /// The user of this process may not do that.
    #[error(
        "no permission to {operation} {}: run as the user that owns {}, or widen its mode (the owner's umask decides \
         it)", path.display(), directory(path).display()
    )]
    PermissionDenied {
        /// What was tried.
        operation: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The file has no bytes: its creator has not come further, or died.
    #[error("{} is empty: its creator is still at work, or died before it was done", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is shorter than what it must hold.
    #[error(
        "{} has {len} bytes where at least {expected} are needed: its creator is still at work, or it was cut off",
        path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Its length in bytes.
        len: u64,
        /// The least length in bytes.
        expected: u64,
    },
    /// The name belongs to a directory, a device or a pipe.
    #[error("{} is not a regular file", path.display())]
    NotAFile {
        /// The name.
        path: PathBuf,
    },
    /// A length of 0, or one that no mapping can have.
    #[error("{len} is not a length that can be mapped")]
    InvalidLength {
        /// The length in bytes.
        len: u64,
    },
    /// The system has no memory, or no address space, for the mapping.
    #[error(
        "no memory for a mapping of {len} bytes: check the limits of the process (ulimit -v) and of its container"
    )]
    OutOfMemory {
        /// The length in bytes.
        len: u64,
    },
    /// Any other answer of the system.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The answer.
        source: io::Error,
    },
}

impl MemoryError {
    /// Sorts the system's answer to an operation on a file.
    #[cfg(not(loom))]
    pub(super) fn from_io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::AlreadyExists => Self::AlreadyExists { path },
            io::ErrorKind::NotFound => Self::NotFound { path },
            io::ErrorKind::PermissionDenied => Self::PermissionDenied { operation, path },
            io::ErrorKind::IsADirectory => Self::NotAFile { path },
            _ => Self::Io {
                operation,
                path,
                source,
            },
        }
    }

    /// True when trying again later may help: the file's creator may not have come so far yet.
    pub fn is_not_ready(&self) -> bool {
        matches!(
            self,
            Self::NotFound { .. }
                | Self::PermissionDenied { .. }
                | Self::Empty { .. }
                | Self::Truncated { .. }
        )
    }
}

/// The directory that holds a file, as far as its name tells.
pub(super) fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
