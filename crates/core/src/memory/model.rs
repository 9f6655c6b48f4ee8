// SPDX-License-Identifier: Apache-2.0
//! Regions for loom: the same interface, with every access tracked.
//!
//! Loom's atomics are objects, not bytes, so a model's memory is three things side by side: an atomic object for each
//! integer, plain bytes with a tracked cell for each 8 of them, and one object per overlay. They do not share
//! values: in a model, a byte of memory is an atomic integer or plain bytes or part of an overlay. Only
//! [`Region::zero`] clears integers and bytes alike, as a ring does with records it has consumed.
//!
//! Objects must exist before the threads of a model start, or loom reports a race with their creation. Overlays are
//! created by their first use, the others by the first [`Region::sub`] that covers them (64-bit integers by their first
//! use): open everything first, then spawn.

use std::{
    any::{Any, TypeId},
    cell::UnsafeCell,
    collections::HashMap,
    fmt, io,
    marker::PhantomData,
    ops::{Deref, DerefMut},
    ptr::NonNull,
    slice,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use super::{MemoryError, OutOfBounds, Overlay};
use crate::sync::{self, AtomicI32, AtomicI64, Ordering};

const GRANULE: usize = 8;

type Overlays = HashMap<(usize, TypeId), Arc<dyn Any + Send + Sync>>;

struct Memory {
    bytes: NonNull<u8>,
    len: usize,
    granules: Box<[OnceLock<Granule>]>,
    overlays: Mutex<Overlays>,
}

/// The objects that represent 8 bytes.
struct Granule {
    words: [UnsafeCell<AtomicI32>; 2],
    wide: OnceLock<AtomicI64>,
    bytes: sync::UnsafeCell<()>,
}

// SAFETY: loom runs one thread of a model at a time, and tracks the accesses that would race.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    fn granule(&self, offset: usize) -> &Granule {
        self.granules[offset / GRANULE].get_or_init(|| Granule {
            words: [
                UnsafeCell::new(AtomicI32::new(0)),
                UnsafeCell::new(AtomicI32::new(0)),
            ],
            wide: OnceLock::new(),
            bytes: sync::UnsafeCell::new(()),
        })
    }

    fn word(&self, offset: usize) -> &UnsafeCell<AtomicI32> {
        &self.granule(offset).words[offset % GRANULE / 4]
    }

    fn granules(&self, offset: usize, len: usize) -> impl Iterator<Item = &Granule> {
        let first = offset / GRANULE;
        let end = if len == 0 {
            first
        } else {
            (offset + len).div_ceil(GRANULE)
        };
        (first..end).map(|index| self.granule(index * GRANULE))
    }

    fn track_read(&self, offset: usize, len: usize) {
        self.granules(offset, len)
            .for_each(|granule| granule.bytes.with(|_| ()));
    }

    fn track_write(&self, offset: usize, len: usize) {
        self.granules(offset, len)
            .for_each(|granule| granule.bytes.with_mut(|_| ()));
    }

    fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset <= self.len);
        // SAFETY: just checked.
        unsafe { self.bytes.add(offset) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let words = NonNull::slice_from_raw_parts(self.bytes.cast::<u64>(), self.len.div_ceil(8));
        // SAFETY: this is the slice that `Region::anonymous` leaked.
        drop(unsafe { Box::from_raw(words.as_ptr()) });
    }
}

/// See the normal build.
#[derive(Clone)]
pub struct Region {
    memory: Arc<Memory>,
    start: usize,
    len: usize,
}

#[allow(missing_docs)] // documented in the normal build
impl Region {
    pub fn anonymous(len: usize) -> Result<Self, MemoryError> {
        if len == 0 || isize::try_from(len).is_err() {
            return Err(MemoryError::InvalidLength { len: len as u64 });
        }
        let words = Box::leak(vec![0_u64; len.div_ceil(8)].into_boxed_slice());
        let memory = Memory {
            bytes: NonNull::from(words).cast(),
            len,
            granules: (0..len.div_ceil(GRANULE))
                .map(|_| OnceLock::new())
                .collect(),
            overlays: Mutex::default(),
        };
        Ok(Self {
            memory: Arc::new(memory),
            start: 0,
            len,
        })
    }

    /// All bytes of a model are accessible.
    pub(super) fn set_accessible(
        &self,
        _range: std::ops::Range<usize>,
        _is_accessible: bool,
    ) -> std::io::Result<()> {
        Ok(())
    }

