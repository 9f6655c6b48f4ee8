// SPDX-License-Identifier: Apache-2.0
//! Session ids for publications without `session-id` (docs/spec/shared-memory.md §9.4, docs/spec/wire.md §7.2).

use std::ops::RangeInclusive;

/// Generator of session ids: counts up from a random start, and skips the reserved range and ids in use.
#[derive(Debug)]
pub(crate) struct SessionIds {
    next: i32,
    reserved: RangeInclusive<i32>,
}

impl SessionIds {
    pub(crate) fn new(start: i32, reserved: RangeInclusive<i32>) -> Self {
        Self {
            next: start,
            reserved,
        }
    }

    /// Returns the next free id; `in_use` tests the ids of the stream.
    ///
    /// Terminates, because a stream cannot have as many publications as there are session ids.
    pub(crate) fn take(&mut self, mut in_use: impl FnMut(i32) -> bool) -> i32 {
        loop {
            let id = if self.reserved.contains(&self.next) {
                self.reserved.end().wrapping_add(1)
            } else {
                self.next
            };
            self.next = id.wrapping_add(1);
            if !in_use(id) {
                return id;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn take_skips_reserved_and_used_ids() {
        let mut ids = SessionIds::new(-3, -1..=1000);
        assert_eq!(ids.take(|_| false), -3);
        assert_eq!(ids.take(|_| false), -2);
        assert_eq!(ids.take(|_| false), 1001);
        assert_eq!(ids.take(|id| id == 1002), 1003);
    }

    #[test]
    fn take_wraps_at_maximum() {
        let mut ids = SessionIds::new(i32::MAX, -1..=1000);
        assert_eq!(ids.take(|_| false), i32::MAX);
        assert_eq!(ids.take(|_| false), i32::MIN);
    }

    #[test]
    fn take_wraps_when_reserved_range_ends_at_maximum() {
        let mut ids = SessionIds::new(5, 0..=i32::MAX);
        assert_eq!(ids.take(|_| false), i32::MIN);
    }
}
