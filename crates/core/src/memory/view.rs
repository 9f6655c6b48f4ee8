// SPDX-License-Identifier: Apache-2.0
//! Views of a region: typed overlays, and claims.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    ptr::NonNull,
    sync::Arc,
};

use super::{Overlay, Region, mapping::Mapping};

/// A typed view of a piece of a region. Keeps the mapping alive.
pub struct Shared<T: Overlay> {
    overlay: NonNull<T>,
    mapping: Arc<Mapping>,
}

impl<T: Overlay> Shared<T> {
    /// A view of `T::SIZE` bytes.
    ///
    /// # Safety
    ///
    /// The bytes lie in the mapping; `base` is a multiple of 8.
    pub(super) unsafe fn new(base: NonNull<u8>, mapping: Arc<Mapping>) -> Self {
        Self {
            overlay: base.cast(),
            mapping,
        }
    }
}

// SAFETY: `Overlay` is `Send + Sync`, and the mapping may be shared between threads (see `Region`).
unsafe impl<T: Overlay> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Overlay> Sync for Shared<T> {}

impl<T: Overlay> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the contract of `new`; `mapping` keeps the memory, and an `Overlay` consists
        // of atomics and padding, for which every bit pattern is valid and may change.
        unsafe { self.overlay.as_ref() }
    }
}

impl<T: Overlay> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self {
            overlay: self.overlay,
            mapping: Arc::clone(&self.mapping),
        }
    }
}

impl<T: Overlay + fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Bytes of a region that belong to the holder exclusively by the protocol. Borrows the region: a reference count per
/// message would cause contention between threads.
pub struct Claim<'region> {
    region: &'region Region,
    offset: usize,
    len: usize,
}

impl<'region> Claim<'region> {
    /// A claim of `len` bytes of a region at `offset`.
    ///
    /// # Panics
    ///
    /// If the range is not inside.
    #[inline]
    #[track_caller]
    pub(super) fn new(region: &'region Region, offset: usize, len: usize) -> Self {
        region.require(offset, len, 1);
        Self {
            region,
            offset,
            len,
        }
    }
}

impl Deref for Claim<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `new` has checked the range.
        unsafe { self.region.bytes_unchecked(self.offset, self.len) }
    }
}

impl DerefMut for Claim<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: `new` has checked the range, which by the protocol belongs to the holder exclusively.
        unsafe { self.region.claim_unchecked(self.offset, self.len) }
    }
}

impl fmt::Debug for Claim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("offset", &self.offset)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
