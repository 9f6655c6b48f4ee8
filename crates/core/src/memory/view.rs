//! Views of a region: typed overlays, and claims.

use std::{
    fmt,
    marker::PhantomData,
    ops::{Deref, DerefMut},
    ptr::NonNull,
    slice,
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
    base: NonNull<u8>,
    len: usize,
    region: PhantomData<&'region Region>,
}

impl Claim<'_> {
    /// A claim of `len` bytes.
    ///
    /// # Safety
    ///
    /// The bytes lie in a region that outlives the claim.
    #[inline]
    pub(super) unsafe fn new(base: NonNull<u8>, len: usize) -> Self {
        Self {
            base,
            len,
            region: PhantomData,
        }
    }
}

// SAFETY: the memory belongs to the process, and the bytes to the holder of the claim, on any thread.
unsafe impl Send for Claim<'_> {}
// SAFETY: through a shared reference the bytes are only read.
unsafe impl Sync for Claim<'_> {}

impl Deref for Claim<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the contract of `new`; the borrowed region keeps the memory, and by the protocol the bytes belong
        // to the holder exclusively.
        unsafe { slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

impl DerefMut for Claim<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`.
        unsafe { slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }
}

impl fmt::Debug for Claim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("base", &self.base)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
