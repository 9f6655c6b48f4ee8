//! A hint to the processor, where it takes any.

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// The line of this address, mapped or not, is used soon.
#[inline]
pub(super) fn prefetch(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch of any address changes nothing and does not fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
