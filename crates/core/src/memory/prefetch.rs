//! Hints to the processor, where it takes any.

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod hints {
    use std::arch::x86_64::{_MM_HINT_ET0, _MM_HINT_T0, _mm_prefetch};

    #[inline]
    pub(in super::super) fn to_read(address: *const u8) {
        // SAFETY: a prefetch of any address, mapped or not, changes nothing and does not fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }

    #[inline]
    pub(in super::super) fn to_write(address: *const u8) {
        // SAFETY: as above.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(address.cast()) }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod hints {
    #[inline]
    pub(in super::super) fn to_read(_address: *const u8) {}

    #[inline]
    pub(in super::super) fn to_write(_address: *const u8) {}
}

pub(super) use hints::{to_read, to_write};
