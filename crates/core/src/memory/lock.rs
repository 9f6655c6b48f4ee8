//! The lock of a directory.

use std::fs::File;

/// A directory is locked as long as this lives, against others who ask for its lock. The system lets go of it when the
/// process ends, however that is.
///
/// The default locks nothing: for storage that nobody shares, and file systems that have no locks.
#[derive(Debug, Default)]
pub struct DirectoryLock {
    /// Closing it unlocks.
    _file: Option<File>,
}

impl DirectoryLock {
    #[cfg(not(loom))]
    pub(super) fn of(file: File) -> Self {
        Self { _file: Some(file) }
    }
}
