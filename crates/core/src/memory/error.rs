// SPDX-License-Identifier: Apache-2.0
//! Errors of shared memory, each with the expected and actual values and the remedy.

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use super::InsufficientSpace;

/// A range that is not inside a region, or is not aligned as its type requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{len} bytes at offset {offset} (alignment {align}) do not fit a region of {region_len} bytes"
)]
pub struct OutOfBounds {
    /// First byte of the range.
    pub offset: usize,
    /// Length of the range in bytes.
    pub len: usize,
    /// Required alignment of the offset.
    pub align: usize,
    /// Length of the region in bytes.
    pub region_len: usize,
}

/// An error of creating or opening shared memory.
#[derive(Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The file system has no space for the file, or for a range of it. A file that was to be created is not left.
    #[error(
        "no room for {}: {shortage}, or choose a directory on another file system (aeron.dir)", path.display()
    )]
    StorageFull {
        /// The file to create.
        path: PathBuf,
        /// The length of the file, and the bytes available in its directory.
        shortage: InsufficientSpace,
    },
    /// A file of that name exists, and files are created exclusively.
    #[error("{} exists already; another process may own it", path.display())]
    AlreadyExists {
        /// The file to create.
        path: PathBuf,
    },
    /// The file does not exist, or, when a file is created, its directory does not.
    #[error("{} does not exist", path.display())]
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// The user of this process has no permission.
    #[error(
        "no permission to {operation} {}: run as the user that owns {}, or widen its mode (the owner's umask decides \
         it)", path.display(), directory(path).display()
    )]
    PermissionDenied {
        /// The attempted operation.
        operation: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The file is empty: its creator has not initialised it yet, or died.
    #[error("{} is empty: its creator is still at work, or died before it was done", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is shorter than its contents require.
    #[error(
        "{} has {len} bytes where at least {expected} are needed: its creator is still at work, or it was cut off",
        path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Its length in bytes.
        len: u64,
        /// The smallest valid length in bytes.
        expected: u64,
    },
    /// The name belongs to another file than the mapped one.
    #[error(
        "{} is not the file that was mapped: another process has replaced it; its readers cannot see the mapped one",
        path.display()
    )]
    Replaced {
        /// The name.
        path: PathBuf,
    },
    /// The name belongs to a directory, a device or a pipe.
    #[error("{} is not a regular file", path.display())]
    NotAFile {
        /// The name.
        path: PathBuf,
    },
    /// The length is 0, or longer than any mapping can be.
    #[error("{len} is not a length that can be mapped")]
    InvalidLength {
        /// The length in bytes.
        len: u64,
    },
    /// The system has no memory or address space for the mapping.
    #[error(
        "no memory for a mapping of {len} bytes: check the limits of the process (ulimit -v) and of its container"
    )]
    OutOfMemory {
        /// The length in bytes.
        len: u64,
    },
    /// Any other error of the system.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// The attempted operation.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

crate::debug_is_display!(MemoryError);

impl MemoryError {
    /// Converts the system's error of an operation on a file.
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

    /// Returns true if a later attempt may succeed: the creator of the file may not have finished yet.
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

/// Returns the directory part of a path, or the current directory.
pub(super) fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
