// SPDX-License-Identifier: Apache-2.0
//! Memory of the process: mapped files, anonymous mappings, and small heap allocations.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    fs::{File, Metadata},
    io,
    os::unix::fs::MetadataExt,
    ptr::NonNull,
};

use memmap2::{MmapMut, MmapOptions, MmapRaw};
use rustix::mm::{MprotectFlags, mprotect};

/// Anonymous memory up to this length is allocated on the heap, where sanitizers detect accesses beyond its end.
const HEAP_LIMIT: usize = 1 << 20;

/// Alignment of heap memory; mappings are aligned to pages.
const HEAP_ALIGN: usize = 64;

/// `len` bytes at `base`, readable and writable until drop.
#[derive(Debug)]
pub(super) struct Mapping {
    base: NonNull<u8>,
    len: usize,
    origin: Origin,
    /// The mapped file; `None` for memory of this process.
    file: Option<FileIdentity>,
}

#[derive(Debug)]
enum Origin {
    Heap(Layout),
    Mmap(MmapRaw),
}

/// Device and inode of a file. No other file has the same while this one is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}

// SAFETY: the memory belongs to the process, not to a thread. How threads share its bytes is the business of `Region`.
unsafe impl Send for Mapping {}
// SAFETY: as above; through a shared reference only the constant `base` and `len` are read.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Zeroed memory of this process. `len` is at least 1.
    pub(super) fn anonymous(len: usize) -> io::Result<Self> {
        if len <= HEAP_LIMIT {
            Self::heap(len)
        } else {
            Self::mmap(len, MmapMut::map_anon(len)?.into(), None)
        }
    }

    /// The first `len` bytes of a file that is at least that long. `len` is at least 1.
    pub(super) fn file(file: &File, len: usize) -> io::Result<Self> {
        let identity = FileIdentity::of(&file.metadata()?);
        Self::mmap(
            len,
            MmapOptions::new().len(len).map_raw(file)?,
            Some(identity),
        )
    }

    /// Returns the mapped file; `None` for memory of this process.
    pub(super) fn file_identity(&self) -> Option<FileIdentity> {
        self.file
    }

    #[inline]
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Faults in all pages of a range for writing. Returns an error if the file system has no space for them (a later
    /// access would raise SIGBUS).
    pub(super) fn populate(&self, offset: usize, len: usize) -> io::Result<()> {
        self.advise(memmap2::Advice::PopulateWrite, offset, len)
    }

    /// Faults in all pages of a range for reading.
    pub(super) fn fault_in(&self, offset: usize, len: usize) -> io::Result<()> {
        self.advise(memmap2::Advice::PopulateRead, offset, len)
    }

    fn advise(&self, advice: memmap2::Advice, offset: usize, len: usize) -> io::Result<()> {
        match &self.origin {
            Origin::Heap(_) => Ok(()),
            Origin::Mmap(mmap) => mmap.advise_range(advice, offset, len),
        }
    }

    /// Permits or forbids accesses to the pages of a range. Memory on the heap stays accessible.
    ///
    /// # Safety
    ///
    /// Nothing may rely on the contents of forbidden pages: an access ends the process with SIGSEGV. `offset + len` is at
    /// most the length, and `offset` is a multiple of the page size.
    pub(super) unsafe fn set_accessible(
        &self,
        offset: usize,
        len: usize,
        is_accessible: bool,
    ) -> io::Result<()> {
        if len == 0 || matches!(self.origin, Origin::Heap(_)) {
            return Ok(());
        }
        let flags = if is_accessible {
            MprotectFlags::READ | MprotectFlags::WRITE
        } else {
            MprotectFlags::empty()
        };
        // SAFETY: the range lies within this mapping.
        let start = unsafe { self.base.as_ptr().add(offset) };
        // SAFETY: as the caller states.
        unsafe { mprotect(start.cast(), len, flags) }.map_err(io::Error::from)
    }

    /// Writes modified pages of a range to the file and waits for completion.
    pub(super) fn flush(&self, offset: usize, len: usize) -> io::Result<()> {
        match &self.origin {
            Origin::Heap(_) => Ok(()),
            Origin::Mmap(mmap) => mmap.flush_range(offset, len),
        }
    }

    fn heap(len: usize) -> io::Result<Self> {
        let layout =
            Layout::from_size_align(len, HEAP_ALIGN).map_err(|_| io::ErrorKind::OutOfMemory)?;
        // SAFETY: `len`, the layout's size, is not 0.
        let base = unsafe { alloc_zeroed(layout) };
        let base = NonNull::new(base).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            base,
            len,
            origin: Origin::Heap(layout),
            file: None,
        })
    }

    fn mmap(len: usize, mmap: MmapRaw, file: Option<FileIdentity>) -> io::Result<Self> {
        let base = NonNull::new(mmap.as_mut_ptr()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            base,
            len,
            origin: Origin::Mmap(mmap),
            file,
        })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if let Origin::Heap(layout) = self.origin {
            // SAFETY: `base` came from `alloc_zeroed` with this layout, and every view of it held an `Arc` of `self`.
            unsafe { dealloc(self.base.as_ptr(), layout) }
        }
    }
}
