// SPDX-License-Identifier: Apache-2.0
//! A handle on one counter.

use super::NULL_COUNTER_ID;
use super::layout::{VALUES_LENGTH, Values};
use crate::memory::{Region, Shared};
use crate::sync::Ordering;

/// A handle on one counter. Clones refer to the same counter. All methods are lock free and may be called
/// from any thread; methods that say "single writer" are for counters of which one thread at a time
/// changes the value, and are cheaper for it.
///
/// The handle keeps the memory mapped, not the counter allocated: after the counter is freed and its id reused, the
/// handle refers to another counter.
#[derive(Clone, Debug)]
pub struct Counter {
    record: Shared<Values>,
    id: i32,
}

impl Counter {
    pub(super) fn new(record: Shared<Values>, id: i32) -> Self {
        Self { record, id }
    }

    /// A counter in private memory, with the id −1: for tests, and for optional counters.
    ///
    /// # Panics
    /// If the operating system has no memory left for one page.
    pub fn detached() -> Self {
        let region = Region::anonymous(VALUES_LENGTH).expect("one page of memory");
        let record = region
            .overlay(0)
            .expect("the region is as long as the record");
        Self::new(record, NULL_COUNTER_ID)
    }

    /// Returns the id.
    pub fn id(&self) -> i32 {
        self.id
    }

    /// The value; acquire, the partner of [`Self::set`].
    #[inline]
    pub fn get(&self) -> i64 {
        self.record.value.load(Ordering::Acquire)
    }

    /// The value without ordering, for its single writer or for statistics.
    #[inline]
    pub fn get_plain(&self) -> i64 {
        self.record.value.load(Ordering::Relaxed)
    }

    /// Sets the value; release: a reader that uses [`Self::get`] also sees the writes before.
    #[inline]
    pub fn set(&self, value: i64) {
        self.record.value.store(value, Ordering::Release);
    }

    /// Sets the value without ordering.
    #[inline]
    pub fn set_plain(&self, value: i64) {
        self.record.value.store(value, Ordering::Relaxed);
    }

    /// Adds one, from any thread; returns the previous value.
    #[inline]
    pub fn increment(&self) -> i64 {
        self.add(1)
    }

    /// Adds, from any thread; wraps around; returns the previous value.
    #[inline]
    pub fn add(&self, delta: i64) -> i64 {
        self.record.value.fetch_add(delta, Ordering::AcqRel)
    }

    /// Sets the value, from any thread; returns the previous value.
    #[inline]
    pub fn swap(&self, value: i64) -> i64 {
        self.record.value.swap(value, Ordering::AcqRel)
    }

    /// Sets the value to `new` if it is `current`, from any thread.
    ///
    /// # Errors
    /// The present value, if it is not `current`.
    #[inline]
    pub fn compare_exchange(&self, current: i64, new: i64) -> Result<i64, i64> {
        self.record
            .value
            .compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)
    }

    /// Adds without a read-modify-write instruction, a store only: single writer.
    #[inline]
    pub fn add_exclusive(&self, delta: i64) {
        self.set(self.get_plain().wrapping_add(delta));
    }

    /// Raises the value to `proposed` if it is lower; returns true if it was raised. Single writer.
    #[inline]
    pub fn propose_max(&self, proposed: i64) -> bool {
        let raised = self.get_plain() < proposed;
        if raised {
            self.set(proposed);
        }
        raised
    }

    /// Returns the registration id, e.g. of a publication; acquire.
    pub fn registration_id(&self) -> i64 {
        self.record.registration_id.load(Ordering::Acquire)
    }

    /// Returns the id of the client that owns the counter.
    pub fn owner_id(&self) -> i64 {
        self.record.owner_id.load(Ordering::Relaxed)
    }

    /// An id whose meaning depends on the type, e.g. the image of a subscriber position.
    pub fn reference_id(&self) -> i64 {
        self.record.reference_id.load(Ordering::Relaxed)
    }

    /// Sets the reference id, for the owner of the counter.
    pub fn set_reference_id(&self, reference_id: i64) {
        self.record
            .reference_id
            .store(reference_id, Ordering::Relaxed);
    }

    pub(super) fn record(&self) -> &Values {
        &self.record
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn values_are_set_added_and_raised() {
        let counter = Counter::detached();
        let same = counter.clone();
        counter.set(5);
        assert_eq!((same.get(), same.get_plain()), (5, 5));
        assert_eq!(same.increment(), 5);
        assert_eq!(same.add(-8), 6);
        same.add_exclusive(3);
        assert_eq!(counter.get(), 1);
        assert!(counter.propose_max(2));
        assert!(!counter.propose_max(2));
        counter.set_plain(i64::MAX);
        counter.add_exclusive(1);
        assert_eq!(counter.get(), i64::MIN);
        assert_eq!(counter.id(), NULL_COUNTER_ID);
    }

    #[test]
    fn threads_can_count_together() {
        let counter = Counter::detached();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).map(|_| counter.increment()).max());
            }
        });
        assert_eq!(counter.get(), 4000);
    }
}
