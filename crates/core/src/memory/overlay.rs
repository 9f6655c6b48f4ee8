// SPDX-License-Identifier: Apache-2.0
//! Typed views of shared memory, declared with offsets that the compiler checks.

use crate::sync::{
    AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
};

/// A type that can be laid over shared memory. Implemented by [`overlay!`](crate::overlay) only.
///
/// # Safety
///
/// The type consists of [`OverlayField`]s alone and, outside of loom, is exactly [`SIZE`](Self::SIZE) bytes long with
/// an alignment of at most 8.
pub unsafe trait Overlay: Send + Sync + 'static {
    /// Length in bytes.
    const SIZE: usize;

    /// A zeroed value. Loom's atomics cannot lie on bytes, so under loom this value represents the memory.
    #[cfg(loom)]
    fn blank() -> Self;
}

/// A field of an overlay.
///
/// # Safety
///
/// Every bit pattern is a valid value, the type has no padding, and all its bytes may change behind a shared reference.
pub unsafe trait OverlayField: Send + Sync + 'static {
    /// A zeroed value.
    fn blank() -> Self;
}

macro_rules! atomic_field {
    ($($atomic:ty),*) => {$(
        // SAFETY: an atomic integer takes every bit pattern, is as long as its integer, and has interior mutability.
        unsafe impl OverlayField for $atomic {
            fn blank() -> Self {
                Self::new(0)
            }
        }
    )*};
}

atomic_field!(
    AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64
);

// SAFETY: an array has no padding between its elements, and the elements satisfy the contract.
unsafe impl<T: OverlayField, const N: usize> OverlayField for [T; N] {
    fn blank() -> Self {
        std::array::from_fn(|_| T::blank())
    }
}

/// `N` bytes of an overlay that are not accessed through it: unused, or accessed through the region.
#[repr(transparent)]
pub struct Padding<const N: usize>([std::sync::atomic::AtomicU8; N]);

// SAFETY: atomic bytes take every bit pattern, have no padding, and have interior mutability.
unsafe impl<const N: usize> OverlayField for Padding<N> {
    fn blank() -> Self {
        Self([const { std::sync::atomic::AtomicU8::new(0) }; N])
    }
}

impl<const N: usize> std::fmt::Debug for Padding<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Padding<{N}>")
    }
}

/// Declares a layout in shared memory: each field with its offset, the whole with its length, all asserted at compile
/// time. Fields are atomics, arrays of atomics, and [`Padding`](crate::memory::Padding)s for bytes that are not
/// accessed by name. The fields have the visibility of the struct.
///
/// ```
/// use taran_core::{memory::{Padding, Region}, overlay, sync::{AtomicI32, AtomicI64, Ordering}};
///
/// overlay! {
///     /// A header.
///     pub struct Header: 64 {
///         /// Written last.
///         0 => version: AtomicI32,
///         4 => padding_4: Padding<4>,
///         8 => tails: [AtomicI64; 3],
///         32 => padding_32: Padding<32>,
///     }
/// }
///
/// let region = Region::anonymous(128)?;
/// let header = region.overlay::<Header>(64)?;
/// header.version.store(512, Ordering::Release);
/// assert_eq!(512, region.atomic_i32(64).load(Ordering::Acquire));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[macro_export]
macro_rules! overlay {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident : $size:literal {
            $( $(#[$field_attribute:meta])* $offset:literal => $field:ident : $type:ty ),* $(,)?
        }
    ) => {
        $(#[$attribute])*
        #[repr(C)]
        #[derive(Debug)]
        $visibility struct $name {
            $( $(#[$field_attribute])* #[doc = concat!("\n\nOffset ", $offset, ".")] $visibility $field: $type, )*
        }

        #[cfg(not(loom))]
        const _: () = {
            assert!(size_of::<$name>() == $size, "the fields do not add up to the length");
            assert!(align_of::<$name>() <= 8, "regions are aligned to 8 bytes");
            $( assert!(
                ::core::mem::offset_of!($name, $field) == $offset,
                concat!("field ", stringify!($field), " is not at offset ", $offset),
            ); )*
        };

        const _: () = {
            const fn is_field<T: $crate::memory::OverlayField>() {}
            $( is_field::<$type>(); )*
        };

        // SAFETY: `is_field` above holds each field to `OverlayField`, and the length is asserted.
        unsafe impl $crate::memory::Overlay for $name {
            const SIZE: usize = $size;

            #[cfg(loom)]
            fn blank() -> Self {
                Self { $( $field: $crate::memory::OverlayField::blank(), )* }
            }
        }
    };
}
