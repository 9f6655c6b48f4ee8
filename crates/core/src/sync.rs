// SPDX-License-Identifier: Apache-2.0
//! Atomics, fences and cells from one place, so that loom can check the lock-free pieces unmodified.
//!
//! A normal build uses the standard library. A build with `--cfg loom` uses loom's counterparts, which explore every
//! interleaving and every value that the memory model allows a load to return.

#[cfg(not(loom))]
pub use std::{
    hint::spin_loop,
    sync::{
        Arc, Mutex,
        atomic::{
            AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32,
            AtomicU64, AtomicUsize, Ordering, fence,
        },
    },
    thread,
};

#[cfg(loom)]
pub use loom::{
    hint::spin_loop,
    sync::{
        Arc, Mutex,
        atomic::{
            AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32,
            AtomicU64, AtomicUsize, Ordering, fence,
        },
    },
    thread,
};

#[cfg(loom)]
pub use loom::cell::UnsafeCell;

/// A cell with loom's interface: access goes through closures, so that loom can track it. Costs nothing in this build.
#[cfg(not(loom))]
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    /// Wraps a value.
    #[inline]
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Calls `f` with a pointer for reading. The caller ensures that there is no concurrent write.
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Calls `f` with a pointer for writing. The caller ensures that there is no other concurrent
    /// access.
    #[inline]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// Places a value on separate cache lines: two, because processors prefetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct CachePadded<T>(pub T);

impl<T> std::ops::Deref for CachePadded<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}
