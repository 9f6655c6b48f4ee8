// SPDX-License-Identifier: Apache-2.0
//! Errors of disks: operation, path, reason and remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use thiserror::Error;

use crate::RejectReason;

/// The operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Opening or creating a file.
    Open,
    /// Listing a directory.
    List,
    /// Reading the kind and length of a file or directory.
    Metadata,
    /// Renaming a file or directory.
    Rename,
    /// Removing a file or directory.
    Remove,
    /// Creating a directory.
    CreateDirectory,
    /// Making the names in a directory durable.
    SyncDirectory,
    /// Reading the free space of a file system.
    Space,
    /// Taking the lock of a file or directory.
    Lock,
    /// Releasing the lock of a file or directory.
    Unlock,
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Setting the length of a file.
    SetLength,
    /// Reserving the blocks of a range of a file.
    Allocate,
    /// Giving the blocks of a range of a file back.
    PunchHole,
    /// Making the contents of a file durable.
    Sync,
    /// Advising the kernel of future accesses.
    Advise,
    /// Clearing the recorded failure of a queued file.
    ClearFailure,
    /// Closing a queued file.
    Close,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::List => "list",
            Self::Metadata => "examine",
            Self::Rename => "rename",
            Self::Remove => "remove",
            Self::CreateDirectory => "create the directory",
            Self::SyncDirectory => "sync the directory",
            Self::Space => "find out the free space of",
            Self::Lock => "lock",
            Self::Unlock => "unlock",
            Self::Read => "read",
            Self::Write => "write to",
            Self::SetLength => "set the length of",
            Self::Allocate => "reserve space for",
            Self::PunchHole => "free a range of",
            Self::Sync => "sync",
            Self::Advise => "advise on",
            Self::ClearFailure => "clear the failure of",
            Self::Close => "close",
        })
    }
}

/// The reason of a [`DiskError`].
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file system has no free blocks. The operation can be repeated when there is space again.
    #[error(
        "no space: needed={needed} free={} bytes; remove files, enlarge the file system, or use a directory on another \
         one, then try again", Known(*free)
    )]
    Full {
        /// Bytes of the operation.
        needed: u64,
        /// Free bytes of the file system after the failure, if known. Can exceed `needed`: a write can need blocks for
        /// its metadata too.
        free: Option<u64>,
    },
    /// The user's or project's quota is exhausted.
    #[error(
        "the disk quota of the user is exhausted: needed={needed} bytes; remove files or raise the quota (setquota), \
         then try again"
    )]
    QuotaExhausted {
        /// Bytes of the operation.
        needed: u64,
    },
    /// The file would become longer than the file system or the process allows.
    #[error(
        "a file that ends at byte {end} is longer than allowed: raise the limit of the process (ulimit -f), or use a \
         file system for larger files"
    )]
    TooLarge {
        /// End of the range in bytes.
        end: u64,
    },
    /// The file or directory does not exist.
    #[error("it does not exist")]
    NotFound,
    /// The name is taken.
    #[error("it exists already; remove it, or open it without exclusive creation")]
    AlreadyExists,
    /// The user of this process has no permission.
    #[error(
        "no permission: run as the owner of the file, or widen the mode of the file or its directory"
    )]
    PermissionDenied,
    /// The file system is mounted read-only.
    #[error(
        "the file system is read-only: an I/O error may have caused that (see dmesg); check it, and mount it for \
         writing"
    )]
    ReadOnly,
    /// The file was opened for reading only.
    #[error("the file was opened for reading; open it for writing")]
    NotWritable,
    /// The name belongs to a directory or device where a file is needed.
    #[error("it is not a regular file")]
    NotAFile,
    /// A part of the path is a file where a directory is needed.
    #[error("it, or a part of its path, is not a directory")]
    NotADirectory,
    /// The directory to remove or replace has entries.
    #[error("the directory is not empty; remove its entries first")]
    DirectoryNotEmpty,
    /// Another process or handle holds the lock.
    #[error("another running process holds its lock; end that process, or use another directory")]
    Locked,
    /// The process or the system has too many open files.
    #[error(
        "too many open files: raise the limit of the process (ulimit -n) or of the system (fs.file-max)"
    )]
    TooManyOpenFiles,
    /// The file ends before the range.
    #[error("needed {needed} bytes at offset {offset}, but the file ends after {len} of them")]
    UnexpectedEnd {
        /// Offset of the range in bytes.
        offset: u64,
        /// Length of the range in bytes.
        needed: usize,
        /// Bytes read.
        len: usize,
    },
    /// A range of direct I/O is not aligned.
    #[error(
        "direct I/O needs multiples of {alignment} bytes: offset={offset} length={len}; use an AlignedBuf, or open \
         the file without direct"
    )]
    Misaligned {
        /// Offset in the file in bytes.
        offset: u64,
        /// Length in bytes.
        len: usize,
        /// Required alignment of offset, length and memory address in bytes.
        alignment: usize,
    },
    /// A range ends beyond its buffer, or beyond 2^63 - 1.
    #[error("the range of {len} bytes at {offset} does not fit into {limit} bytes")]
    InvalidRange {
        /// Start of the range in bytes.
        offset: u64,
        /// Length of the range in bytes.
        len: u64,
        /// Length in bytes of what contains the range.
        limit: u64,
    },
    /// The file system cannot do it.
    #[error("the file system does not support it")]
    Unsupported,
    /// An earlier write or sync of the queued file failed, so this one was not executed.
    #[error(
        "not executed after an earlier failure ({first}): bytes written since the last successful sync may be lost; \
         clear the failure, then write them again or truncate the file"
    )]
    FailedBefore {
        /// The first failure.
        first: Box<DiskError>,
    },
    /// The implementation of the disk panicked during a queued request, which may have had any part of its effect.
    #[error("the implementation of the disk panicked, which is a defect of it: {message}")]
    Panicked {
        /// The message of the panic.
        message: String,
    },
    /// The queue has not accepted the request.
    #[error("not executed: {reason}")]
    Rejected {
        /// The reason.
        reason: RejectReason,
    },
    /// The process of the handle has ended. Simulated disks report this.
    #[error("the handle belongs to a process that has ended")]
    Revoked,
    /// The device or the file system failed. After a failed sync the unsynced bytes may be lost.
    #[error("{}; see dmesg, and check the device", io::Error::from_raw_os_error(*code))]
    Io {
        /// The system's error number.
        code: i32,
    },
}

