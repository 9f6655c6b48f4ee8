// SPDX-License-Identifier: Apache-2.0
//! Buffers for direct I/O.

use std::alloc::{Layout, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Alignment in bytes of the memory of an [`AlignedBuf`], and of offsets and lengths of direct I/O. A multiple of the
/// logical block length of all common devices (512 or 4096 bytes).
pub const ALIGNMENT: usize = 4096;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(4096))]
struct Page([u8; ALIGNMENT]);

/// A buffer whose memory starts at a multiple of [`ALIGNMENT`], as direct I/O needs it. It moves by value into a
/// [`Request`](crate::Request) and comes back with the [`Completion`](crate::Completion): allocate the buffers once,
/// and keep those that are not in use in a `Vec`.
///
/// ```
/// let mut buffer = taran_storage::AlignedBuf::new(10_000);
/// assert_eq!(0, buffer.as_ptr().addr() % taran_storage::ALIGNMENT);
/// buffer[..5].copy_from_slice(b"block");
/// assert_eq!((10_000, b"block\0"), (buffer.len(), buffer.first_chunk().unwrap()));
/// ```
#[derive(Default)]
pub struct AlignedBuf {
    pages: Vec<Page>,
    len: usize,
}

impl AlignedBuf {
    /// Allocates a buffer of `len` zero bytes. Aborts if there is no memory, as all collections do.
    ///
    /// # Panics
    /// If `len` is more than an address space holds (`isize::MAX`), as collections do.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let count = len.div_ceil(ALIGNMENT);
        let layout = Layout::array::<Page>(count);
        let Ok(layout) = layout else {
            panic!("a buffer of {len} bytes does not fit into an address space");
        };
        let pages = Page::new_vec_zeroed(count).unwrap_or_else(|_| handle_alloc_error(layout));
        Self { pages, len }
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.pages.as_slice().as_bytes()[..self.len]
    }
}

impl DerefMut for AlignedBuf {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.pages.as_mut_slice().as_mut_bytes()[..self.len]
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBuf")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "does not fit into an address space")]
    fn buffer_longer_than_an_address_space_panics_with_its_length() {
        let _ = AlignedBuf::new(usize::MAX);
    }
}
