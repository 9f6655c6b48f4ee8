// SPDX-License-Identifier: Apache-2.0
//! Locks of directories and files.

use std::fs::File;

/// An advisory lock of a directory, released on drop. The system also releases it when the process ends for any reason.
///
/// The default locks nothing: for storage that is not shared, and file systems without locks.
#[derive(Debug, Default)]
pub struct DirectoryLock {
    /// Kept for its destructor, which releases the lock.
    _file: Option<LockedFile>,
}

impl DirectoryLock {
    #[cfg(not(loom))]
    pub(super) fn of(file: File) -> Self {
        Self {
            _file: Some(LockedFile::new(file)),
        }
    }
}

/// An open file with a lock, which is released on drop. Closing the file is not enough: a child process that another
/// thread is starting has a copy of the descriptor, and with it the lock, until it executes its program.
#[derive(Debug)]
#[cfg_attr(loom, allow(dead_code, reason = "loom models have no files"))]
pub(super) struct LockedFile(File);

#[cfg(not(loom))]
impl LockedFile {
    /// Takes over a file that is locked.
    pub(super) fn new(file: File) -> Self {
        Self(file)
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing the file is what remains after an error.
        let _ = self.0.unlock();
    }
}

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn locked_file_dropped_while_its_descriptor_has_a_copy_is_unlocked() {
        let path = std::env::temp_dir().join(format!("taran-core-lock-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        file.lock().unwrap();
        let copy = file.try_clone().unwrap();
        let locked = LockedFile::new(file);
        let other = File::open(&path).unwrap();
        assert!(other.try_lock().is_err());
        drop(locked);
        other.try_lock().unwrap();
        drop(copy);
        std::fs::remove_file(&path).unwrap();
    }
}
