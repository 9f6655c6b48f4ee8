// SPDX-License-Identifier: Apache-2.0
//! The right of a process to use its handles.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The right of one run of a process to use what its host gave it. Clones are the same lease. It is revoked when the
/// process dies; handles check it before each operation.
#[derive(Clone, Debug, Default)]
pub struct Lease {
    is_revoked: Arc<AtomicBool>,
}

impl Lease {
    /// Creates a valid lease.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Revokes the lease for good.
    pub fn revoke(&self) {
        self.is_revoked.store(true, Ordering::Relaxed);
    }

    /// Returns true if the lease was revoked.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        // Worlds run in one thread.
        self.is_revoked.load(Ordering::Relaxed)
    }

    /// Returns the flag that becomes true when the lease is revoked.
    pub(crate) fn revoked_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_revoked)
    }

    /// Checks that the lease is valid.
    ///
    /// # Errors
    /// It was revoked.
    pub fn check(&self) -> io::Result<()> {
        if self.is_revoked() {
            Err(revoked())
        } else {
            Ok(())
        }
    }

    /// Returns true if both are clones of one lease.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.is_revoked, &other.is_revoked)
    }
}

/// Returns the error of an operation on a revoked handle.
pub(crate) fn revoked() -> io::Error {
    io::Error::other("the process of this handle is dead")
}
