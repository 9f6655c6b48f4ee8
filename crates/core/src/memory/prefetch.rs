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

/// A hint that a value is used soon, all of it. Nothing happens but that it may be near then.
#[inline]
pub fn prefetch_value<T: ?Sized>(value: &T) {
    let begin = std::ptr::from_ref(value).cast::<u8>();
    for line in (0..size_of_val(value)).step_by(LINE) {
        prefetch(begin.wrapping_add(line));
    }
}
