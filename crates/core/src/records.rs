// SPDX-License-Identifier: Apache-2.0
//! Records of ring and broadcast buffers (docs/spec/shared-memory.md §3.1, §4.1): a header with length and type, a
//! payload, and padding to the next multiple of the header length. A trailer with positions follows the records.

use crate::memory::{Overlay, Region, Shared};

/// Largest capacity: lengths are 32 bits wide.
pub(crate) const MAX_CAPACITY: usize = 1 << 30;

/// Length of the header of a record. Records start at multiples of it.
pub(crate) const HEADER_LENGTH: usize = 8;

/// Offset of the type in the header, behind the length.
pub(crate) const TYPE_OFFSET: usize = 4;

/// Type of a record without a message.
pub(crate) const PADDING: i32 = -1;

/// Returns the space that a record of this length takes.
#[inline]
pub(crate) const fn aligned(length: usize) -> usize {
    length.next_multiple_of(HEADER_LENGTH)
}

/// Splits a buffer into records and trailer. `None` unless the length of the records is a power of two and at least
/// `min_capacity`.
pub(crate) fn split<T: Overlay>(
    region: &Region,
    trailer_length: usize,
    min_capacity: usize,
) -> Option<(Region, Shared<T>)> {
    let capacity = region.len().checked_sub(trailer_length)?;
    if !capacity.is_power_of_two() || !(min_capacity..=MAX_CAPACITY).contains(&capacity) {
        return None;
    }
    let records = region.sub(0, capacity).ok()?;
    let trailer = region.overlay(capacity).ok()?;
    Some((records, trailer))
}
