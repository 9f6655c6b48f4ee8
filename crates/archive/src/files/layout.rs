// SPDX-License-Identifier: Apache-2.0
//! The mapping of positions of a recording to segment files (`docs/spec/archive.md` §2.7, §3.3).

use taran_protocol::position::{TERM_LENGTH_MAX, TERM_LENGTH_MIN, TermGeometry, is_term_length};
use thiserror::Error;

/// Highest length of a segment file in bytes.
pub const SEGMENT_LENGTH_MAX: i32 = 1 << 30;

/// Lengths or a start position that no recording can have.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidLayout {
    /// The term length is not allowed.
    #[error(
        "the term length {0} is not a power of two from {TERM_LENGTH_MIN} to {TERM_LENGTH_MAX} bytes"
    )]
    TermLength(i32),
    /// The segment length is not allowed.
    #[error(
        "the segment length {segment} is not a power of two from the term length {term} to {SEGMENT_LENGTH_MAX} bytes"
    )]
    SegmentLength {
        /// Segment length in bytes.
        segment: i32,
        /// Term length in bytes.
        term: i32,
    },
    /// The start position is negative, not a multiple of 32, or beyond the end of any stream.
    #[error("the start position {0} is negative, not a multiple of 32, or beyond the last term")]
    StartPosition(i64),
}

taran_core::debug_is_display!(InvalidLayout);

/// The mapping of a recording's positions to segment files and terms. Segments begin at *base positions*: the beginning of
/// the start position's term, and each segment length after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingLayout {
    start: i64,
    terms: TermGeometry,
    segment_length: i32,
}

impl RecordingLayout {
    /// Creates the layout of a recording.
    ///
    /// # Errors
    ///
    /// No recording can have these values.
    pub fn new(
        start_position: i64,
        initial_term_id: i32,
        term_length: i32,
        segment_length: i32,
    ) -> Result<Self, InvalidLayout> {
        let terms = TermGeometry::new(initial_term_id, term_length)
            .map_err(|_| InvalidLayout::TermLength(term_length))?;
        let is_segment_length = is_term_length(segment_length)
            && (term_length..=SEGMENT_LENGTH_MAX).contains(&segment_length);
        if !is_segment_length {
            return Err(InvalidLayout::SegmentLength {
                segment: segment_length,
                term: term_length,
            });
        }
        let is_position = (0..=terms.max_position()).contains(&start_position);
        if !is_position || start_position % 32 != 0 {
            return Err(InvalidLayout::StartPosition(start_position));
        }
        Ok(Self {
            start: start_position,
            terms,
            segment_length,
        })
    }

    /// Returns the same layout for another start position of the recording.
    ///
    /// # Errors
    ///
    /// No recording can have it.
    pub fn with_start(self, start_position: i64) -> Result<Self, InvalidLayout> {
        Self::new(
            start_position,
            self.terms.initial_term_id(),
            self.terms.term_length(),
            self.segment_length,
        )
    }

    /// Returns the start position of the recording.
    #[must_use]
    pub fn start_position(&self) -> i64 {
        self.start
    }

    /// Returns the terms of the stream.
    #[must_use]
    pub fn terms(&self) -> TermGeometry {
        self.terms
    }

    /// Returns the length of a segment file in bytes.
    #[must_use]
    pub fn segment_length(&self) -> i32 {
        self.segment_length
    }

    /// Returns the base position of the segment with the start position.
    #[must_use]
    pub fn first_base(&self) -> i64 {
        self.terms.term_begin(self.start)
    }

    /// Returns the base position of the segment with a position, which can be before the start: of a detached segment.
    #[must_use]
    pub fn base_of(&self, position: i64) -> i64 {
        let distance = position.saturating_sub(self.first_base());
        let length = i64::from(self.segment_length);
        self.first_base()
            .saturating_add(distance.div_euclid(length).saturating_mul(length))
    }

    /// Returns the offset of a position in its segment file.
    #[must_use]
    pub fn offset_of(&self, position: i64) -> u64 {
        position
            .saturating_sub(self.base_of(position))
            .unsigned_abs()
    }

    /// Returns the base position of the segment after the one with this base position.
    #[must_use]
    pub fn next_base(&self, base: i64) -> i64 {
        base.saturating_add(i64::from(self.segment_length))
    }

    /// Returns true if a segment of this recording can begin at a position.
    #[must_use]
    pub fn is_base(&self, position: i64) -> bool {
        position >= 0 && self.base_of(position) == position
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERM: i32 = 64 * 1024;

    #[test]
    fn bases_are_relative_to_the_term_of_the_start() {
        let layout = RecordingLayout::new(1_000_000_032, 7, TERM, 2 * TERM).unwrap();
        assert_eq!(999_948_288, layout.first_base());
        assert_eq!(999_948_288, layout.base_of(1_000_000_032));
        let next = layout.next_base(layout.first_base());
        assert_eq!(next - 2 * i64::from(TERM), layout.base_of(next - 1));
        assert_eq!(next, layout.base_of(next));
        assert_eq!(32, layout.offset_of(next + 32));
        assert!(layout.is_base(next) && !layout.is_base(next + i64::from(TERM)));
        let before = layout.first_base() - 2 * i64::from(TERM);
        assert_eq!(before, layout.base_of(layout.first_base() - 1));
    }

    #[test]
    fn impossible_values_are_refused() {
        let new = RecordingLayout::new;
        assert_eq!(Err(InvalidLayout::TermLength(100)), new(0, 0, 100, TERM));
        let length = |segment| InvalidLayout::SegmentLength {
            segment,
            term: 2 * TERM,
        };
        for segment in [0, -1, TERM, 3 * TERM, i32::MIN] {
            assert_eq!(Err(length(segment)), new(0, 0, 2 * TERM, segment));
        }
        for start in [-1, -32, 31, i64::MAX, i64::MIN, 1 << 60] {
            assert_eq!(
                Err(InvalidLayout::StartPosition(start)),
                new(start, 0, TERM, TERM)
            );
        }
    }
}
