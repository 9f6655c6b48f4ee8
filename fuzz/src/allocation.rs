// SPDX-License-Identifier: Apache-2.0
//! Allocation counter, with which targets limit the memory that an input may cost.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
    static HELD: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

fn count(allocated: usize, held: isize) {
    // The cells of an ending thread are destroyed; its last allocations are not counted.
    let _ = ALLOCATED.try_with(|cell| cell.set(cell.get().saturating_add(allocated)));
    let _ = HELD.try_with(|cell| cell.set(cell.get().saturating_add(held)));
}

// SAFETY: everything is handed to the system's allocator as it came; counting allocates nothing, because the cells are
// made by constants.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), layout.size() as isize);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(0, -(layout.size() as isize));
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), layout.size() as isize);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size, new_size as isize - layout.size() as isize);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

/// Returns the bytes that this thread has allocated minus those that it has freed.
pub fn held() -> isize {
    HELD.with(Cell::get)
}

/// Runs `act`, which may allocate at most `budget` bytes in all, freed or not.
///
/// # Panics
/// If it allocates more.
pub fn within<T>(budget: usize, act: impl FnOnce() -> T) -> T {
    let before = ALLOCATED.with(Cell::get);
    let result = act();
    let allocated = ALLOCATED.with(Cell::get) - before;
    assert!(
        allocated <= budget,
        "allocated {allocated} bytes, the budget is {budget}"
    );
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_counts_allocated_and_freed_bytes() {
        let before = held();
        let kept = within(1000, || vec![0_u8; 1000]);
        assert_eq!(held() - before, 1000);
        drop(kept);
        assert_eq!(held(), before);
    }

    #[test]
    #[should_panic(expected = "allocated 1001 bytes")]
    fn within_over_budget_panics() {
        within(1000, || drop(vec![0_u8; 1001]));
    }
}
