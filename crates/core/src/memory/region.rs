// SPDX-License-Identifier: Apache-2.0
//! Checked views of mapped memory.

use std::{fmt, io, ops::Range, ptr::NonNull, slice, sync::Arc};

use super::{
    MemoryError, OutOfBounds, Overlay, OverlayField,
    mapping::{FileIdentity, Mapping},
    prefetch::prefetch,
    view::{Claim, Shared},
};
use crate::sync::{AtomicI32, AtomicI64, AtomicU8, AtomicU32, Ordering};

/// Alignment of every region's first byte.
const ALIGN: usize = 8;

/// Bytes that are copied at once by racing copies.
const WORD: usize = 4;

/// A view of `len` bytes of a mapping. The mapping exists as long as any view of it. The first byte is aligned to 8
/// bytes; the first byte of a whole mapping to 64.
///
/// Every access is checked against the bounds of the region. An offset or length that is out
/// of bounds panics; callers check numbers from other processes first.
#[derive(Clone)]
pub struct Region {
    base: NonNull<u8>,
    len: usize,
    mapping: Arc<Mapping>,
}

// SAFETY: a region is a shared view of memory that belongs to the process (see `Mapping`). Threads share its bytes by
// the rules of the protocol that they carry, as processes do; see the module's documentation.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Returns zeroed memory of this process.
    pub fn anonymous(len: usize) -> Result<Self, MemoryError> {
        if len == 0 || isize::try_from(len).is_err() {
            return Err(MemoryError::InvalidLength { len: len as u64 });
        }
        let mapping =
            Mapping::anonymous(len).map_err(|_| MemoryError::OutOfMemory { len: len as u64 })?;
        Ok(Self::whole(mapping))
    }

    /// Permits or forbids accesses to the whole pages of a range of anonymous memory that is longer than 1 MiB: an access
    /// to forbidden pages ends the process with SIGSEGV.
    pub(super) fn set_accessible(
        &self,
        range: Range<usize>,
        is_accessible: bool,
    ) -> io::Result<()> {
        let page = rustix::param::page_size();
        let (start, end) = if is_accessible {
            (range.start / page * page, range.end.next_multiple_of(page))
        } else {
            (range.start.next_multiple_of(page), range.end / page * page)
        };
        let end = end.min(self.len);
        // SAFETY: the range is one of pages within this mapping. Only `MemoryStorage` calls this, to detect accesses to
        // pages that are not reserved, which on a full file system would end the process too.
        unsafe {
            self.mapping
                .set_accessible(start, end.saturating_sub(start), is_accessible)
        }
    }

    /// Returns the mapped file; `None` for memory of this process.
    pub(super) fn file_identity(&self) -> Option<FileIdentity> {
        self.mapping.file_identity()
    }

    /// Returns true if both are views of the same mapping.
    pub(super) fn shares_mapping_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.mapping, &other.mapping)
    }

    pub(super) fn whole(mapping: Mapping) -> Self {
        Self {
            base: mapping.base(),
            len: mapping.len(),
            mapping: Arc::new(mapping),
        }
    }

    /// Returns the length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the length is 0.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns a view of a part, which starts at a multiple of 8 bytes.
    pub fn sub(&self, offset: usize, len: usize) -> Result<Self, OutOfBounds> {
        self.check(offset, len, ALIGN)?;
        Ok(Self {
            base: self.at(offset),
            len,
            mapping: Arc::clone(&self.mapping),
        })
    }

    /// Returns the integer at an offset that is a multiple of 4.
    ///
    /// # Panics
    ///
    /// If the offset is not aligned or not inside.
    #[inline]
    pub fn atomic_i32(&self, offset: usize) -> &AtomicI32 {
        self.cell(offset)
    }

    /// Returns the integer at an offset that is a multiple of 8.
    ///
    /// # Panics
    ///
    /// If the offset is not aligned or not inside.
    #[inline]
    pub fn atomic_i64(&self, offset: usize) -> &AtomicI64 {
        self.cell(offset)
    }

    /// As [`atomic_i32`](Self::atomic_i32), for an offset that has been checked.
    ///
    /// # Safety
    ///
    /// `offset` is a multiple of 4 and `offset + 4 <= self.len()`.
    #[inline]
    pub unsafe fn atomic_i32_unchecked(&self, offset: usize) -> &AtomicI32 {
        debug_assert!(self.check(offset, 4, 4).is_ok());
        // SAFETY: inside as the caller guarantees, and aligned as `base` is aligned to 8. Every bit pattern is valid.
        unsafe { self.at(offset).cast().as_ref() }
    }

    /// Returns the overlay at an offset that is a multiple of 8.
    pub fn overlay<T: Overlay>(&self, offset: usize) -> Result<Shared<T>, OutOfBounds> {
        self.check(offset, T::SIZE, ALIGN)?;
        // SAFETY: just checked.
        Ok(unsafe { Shared::new(self.at(offset), Arc::clone(&self.mapping)) })
    }

    /// Returns a range of bytes that is not written while the slice is used: a committed record or frame. The contents
    /// are untrusted, and a hostile peer that violates the protocol may change them between two reads: copy values
    /// before they are checked and used.
    ///
    /// # Panics
    ///
    /// If the range is not inside.
    #[inline]
    pub fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        self.require(offset, len, 1);
        // SAFETY: just checked.
        unsafe { self.bytes_unchecked(offset, len) }
    }

    /// As [`bytes`](Self::bytes), for a range that has been checked.
    ///
    /// # Safety
    ///
    /// `offset + len <= self.len()`, without overflow.
    #[inline]
    pub unsafe fn bytes_unchecked(&self, offset: usize, len: usize) -> &[u8] {
        debug_assert!(self.check(offset, len, 1).is_ok());
        // SAFETY: inside as the caller guarantees, and mapped until the last view is dropped. That the range is not
        // written meanwhile is guaranteed by the protocol (module documentation); a peer in another process that
        // violates it can change values, which are untrusted anyway, but not the bounds.
        unsafe { slice::from_raw_parts(self.at(offset).as_ptr(), len) }
    }

    /// Copies a range of bytes that is not written meanwhile.
    ///
    /// # Panics
    ///
    /// If the range is not inside.
    #[inline]
    pub fn read(&self, offset: usize, target: &mut [u8]) {
        target.copy_from_slice(self.bytes(offset, target.len()));
    }

    /// Copies bytes into a range that belongs to the caller by the protocol.
    ///
    /// # Panics
    ///
    /// If the range is not inside.
    #[inline]
    pub fn write(&self, offset: usize, source: &[u8]) {
        self.require(offset, source.len(), 1);
        // SAFETY: just checked. That there is no concurrent access to the range is guaranteed by the protocol. `source`
        // may lie in the same mapping, hence `copy_from`, which allows for an overlap.
        unsafe {
            self.at(offset)
                .copy_from(NonNull::from(source).cast(), source.len());
        }
    }

    /// Zeroes a range that belongs to the caller by the protocol.
    ///
    /// # Panics
    ///
    /// If the range is not inside.
    #[inline]
    pub fn zero(&self, offset: usize, len: usize) {
        self.require(offset, len, 1);
        // SAFETY: just checked. That there is no concurrent access to the range is guaranteed by the protocol.
        unsafe { self.at(offset).write_bytes(0, len) }
    }

    /// Prefetches these bytes. A hint without other effects, for any range.
    #[inline]
    pub fn prefetch(&self, offset: usize, len: usize) {
        prefetch(self.base.as_ptr().wrapping_add(offset), len);
    }

    /// Returns a range that belongs to the caller exclusively until the claim is dropped: reserved by an atomic step of
    /// the protocol, or beyond the positions that readers access, in a log of which the caller is the only writer. Two
    /// claims of the same bytes at the same time violate the protocol.
    ///
    /// # Panics
    ///
    /// If the range is not inside.
    #[inline]
    pub fn claim(&self, offset: usize, len: usize) -> Claim<'_> {
        Claim::new(self, offset, len)
    }

    /// As [`claim`](Self::claim), for the duration of a borrow.
    ///
    /// # Safety
    ///
    /// `offset + len <= self.len()`, without overflow, and the range belongs to the caller exclusively for the duration
    /// of the borrow.
    #[inline]
    #[allow(clippy::mut_from_ref)] // a region is shared memory; the caller guarantees that the slice is unique
    pub(crate) unsafe fn claim_unchecked(&self, offset: usize, len: usize) -> &mut [u8] {
        debug_assert!(self.check(offset, len, 1).is_ok());
        // SAFETY: inside and unique as the caller guarantees, and mapped until the last view is dropped.
        unsafe { slice::from_raw_parts_mut(self.at(offset).as_ptr(), len) }
    }

    /// Copies a range that a peer may be writing at this moment. The result may be a mixture of old and new bytes; the
    /// caller detects this by the protocol afterwards, with an acquire fence in between. `offset` is a multiple of 8.
    ///
    /// # Panics
    ///
    /// If the range is not inside, or the offset is not a multiple of 8.
    pub fn copy_racing_out(&self, offset: usize, target: &mut [u8]) {
        self.require(offset, target.len(), 8);
        for (index, chunk) in target.chunks_mut(WORD).enumerate() {
            let at = offset + index * WORD;
            if let Some(word) = self.racing_word(at) {
                let word = word.load(Ordering::Relaxed).to_ne_bytes();
                chunk.copy_from_slice(&word[..chunk.len()]);
                continue;
            }
            for (index, byte) in chunk.iter_mut().enumerate() {
                // Atomic, as a peer may be writing.
                let source: &AtomicU8 = self.cell(at + index);
                *byte = source.load(Ordering::Relaxed);
            }
        }
    }

    /// Copies bytes into a range that a peer may be reading at this moment through
    /// [`copy_racing_out`](Self::copy_racing_out). There must be no other writer of these bytes and the rest of the
    /// last four. `offset` is a multiple of 8.
    ///
    /// # Panics
    ///
    /// If the range is not inside, or the offset is not a multiple of 8.
    pub fn copy_racing_in(&self, offset: usize, source: &[u8]) {
        self.require(offset, source.len(), 8);
        for (index, chunk) in source.chunks(WORD).enumerate() {
            let at = offset + index * WORD;
            if let Some(target) = self.racing_word(at) {
                let mut word = target.load(Ordering::Relaxed).to_ne_bytes();
                word[..chunk.len()].copy_from_slice(chunk);
                target.store(u32::from_ne_bytes(word), Ordering::Relaxed);
                continue;
            }
            for (index, byte) in chunk.iter().enumerate() {
                // Atomic, as a peer may be reading.
                let target: &AtomicU8 = self.cell(at + index);
                target.store(*byte, Ordering::Relaxed);
            }
        }
    }

    /// Returns four bytes for a racing copy, if all are inside the region. They are as wide as the lengths and types of
    /// records that are at the same place in another pass over the buffer: racing accesses must be of one width.
    #[inline]
    fn racing_word(&self, offset: usize) -> Option<&AtomicU32> {
        let is_inside = offset + WORD <= self.len;
        is_inside.then(|| self.cell(offset))
    }

    /// Faults in all pages of the region for writing (`MADV_POPULATE_WRITE`), which avoids page faults later. Best
    /// effort: an old kernel returns an error, which can be ignored. On a sparse file it reserves the pages; a full
    /// file system is an error here (`EFAULT`) rather than a SIGBUS later.
    pub fn populate(&self) -> io::Result<()> {
        self.mapping.populate(self.offset_in_mapping(), self.len)
    }

    /// Faults in all pages of the region for reading (`MADV_POPULATE_READ`): no page becomes dirty, and on a file
    /// system in memory later writes cause no page faults either. On a sparse file there it allocates the pages. Best
    /// effort, as [`populate`](Self::populate).
    pub fn fault_in(&self) -> io::Result<()> {
        self.mapping.fault_in(self.offset_in_mapping(), self.len)
    }

    /// Writes modified pages to the file of the region and waits for completion.
    pub fn flush(&self) -> io::Result<()> {
        self.mapping.flush(self.offset_in_mapping(), self.len)
    }

    fn offset_in_mapping(&self) -> usize {
        self.base.addr().get() - self.mapping.base().addr().get()
    }

    /// Returns the atomic at an offset.
    #[inline]
    #[track_caller]
    fn cell<T: OverlayField>(&self, offset: usize) -> &T {
        self.require(offset, size_of::<T>(), align_of::<T>());
        // SAFETY: inside and aligned: just checked, and `base` is aligned to 8, the largest alignment of an
        // `OverlayField`. Every bit pattern is valid for these types, and the bytes may change behind the reference.
        unsafe { self.at(offset).cast().as_ref() }
    }

    /// Returns the address of an offset that the caller has checked.
    #[inline]
    fn at(&self, offset: usize) -> NonNull<u8> {
        debug_assert!(offset <= self.len);
        // SAFETY: callers have checked `offset <= len`, so the result lies in the mapping or at its end.
        unsafe { self.base.add(offset) }
    }

    #[inline]
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

    #[inline]
    #[track_caller]
    pub(super) fn require(&self, offset: usize, len: usize, align: usize) {
        if let Err(error) = self.check(offset, len, align) {
            refuse(error);
        }
    }
}

/// Out of line, so that the hot path contains only a compare and a jump.
#[cold]
#[inline(never)]
#[track_caller]
fn refuse(error: OutOfBounds) -> ! {
    panic!("{error}")
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region")
            .field("base", &self.base)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
