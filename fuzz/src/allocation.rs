//! Counting what is allocated, so that a target can say how much an input may cost.

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
    // A thread that ends has no cells any more; what it still does counts for nobody.
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

/// Bytes that this thread has allocated and not given back. Memory that another thread gave back counts for that one.
pub fn held() -> isize {
    HELD.with(Cell::get)
}

/// Runs `act`, which may allocate no more than `budget` bytes in all, given back or not.
///
/// # Panics
/// If it allocates more.
pub fn within<T>(budget: usize, act: impl FnOnce() -> T) -> T {
    let before = ALLOCATED.with(Cell::get);
    let result = act();
    let allocated = ALLOCATED.with(Cell::get) - before;
    assert!(
        allocated <= budget,
        "allocated {allocated} bytes where {budget} are enough"
    );
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allocated_is_counted() {
        let before = held();
        let kept = within(1000, || vec![0_u8; 1000]);
        assert_eq!(held() - before, 1000);
        drop(kept);
        assert_eq!(held(), before);
    }

    #[test]
    #[should_panic(expected = "allocated 1001 bytes")]
    fn too_much_is_told() {
        within(1000, || drop(vec![0_u8; 1001]));
    }
}