    pub(super) fn shares_mapping_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.memory, &other.memory)
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn sub(&self, offset: usize, len: usize) -> Result<Self, OutOfBounds> {
        self.check(offset, len, 8)?;
        let start = self.start + offset;
        self.memory.granules(start, len).for_each(drop);
        Ok(Self {
            memory: Arc::clone(&self.memory),
            start,
            len,
        })
    }

    pub fn atomic_i32(&self, offset: usize) -> &AtomicI32 {
        self.require(offset, 4, 4);
        // SAFETY: exclusive references to the word exist inside of `zero` only, which runs nothing else.
        unsafe { &*self.memory.word(self.start + offset).get() }
    }

    pub fn atomic_i64(&self, offset: usize) -> &AtomicI64 {
        self.require(offset, 8, 8);
        self.memory
            .granule(self.start + offset)
            .wide
            .get_or_init(|| AtomicI64::new(0))
    }

    /// # Safety
    ///
    /// As in the normal build; checked here.
    pub unsafe fn atomic_i32_unchecked(&self, offset: usize) -> &AtomicI32 {
        self.atomic_i32(offset)
    }

    pub fn overlay<T: Overlay>(&self, offset: usize) -> Result<Shared<T>, OutOfBounds> {
        self.check(offset, T::SIZE, 8)?;
        let key = (self.start + offset, TypeId::of::<T>());
        let mut overlays = self
            .memory
            .overlays
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let overlay = Arc::clone(overlays.entry(key).or_insert_with(|| Arc::new(T::blank())));
        let Ok(overlay) = overlay.downcast() else {
            unreachable!("the key holds the type")
        };
        Ok(Shared {
            overlay,
            owns: PhantomData,
        })
    }

    pub fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        self.require(offset, len, 1);
        self.memory.track_read(self.start + offset, len);
        // SAFETY: just checked, and loom has verified that there is no concurrent write.
        unsafe { slice::from_raw_parts(self.memory.at(self.start + offset).as_ptr(), len) }
    }

    /// # Safety
    ///
    /// As in the normal build; checked here.
    pub unsafe fn bytes_unchecked(&self, offset: usize, len: usize) -> &[u8] {
        self.bytes(offset, len)
    }

    pub fn read(&self, offset: usize, target: &mut [u8]) {
        target.copy_from_slice(self.bytes(offset, target.len()));
    }

    pub fn write(&self, offset: usize, source: &[u8]) {
        self.require(offset, source.len(), 1);
        self.memory.track_write(self.start + offset, source.len());
        let target = self.memory.at(self.start + offset);
        // SAFETY: just checked, and loom has verified that there is no concurrent access.
        unsafe { target.copy_from(NonNull::from(source).cast(), source.len()) }
    }

    /// A prefetch is not an access.
    pub fn prefetch(&self, _offset: usize, _len: usize) {}

    pub fn zero(&self, offset: usize, len: usize) {
        self.require(offset, len, 1);
        let start = self.start + offset;
        self.memory.track_write(start, len);
        // SAFETY: just checked, and loom has verified that there is no concurrent access.
        unsafe { self.memory.at(start).write_bytes(0, len) }
        for word in (start.next_multiple_of(4)..start + len).step_by(4) {
            // SAFETY: loom runs one thread at a time, and nothing else runs inside of `with_mut`.
            let word = unsafe { &mut *self.memory.word(word).get() };
            word.with_mut(|value| *value = 0);
        }
        for granule in self.memory.granules(start, len) {
            if let Some(wide) = granule.wide.get() {
                wide.store(0, Ordering::Relaxed);
            }
        }
    }

    pub fn claim(&self, offset: usize, len: usize) -> Claim<'_> {
        self.require(offset, len, 1);
        self.memory.track_write(self.start + offset, len);
        Claim {
            memory: &self.memory,
            start: self.start + offset,
            len,
        }
    }

    /// # Safety
    ///
    /// As in the normal build; checked here.
    #[allow(clippy::mut_from_ref)] // as in the normal build
    pub(crate) unsafe fn claim_unchecked(&self, offset: usize, len: usize) -> &mut [u8] {
        self.require(offset, len, 1);
        self.memory.track_write(self.start + offset, len);
        // SAFETY: just checked, and loom has verified that there is no concurrent access.
        unsafe { slice::from_raw_parts_mut(self.memory.at(self.start + offset).as_ptr(), len) }
    }

    pub fn copy_racing_out(&self, offset: usize, target: &mut [u8]) {
        self.require(offset, target.len(), 8);
        for (index, chunk) in target.chunks_mut(4).enumerate() {
            let word = self.atomic_i32(offset + index * 4).load(Ordering::Relaxed);
            chunk.copy_from_slice(&word.to_ne_bytes()[..chunk.len()]);
        }
    }

    pub fn copy_racing_in(&self, offset: usize, source: &[u8]) {
        self.require(offset, source.len(), 8);
        for (index, chunk) in source.chunks(4).enumerate() {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            self.atomic_i32(offset + index * 4)
                .store(i32::from_ne_bytes(word), Ordering::Relaxed);
        }
    }

    pub fn populate(&self) -> io::Result<()> {
        Ok(())
    }

    pub fn fault_in(&self) -> io::Result<()> {
        Ok(())
    }

    pub fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    fn check(&self, offset: usize, len: usize, align: usize) -> Result<(), OutOfBounds> {
        if offset <= self.len && len <= self.len - offset && offset.is_multiple_of(align) {
            Ok(())
        } else {
            Err(OutOfBounds {
                offset,
                len,
                align,
                region_len: self.len,
            })
        }
    }

    #[track_caller]
    fn require(&self, offset: usize, len: usize, align: usize) {
        if let Err(error) = self.check(offset, len, align) {
            panic!("{error}");
        }
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// See the normal build.
pub struct Shared<T: Overlay> {
    overlay: Arc<T>,
    owns: PhantomData<fn() -> T>,
}

impl<T: Overlay> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.overlay
    }
}

impl<T: Overlay> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self {
            overlay: Arc::clone(&self.overlay),
            owns: PhantomData,
        }
    }
}

impl<T: Overlay + fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.overlay.fmt(f)
    }
}

/// See the normal build. Loom tracks a write when the claim is created and when it is dropped.
pub struct Claim<'region> {
    memory: &'region Memory,
    start: usize,
    len: usize,
}

impl Deref for Claim<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `Region::claim` checked the bounds, and loom tracks concurrent access to the same bytes.
        unsafe { slice::from_raw_parts(self.memory.at(self.start).as_ptr(), self.len) }
    }
}

impl DerefMut for Claim<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`.
        unsafe { slice::from_raw_parts_mut(self.memory.at(self.start).as_ptr(), self.len) }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.memory.track_write(self.start, self.len);
    }
}

impl fmt::Debug for Claim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
