// SPDX-License-Identifier: Apache-2.0
//! Positions in a stream: conversion between 64-bit positions, term ids and term offsets (docs/spec/shared-memory.md
//! §7.3 and the notation of docs/spec/wire.md).
//!
//! A log has three partitions of `term length` bytes each. Term ids count up from a random initial id and wrap at
//! 32 bits; the position is the byte count since offset 0 of the initial term and never wraps.

/// Alignment of frames in bytes.
pub const FRAME_ALIGNMENT: i32 = 32;
/// Minimum term length in bytes. Loom models use tiny terms.
pub const TERM_LENGTH_MIN: i32 = if cfg!(loom) { 128 } else { 64 * 1024 };
/// Maximum term length in bytes.
pub const TERM_LENGTH_MAX: i32 = 1024 * 1024 * 1024;
/// Number of terms in a log.
pub const PARTITION_COUNT: usize = 3;
/// Maximum message length in bytes, for any term length.
pub const MESSAGE_LENGTH_MAX: i32 = 16 * 1024 * 1024;

/// Rounds a length up to the frame alignment. Lengths within 31 of `i32::MAX` wrap, so the caller checks the range
/// first.
#[inline]
#[must_use]
pub const fn align32(length: i32) -> i32 {
    length.wrapping_add(FRAME_ALIGNMENT - 1) & !(FRAME_ALIGNMENT - 1)
}

/// Returns true if `length` is a valid term length: a power of two from 64 KiB to 1 GiB.
#[inline]
#[must_use]
pub const fn is_term_length(length: i32) -> bool {
    length >= TERM_LENGTH_MIN && length <= TERM_LENGTH_MAX && length.count_ones() == 1
}

/// Returns true if a frame can start at `offset` in a term of `term_length` bytes.
#[inline]
#[must_use]
pub const fn is_frame_offset(offset: i32, term_length: i32) -> bool {
    offset >= 0 && offset < term_length && offset & (FRAME_ALIGNMENT - 1) == 0
}

/// Term length that is not a power of two from 64 KiB to 1 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("term length {0} is not a power of two from 65536 to 1073741824")]
pub struct InvalidTermLength(pub i32);

/// Initial term id and binary logarithm of the term length, which relate positions to terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermGeometry {
    initial_term_id: i32,
    bits: u32,
}

impl TermGeometry {
    /// Returns the geometry of a log with terms of `term_length` bytes.
    ///
    /// # Errors
    /// The length is not a power of two from 64 KiB to 1 GiB.
    pub const fn new(initial_term_id: i32, term_length: i32) -> Result<Self, InvalidTermLength> {
        if is_term_length(term_length) {
            Ok(Self {
                initial_term_id,
                bits: term_length.trailing_zeros(),
            })
        } else {
            Err(InvalidTermLength(term_length))
        }
    }

    /// Returns the id of the term that holds position 0.
    #[inline]
    #[must_use]
    pub const fn initial_term_id(&self) -> i32 {
        self.initial_term_id
    }

    /// Returns the binary logarithm of the term length, 16 to 30.
    #[inline]
    #[must_use]
    pub const fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the term length in bytes.
    #[inline]
    #[must_use]
    pub const fn term_length(&self) -> i32 {
        1 << self.bits
    }

    /// Returns the number of terms from the initial term to `term_id`; negative if `term_id` is earlier.
    #[inline]
    #[must_use]
    pub const fn term_count(&self, term_id: i32) -> i32 {
        term_id.wrapping_sub(self.initial_term_id)
    }

    /// Returns the stream position of an offset in a term; negative if the term precedes the initial one. The term
    /// after the last of the 2^31 terms, whose id has wrapped, counts as later: its offset 0 is
    /// [`max_position`](Self::max_position).
    #[inline]
    #[must_use]
    pub const fn position(&self, term_id: i32, term_offset: i32) -> i64 {
        let count = match self.term_count(term_id) {
            i32::MIN => 1 << 31,
            count => count as i64,
        };
        // Both terms are below 2^62 in magnitude, so the sum cannot overflow.
        (count << self.bits) + term_offset as i64
    }

    /// Returns the id of the term that holds `position`.
    #[inline]
    #[must_use]
    pub const fn term_id(&self, position: i64) -> i32 {
        ((position >> self.bits) as i32).wrapping_add(self.initial_term_id)
    }

    /// Returns the offset of `position` in its term.
    #[inline]
    #[must_use]
    pub const fn term_offset(&self, position: i64) -> i32 {
        (position & ((1 << self.bits) - 1)) as i32
    }

    /// Returns the index (0 to 2) of the partition that holds `position`. Any value yields a valid index.
    #[inline]
    #[must_use]
    pub const fn partition(&self, position: i64) -> usize {
        partition_of_count((position >> self.bits) as i32)
    }

    /// Returns the start position of the term that holds `position`.
    #[inline]
    #[must_use]
    pub const fn term_begin(&self, position: i64) -> i64 {
        position & !((1 << self.bits) - 1)
    }

    /// Returns the first position beyond the end of a stream: 2^31 terms.
    #[inline]
    #[must_use]
    pub const fn max_position(&self) -> i64 {
        1 << (self.bits + 31)
    }

