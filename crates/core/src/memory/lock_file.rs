// SPDX-License-Identifier: Apache-2.0
//! Lock files: a process shows with one that it lives.
//!
//! Contract: an owner creates the file with [`Storage::create_locked`](super::Storage::create_locked) and holds its
//! exclusive lock until the [`LockFile`] is dropped. The system releases the lock when the process ends for any reason,
//! but not while it is stopped (`SIGSTOP`). Observers open the file with
//! [`Storage::find_lock`](super::Storage::find_lock) and ask [`LockProbe::is_held`]. The contents are written after the
//! lock is taken and never change, so a lock with the expected contents that is not held was held before.
//!
//! A lock belongs to the open file, not to its name or to a process id: it survives the removal of the name, holds
//! across PID and mount namespaces, and is not mistaken for that of a file created anew under the same name. The
//! descriptor is closed by `exec`; a child that is forked without `exec` holds the lock of an owner that ended, as long as it
//! lives.

#[cfg(not(loom))]
use std::fs::{File, TryLockError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use super::lock::LockedFile;

/// A locked file. Dropping it releases the lock; the file remains.
///
/// The default locks nothing: for file systems without locks.
#[derive(Debug, Default)]
pub struct LockFile {
    /// Kept for their destructors, which release the lock.
    _file: Option<LockedFile>,
    _token: Option<Arc<LockToken>>,
}

/// Lock of a file in the memory of this process.
#[derive(Debug)]
pub(super) struct LockToken {
    /// Becomes true if the holder dies without dropping its lock.
    is_holder_dead: Arc<AtomicBool>,
}

/// An observer's view of a lock file.
#[derive(Debug)]
pub struct LockProbe {
    contents: Vec<u8>,
    lock: ObservedLock,
}

#[derive(Debug)]
enum ObservedLock {
    #[cfg(not(loom))]
    File(File),
    Memory(Weak<LockToken>),
}

impl LockFile {
    #[cfg(not(loom))]
    pub(super) fn of_file(file: File) -> Self {
        Self {
            _file: Some(LockedFile::new(file)),
            _token: None,
        }
    }

    pub(super) fn of_token(token: Arc<LockToken>) -> Self {
        Self {
            _file: None,
            _token: Some(token),
        }
    }
}

impl LockToken {
    pub(super) fn new(is_holder_dead: Arc<AtomicBool>) -> Self {
        Self { is_holder_dead }
    }
}

impl LockProbe {
    #[cfg(not(loom))]
    pub(super) fn of_file(file: File, contents: Vec<u8>) -> Self {
        Self {
            contents,
            lock: ObservedLock::File(file),
        }
    }

    pub(super) fn of_token(token: Weak<LockToken>, contents: Vec<u8>) -> Self {
        Self {
            contents,
            lock: ObservedLock::Memory(token),
        }
    }

    /// Returns the contents that the owner wrote; none if it has not taken the lock yet.
    #[must_use]
    pub fn contents(&self) -> &[u8] {
        &self.contents
    }

    /// Returns true unless the owner has released the lock or ended. One or two system calls.
    #[must_use]
    pub fn is_held(&self) -> bool {
        match &self.lock {
            // Observers take shared locks, which do not exclude each other, and owners never wait for one: they lock
            // only files that they have just created.
            #[cfg(not(loom))]
            ObservedLock::File(file) => match file.try_lock_shared() {
                Ok(()) => {
                    // Closing the file would release it as well.
                    let _ = file.unlock();
                    false
                }
                // After an error the state is unknown: the observer falls back to the heartbeat.
                Err(TryLockError::WouldBlock | TryLockError::Error(_)) => true,
            },
            ObservedLock::Memory(token) => token
                .upgrade()
                .is_some_and(|token| !token.is_holder_dead.load(Ordering::Relaxed)),
        }
    }
}
