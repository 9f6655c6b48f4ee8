// SPDX-License-Identifier: Apache-2.0
//! Cache prefetch hints.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Prefetches the cache lines of a range, which need not be mapped.
#[inline]
pub(super) fn prefetch(begin: *const u8, len: usize) {
    for line in (0..len).step_by(LINE) {
        prefetch_line(begin.wrapping_add(line));
    }
}

#[inline]
fn prefetch_line(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch of any address changes nothing and does not fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// Prefetches all cache lines of a value. A hint without other effects.
#[inline]
pub fn prefetch_value<T: ?Sized>(value: &T) {
    prefetch(std::ptr::from_ref(value).cast(), size_of_val(value));
}
