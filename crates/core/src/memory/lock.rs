//! The lock of a directory.

use std::fs::File;

/// An advisory lock of a directory, released on drop. The system also releases it when the process ends for any reason.
///
/// The default locks nothing: for storage that is not shared, and file systems without locks.
#[derive(Debug, Default)]
pub struct DirectoryLock {
    /// Closing the file releases the lock.
    _file: Option<File>,
}

impl DirectoryLock {
    #[cfg(not(loom))]
    pub(super) fn of(file: File) -> Self {
        Self { _file: Some(file) }
    }
}
