//! Memory of the process: mapped files, anonymous mappings, and small heap allocations.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    fs::File,
    io,
    os::fd::AsRawFd,
    ptr::{self, NonNull},
};

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
}

/// Kind of access for which pages are faulted in.
#[derive(Clone, Copy, Debug)]
enum Prefault {
    Read,
    Write,
}

#[derive(Debug, PartialEq, Eq)]
enum Origin {
    Heap(Layout),
    Mmap,
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
            Self::mmap(len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
        }
    }

    /// The first `len` bytes of a file that is at least that long. `len` is at least 1.
    pub(super) fn file(file: &File, len: usize) -> io::Result<Self> {
        Self::mmap(len, libc::MAP_SHARED, file.as_raw_fd())
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
        self.prefault(offset, len, Prefault::Write)
    }

    /// Faults in all pages of a range for reading.
    pub(super) fn fault_in(&self, offset: usize, len: usize) -> io::Result<()> {
        self.prefault(offset, len, Prefault::Read)
    }

    fn prefault(&self, offset: usize, len: usize, access: Prefault) -> io::Result<()> {
        match self.origin {
            Origin::Heap(_) => Ok(()),
            #[cfg(target_os = "linux")]
            Origin::Mmap => self.on_pages(offset, len, |start, len| {
                let advice = match access {
                    Prefault::Read => libc::MADV_POPULATE_READ,
                    Prefault::Write => libc::MADV_POPULATE_WRITE,
                };
                // SAFETY: `on_pages` hands in whole pages of this mapping; the advice does not change their contents.
                unsafe { libc::madvise(start.cast(), len, advice) }
            }),
            #[cfg(not(target_os = "linux"))]
            Origin::Mmap => {
                let _ = access;
                Err(io::ErrorKind::Unsupported.into())
            }
        }
    }

    /// Writes modified pages of a range to the file and waits for completion.
    pub(super) fn flush(&self, offset: usize, len: usize) -> io::Result<()> {
        match self.origin {
            Origin::Heap(_) => Ok(()),
            Origin::Mmap => self.on_pages(offset, len, |start, len| {
                // SAFETY: `on_pages` hands in whole pages of this mapping.
                unsafe { libc::msync(start.cast(), len, libc::MS_SYNC) }
            }),
        }
    }

    /// Calls the system with the pages that hold a range, which lies in this mapping.
    fn on_pages(
        &self,
        offset: usize,
        len: usize,
        call: impl FnOnce(*mut u8, usize) -> libc::c_int,
    ) -> io::Result<()> {
        debug_assert!(offset <= self.len && len <= self.len - offset);
        let start = offset - offset % page_size();
        // SAFETY: `start <= offset`, which lies in the mapping.
        let address = unsafe { self.base.as_ptr().add(start) };
        if call(address, offset + len - start) == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
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
        })
    }

    fn mmap(len: usize, flags: libc::c_int, fd: libc::c_int) -> io::Result<Self> {
        // SAFETY: no address is asked for, so no mapping of others is touched. `fd` is open during the call, or -1.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                fd,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            base,
            len,
            origin: Origin::Mmap,
        })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        match self.origin {
            // SAFETY: `base` came from `alloc_zeroed` with this layout, and every view of it held an `Arc` of `self`.
            Origin::Heap(layout) => unsafe { dealloc(self.base.as_ptr(), layout) },
            Origin::Mmap => {
                // SAFETY: `base` and `len` came from `mmap`, and every view of it held an `Arc` of `self`.
                let result = unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
                debug_assert_eq!(0, result);
            }
        }
    }
}

fn page_size() -> usize {
    // SAFETY: the call takes no pointers.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}