    /// Returns the maximum message length in bytes: an eighth of the term, at most 16 MiB.
    #[inline]
    #[must_use]
    pub const fn max_message_length(&self) -> i32 {
        let eighth = self.term_length() / 8;
        if eighth < MESSAGE_LENGTH_MAX {
            eighth
        } else {
            MESSAGE_LENGTH_MAX
        }
    }
}

/// Returns the index (0 to 2) of the partition of the `term_count`-th term. A negative count does not occur in a valid
/// log, but still yields a valid index, because the count may come from shared memory.
#[inline]
#[must_use]
pub const fn partition_of_count(term_count: i32) -> usize {
    (term_count as u32 % PARTITION_COUNT as u32) as usize
}

/// Raw tail counter: term id in the high half, unsigned byte offset in the low half (docs/spec/shared-memory.md §7.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawTail(pub i64);

impl RawTail {
    /// Returns a raw tail from a term id and an offset.
    #[inline]
    #[must_use]
    pub const fn new(term_id: i32, offset: u32) -> Self {
        Self(((term_id as i64) << 32) | offset as i64)
    }

    /// Returns the term id of the tail.
    #[inline]
    #[must_use]
    pub const fn term_id(self) -> i32 {
        (self.0 >> 32) as i32
    }

    /// Returns the offset as stored. It exceeds the term length while appenders rotate to the next term.
    #[inline]
    #[must_use]
    pub const fn offset(self) -> i64 {
        self.0 & 0xFFFF_FFFF
    }

    /// Returns the offset, clamped to `term_length`.
    #[inline]
    #[must_use]
    pub const fn effective_offset(self, term_length: i32) -> i32 {
        let offset = self.offset();
        if offset < term_length as i64 {
            offset as i32
        } else {
            term_length
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn position_of_specification_example_matches() {
        let geometry = TermGeometry::new(100, 65_536).unwrap();
        assert_eq!(geometry.position(101, 192), 65_536 + 192);
        assert_eq!(geometry.term_id(65_728), 101);
        assert_eq!(geometry.term_offset(65_728), 192);
        assert_eq!(geometry.partition(65_728), 1);
    }

    #[test]
    fn term_geometry_with_invalid_length_fails() {
        for length in [i32::MIN, -1, 0, 1, 32_768, 65_535, 65_537, 98_304, i32::MAX] {
            assert_eq!(TermGeometry::new(0, length), Err(InvalidTermLength(length)));
        }
        for bits in 16..=30 {
            assert_eq!(TermGeometry::new(0, 1 << bits).unwrap().bits(), bits);
        }
    }

    #[test]
    fn limits_depend_on_term_length() {
        let small = TermGeometry::new(0, 65_536).unwrap();
        assert_eq!(
            (small.max_message_length(), small.max_position()),
            (8_192, 65_536 << 31)
        );
        let large = TermGeometry::new(0, 1 << 30).unwrap();
        assert_eq!(
            (large.max_message_length(), large.max_position()),
            (16 << 20, 1 << 61)
        );
    }

    #[test]
    fn position_at_end_of_space_round_trips() {
        let geometry = TermGeometry::new(7, 65_536).unwrap();
        let end = geometry.max_position();
        assert_eq!(geometry.position(geometry.term_id(end), 0), end);
        assert_eq!(
            geometry.position(geometry.term_id(end - 32), 65_504),
            end - 32
        );
        assert_eq!(geometry.position(6, 0), -65_536);
    }

    #[test]
    fn effective_offset_past_term_is_term_length() {
        let tail = RawTail::new(-7, 65_536 + 96);
        assert_eq!(
            (tail.term_id(), tail.offset(), tail.effective_offset(65_536)),
            (-7, 65_632, 65_536)
        );
        assert_eq!(
            RawTail::new(-1, u32::MAX).effective_offset(1 << 30),
            1 << 30
        );
    }

    proptest! {
        #[test]
        fn position_of_term_and_offset_round_trips(
            initial in any::<i32>(), bits in 16u32..=30, count in 0i32..=i32::MAX, fraction in 0.0f64..1.0
        ) {
            let geometry = TermGeometry::new(initial, 1 << bits).unwrap();
            let offset = (fraction * f64::from(geometry.term_length())) as i32;
            let term_id = initial.wrapping_add(count);
            let position = geometry.position(term_id, offset);
            prop_assert_eq!(position, (i64::from(count) << bits) + i64::from(offset));
            prop_assert!(position < geometry.max_position());
            prop_assert_eq!(geometry.term_id(position), term_id);
            prop_assert_eq!(geometry.term_offset(position), offset);
            prop_assert_eq!(geometry.partition(position), (count % 3) as usize);
            prop_assert_eq!(geometry.term_begin(position), geometry.position(term_id, 0));
        }

        #[test]
        fn position_of_earlier_term_is_negative(initial in any::<i32>(), back in 1i32..1000) {
            let geometry = TermGeometry::new(initial, 65_536).unwrap();
            prop_assert!(geometry.position(initial.wrapping_sub(back), 65_535) < 0);
        }

        #[test]
        fn raw_tail_round_trips(term_id in any::<i32>(), offset in any::<u32>()) {
            let tail = RawTail::new(term_id, offset);
            prop_assert_eq!((tail.term_id(), tail.offset()), (term_id, i64::from(offset)));
        }
    }
}