/// An error of a [`Disk`](crate::Disk) or a [`DiskFile`](crate::DiskFile).
#[derive(Clone, PartialEq, Eq, Error)]
#[error("cannot {operation} {}: {kind}", path.display())]
#[non_exhaustive]
pub struct DiskError {
    /// The operation that failed.
    pub operation: Operation,
    /// The file or directory.
    pub path: PathBuf,
    /// The reason.
    pub kind: ErrorKind,
}

taran_core::debug_is_display!(DiskError, ErrorKind);

impl DiskError {
    /// Creates an error.
    pub fn new(operation: Operation, path: &Path, kind: ErrorKind) -> Self {
        Self {
            operation,
            path: path.to_path_buf(),
            kind,
        }
    }

    /// Returns true if the file system or a quota had no space: the operation can succeed later.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(
            self.kind,
            ErrorKind::Full { .. } | ErrorKind::QuotaExhausted { .. }
        )
    }

    /// Returns true if the file or directory does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.kind == ErrorKind::NotFound
    }

    /// Returns true if another handle holds the lock.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.kind == ErrorKind::Locked
    }
}

impl ErrorKind {
    /// Converts the system's error number. `offset` and `len` are the range of the operation, zero if there is none;
    /// `free` returns the free bytes of the file system and is called only if it is full.
    pub(crate) fn from_errno(
        errno: Errno,
        offset: u64,
        len: u64,
        free: impl FnOnce() -> Option<u64>,
    ) -> Self {
        match errno {
            Errno::NOSPC => Self::Full {
                needed: len,
                free: free(),
            },
            Errno::DQUOT => Self::QuotaExhausted { needed: len },
            Errno::FBIG => Self::TooLarge {
                end: offset.saturating_add(len),
            },
            Errno::NOENT => Self::NotFound,
            Errno::EXIST => Self::AlreadyExists,
            Errno::ACCESS | Errno::PERM => Self::PermissionDenied,
            Errno::ROFS => Self::ReadOnly,
            Errno::BADF => Self::NotWritable,
            Errno::ISDIR => Self::NotAFile,
            Errno::NOTDIR => Self::NotADirectory,
            Errno::NOTEMPTY => Self::DirectoryNotEmpty,
            Errno::MFILE | Errno::NFILE => Self::TooManyOpenFiles,
            Errno::OPNOTSUPP | Errno::NOSYS => Self::Unsupported,
            other => Self::Io {
                code: other.raw_os_error(),
            },
        }
    }
}

/// A number, or "unknown".
struct Known(Option<u64>);

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => number.fmt(f),
            None => f.write_str("unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_names_operation_path_numbers_and_remedy() {
        let error = DiskError::new(
            Operation::Write,
            Path::new("/archive/0-0.rec"),
            ErrorKind::from_errno(Errno::NOSPC, 4096, 65_536, || Some(512)),
        );
        assert!(error.is_full());
        assert_eq!(error.kind.to_string(), format!("{:?}", error.kind));
        let text = error.to_string();
        for part in [
            "cannot write to /archive/0-0.rec",
            "needed=65536 free=512 bytes",
            "then try again",
        ] {
            assert!(text.contains(part), "{text}");
        }

        let later = DiskError::new(
            Operation::Sync,
            Path::new("/archive/0-0.rec"),
            ErrorKind::FailedBefore {
                first: Box::new(error),
            },
        );
        let text = later.to_string();
        assert!(text.contains("needed=65536"), "{text}");
        assert!(!later.is_full());
    }

    #[test]
    fn from_errno_keeps_an_unknown_error_number() {
        let kind = ErrorKind::from_errno(Errno::IO, 0, 0, || None);
        assert_eq!(
            ErrorKind::Io {
                code: Errno::IO.raw_os_error()
            },
            kind
        );
    }
}
