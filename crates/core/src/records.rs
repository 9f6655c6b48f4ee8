//! Records, of which rings and broadcast buffers are made (docs/spec/shared-memory.md §3.1, §4.1): a header of length and type, a payload,
//! and room up to the next multiple of the header. What follows the records is a trailer of positions.

use crate::memory::{Overlay, Region, Shared};

/// Lengths are 32 bits wide.
pub(crate) const MAX_CAPACITY: usize = 1 << 30;

/// Bytes before the payload of a record. Records start at multiples of it.
pub(crate) const HEADER_LENGTH: usize = 8;

/// Where in the header the type is; the length comes first.
pub(crate) const TYPE_OFFSET: usize = 4;

/// Type of a record without a message.
pub(crate) const PADDING: i32 = -1;

/// Space that a record takes.
#[inline]
pub(crate) const fn aligned(length: usize) -> usize {
    length.next_multiple_of(HEADER_LENGTH)
}

/// Records and trailer of a buffer. `None` unless a power of two, at least `min_capacity`, is left for records.
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
