// SPDX-License-Identifier: Apache-2.0
//! Reservation of the pages of a log: which of them cannot fail for lack of space.
//!
//! A log is a ring of three terms. Its pages are reserved in the order in which they are used for the first time, from
//! the start position of the stream to one log length beyond it; then all of them are reserved for good. The *reserved
//! position* is the end of what is reserved. No process accesses a page beyond it: the limit of publishers
//! ([`LogReservation::publisher_limit`]) and the positions that the receiver accepts stay below it.
//!
//! Contract: [`LogReservation::require`] states a position that is needed soon; [`LogReservation::next_step`] returns
//! the range to reserve next, if there is one; [`LogReservation::on_done`] takes its outcome. After a failure the same
//! range is due again, or half of it, with a back-off from 10 ms to 1 s. A *shortage* begins with a failure and ends when
//! all that is required is reserved.

use std::ops::Range;

use taran_protocol::log::CLEAR_DISTANCE;
use taran_protocol::position::PARTITION_COUNT;

/// Granularity of reservations; a multiple of all common page sizes, and a divisor of all term lengths.
const UNIT_MIN: i64 = 64 * 1024;

// Publishers clear slots after the end of a term, in pages that are reserved.
const _: () = assert!(UNIT_MIN >= CLEAR_DISTANCE as i64);

/// Logs with terms of at most this total length are reserved as a whole when they are created.
const WHOLE_MAX: i64 = 1024 * 1024;

/// Maximum bytes per step, about 3 ms on a file system in memory: logs take turns.
const STEP_MAX: i64 = 16 * 1024 * 1024;

const BACKOFF_MIN_NS: i64 = 10_000_000;
const BACKOFF_MAX_NS: i64 = 1_000_000_000;

/// Lengths of a log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogDimensions {
    pub(crate) term_length: i32,
    /// Length of the file in bytes: three terms, and the metadata up to the end of a page.
    pub(crate) file_length: usize,
    pub(crate) page_size: i32,
}

impl LogDimensions {
    fn unit(&self) -> i64 {
        UNIT_MIN.max(i64::from(self.page_size))
    }

    fn ring(&self) -> i64 {
        i64::from(self.term_length) * PARTITION_COUNT as i64
    }

    /// Returns the position up to which pages must be reserved before a publisher may be given `limit`: the end of the
    /// term in which the last publisher below the limit writes, and the first slots of the next one, which are cleared by
    /// that publisher and inspected by readers at the end of the term. Any number of concurrent publishers may claim
    /// space beyond the limit, but none of them writes beyond the term in which it claimed.
    pub(crate) fn publisher_need(&self, limit: i64) -> i64 {
        let term_length = i64::from(self.term_length);
        let last = limit.saturating_sub(1).max(0);
        (last - last % term_length)
            .saturating_add(term_length)
            .saturating_add(self.unit())
    }
}

/// Reservation of the pages of one log.
#[derive(Debug)]
pub(crate) struct LogReservation {
    dimensions: LogDimensions,
    /// Start position of the stream, rounded down to the unit.
    start: i64,
    /// Reserved position; `i64::MAX` when all pages are reserved.
    reserved: i64,
    required: i64,
    in_flight: bool,
    /// True from the first failure until all that is required is reserved.
    is_short: bool,
    /// Maximum bytes of the next step: halved by failures, doubled by successes.
    step: i64,
    retry_ns: i64,
    backoff_ns: i64,
}

/// Range to reserve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReservationStep {
    /// Reserved position after it.
    pub(crate) to: i64,
    /// Ranges of the file, in bytes.
    pub(crate) ranges: Vec<Range<u64>>,
}

impl ReservationStep {
    pub(crate) fn length(&self) -> u64 {
        self.ranges
            .iter()
            .map(|range| range.end - range.start)
            .sum()
    }
}

impl LogReservation {
    /// Returns the reservation of a new log for a stream that starts at `start`, and what is to be reserved when the
    /// file is created: the metadata and the pages up to position `to`; everything if `whole` is set or the log is
    /// short.
    pub(crate) fn new(
        dimensions: LogDimensions,
        start: i64,
        to: i64,
        whole: bool,
    ) -> (Self, ReservationStep) {
        let (unit, ring) = (dimensions.unit(), dimensions.ring());
        let mut new = Self {
            dimensions,
            start: start - start % unit,
            reserved: start,
            required: to,
            in_flight: false,
            is_short: false,
            step: STEP_MAX.max(unit),
            retry_ns: i64::MIN,
            backoff_ns: BACKOFF_MIN_NS,
        };
        let is_whole = whole || ring <= WHOLE_MAX || unit > i64::from(dimensions.term_length);
        let end = new.start.saturating_add(ring);
        let to = if is_whole {
            end
        } else {
            new.round_up(to).min(end)
        };
        let mut ranges = new.file_ranges(new.start, to);
        ranges.push(ring as u64..dimensions.file_length as u64);
        let to = new.completed(to);
        new.reserved = to;
        (new, ReservationStep { to, ranges })
    }

    /// Returns the reserved position; `i64::MAX` when all pages are reserved.
    pub(crate) fn position(&self) -> i64 {
        self.reserved
    }

    /// Returns true if the stream starts where the reservation assumed.
    pub(crate) fn starts_at(&self, position: i64) -> bool {
        position - position % self.dimensions.unit() == self.start
    }

    pub(crate) fn dimensions(&self) -> &LogDimensions {
        &self.dimensions
    }

    /// Returns the highest publisher limit for which all pages that publishers and readers access are reserved.
    pub(crate) fn publisher_limit(&self) -> i64 {
        if self.reserved == i64::MAX {
            return i64::MAX;
        }
        let whole = (self.reserved - self.dimensions.unit()).max(0);
        whole - whole % i64::from(self.dimensions.term_length)
    }

    /// Requires the pages up to a position.
    pub(crate) fn require(&mut self, position: i64) {
        self.required = self.required.max(position);
    }

    /// Returns the next range to reserve, unless one is in flight or a failure was not long ago. The caller reserves it
    /// and calls [`on_done`](Self::on_done).
    pub(crate) fn next_step(&mut self, now_ns: i64) -> Option<ReservationStep> {
        if self.required <= self.reserved || self.in_flight || now_ns < self.retry_ns {
            return None;
        }
        self.in_flight = true;
        let to = self
            .round_up(self.required)
            .min(self.reserved.saturating_add(self.step))
            .min(self.start.saturating_add(self.dimensions.ring()));
        let ranges = self.file_ranges(self.reserved, to);
        Some(ReservationStep {
            to: self.completed(to),
            ranges,
        })
    }

    /// Returns the time at which [`next_step`](Self::next_step) returns a range, if nothing more is required before;
    /// `i64::MAX` for never.
    pub(crate) fn next_deadline_ns(&self) -> i64 {
        if self.required <= self.reserved || self.in_flight {
            i64::MAX
        } else {
            self.retry_ns
        }
    }

    /// Returns the bytes that are not reserved yet.
    pub(crate) fn unreserved(&self) -> u64 {
        let end = self.start.saturating_add(self.dimensions.ring());
        u64::try_from(end.saturating_sub(self.reserved)).unwrap_or(0)
    }

    /// Handles the outcome of the last step, up to position `to`. Returns true if a shortage has begun or ended.
    pub(crate) fn on_done(&mut self, to: i64, is_reserved: bool, now_ns: i64) -> bool {
        self.in_flight = false;
        let was_short = self.is_short;
        let unit = self.dimensions.unit();
        if is_reserved {
            self.reserved = self.reserved.max(to);
            self.step = (2 * self.step).min(STEP_MAX.max(unit));
            self.backoff_ns = BACKOFF_MIN_NS;
            self.retry_ns = i64::MIN;
            self.is_short &= self.required > self.reserved;
        } else {
            self.is_short = true;
            self.retry_ns = now_ns.saturating_add(self.backoff_ns);
            self.backoff_ns = (2 * self.backoff_ns).min(BACKOFF_MAX_NS);
            let half = self.step / 2;
            self.step = (half - half % unit).max(unit);
        }
        self.is_short != was_short
    }

    fn round_up(&self, position: i64) -> i64 {
        let unit = self.dimensions.unit();
        let beyond = position.saturating_add(unit - 1);
        beyond - beyond % unit
    }

    /// Returns `i64::MAX` for the end of the ring.
    fn completed(&self, to: i64) -> i64 {
        if to >= self.start.saturating_add(self.dimensions.ring()) {
            i64::MAX
        } else {
            to
        }
    }

    /// Returns the ranges of the file that hold the positions from `from` to `to`, at most one ring apart.
    fn file_ranges(&self, from: i64, to: i64) -> Vec<Range<u64>> {
        let ring = self.dimensions.ring();
        let (begin, length) = (from % ring, to - from);
        let first = length.min(ring - begin);
        let ranges = [begin..begin + first, 0..length - first];
        ranges
            .into_iter()
            .filter(|range| !range.is_empty())
            .map(|range| range.start as u64..range.end as u64)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: i64 = 1024 * 1024;
    const TERM: i64 = 64 * MIB;
    const UNIT: i64 = UNIT_MIN;

    fn dimensions(term_length: i64) -> LogDimensions {
        LogDimensions {
            term_length: term_length as i32,
            file_length: 3 * term_length as usize + 4_096,
            page_size: 4_096,
        }
    }

    fn metadata(term_length: i64) -> Range<u64> {
        3 * term_length as u64..3 * term_length as u64 + 4_096
    }

    fn publication(start: i64, limit: i64) -> (LogReservation, ReservationStep) {
        let of = dimensions(TERM);
        LogReservation::new(of, start, of.publisher_need(limit), false)
    }

    #[test]
    fn new_log_reserves_its_first_term_and_the_next_slot() {
        let (log, step) = publication(0, TERM / 2);
        assert_eq!(
            step.ranges,
            [0..(TERM + UNIT) as u64, metadata(TERM)],
            "metadata too"
        );
        assert_eq!(log.position(), TERM + UNIT);
        assert_eq!(log.publisher_limit(), TERM);
    }

    #[test]
    fn new_log_that_starts_late_in_a_term_reserves_only_from_there() {
        let start = 2 * TERM + TERM - 96;
        let (log, step) = publication(start, start + TERM / 2);
        let from = (3 * TERM - UNIT) as u64;
        assert_eq!(
            step.ranges,
            [
                from..3 * TERM as u64,
                0..(TERM + UNIT) as u64,
                metadata(TERM)
            ]
        );
        assert_eq!(log.publisher_limit(), 4 * TERM);
        assert!(log.starts_at(start) && !log.starts_at(0));
    }

    #[test]
    fn new_log_that_is_short_or_whole_is_reserved_as_a_whole() {
        for (term_length, whole) in [(UNIT, false), (TERM, true)] {
            let (log, step) =
                LogReservation::new(dimensions(term_length), 5 * term_length + 32, 0, whole);
            assert_eq!(step.length(), 3 * term_length as u64 + 4_096);
            assert_eq!(
                (log.position(), log.publisher_limit()),
                (i64::MAX, i64::MAX)
            );
        }
    }

    #[test]
    fn publisher_need_covers_the_term_of_the_last_claim() {
        let of = dimensions(TERM);
        assert_eq!(of.publisher_need(0), TERM + UNIT);
        assert_eq!(of.publisher_need(TERM), TERM + UNIT);
        assert_eq!(of.publisher_need(TERM + 32), 2 * TERM + UNIT);
    }

    #[test]
    fn steps_follow_the_stream_until_the_ring_is_complete() {
        let start = TERM + 32;
        let (mut log, step) = publication(start, start + TERM / 2);
        let mut ranges = step.ranges;
        let mut steps = 0;
        for limit in (start..start + 3 * TERM).step_by(UNIT as usize) {
            log.require(log.dimensions().publisher_need(limit));
            while let Some(step) = log.next_step(0) {
                assert!(step.length() <= STEP_MAX as u64);
                assert_eq!(log.next_step(0), None, "one step at a time");
                ranges.extend(step.ranges);
                log.on_done(step.to, true, 0);
                steps += 1;
            }
            assert!(log.publisher_limit() >= limit);
        }
        assert_eq!(log.position(), i64::MAX);
        assert_eq!(steps, 8, "two terms of 64 MiB in steps of 16");
        ranges.sort_unstable_by_key(|range| range.start);
        assert!(ranges.windows(2).all(|two| two[0].end == two[1].start));
        let last = ranges.last().map(|range| range.end);
        assert_eq!((ranges[0].start, last), (0, Some(metadata(TERM).end)));
    }

    #[test]
    fn failed_step_is_halved_and_due_again_after_a_growing_back_off() {
        let (mut log, _) = publication(0, TERM / 2);
        log.require(2 * TERM);
        let mut now_ns = 5;
        let mut step = log.next_step(now_ns).unwrap();
        let mut length = STEP_MAX;
        for wait_ms in [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000] {
            assert_eq!(step.length(), length as u64);
            log.on_done(step.to, false, now_ns);
            assert_eq!(log.publisher_limit(), TERM);
            now_ns += wait_ms * 1_000_000;
            assert_eq!(log.next_step(now_ns - 1), None);
            step = log.next_step(now_ns).unwrap();
            length = (length / 2).max(UNIT);
        }
        assert_eq!(length, UNIT);
        log.on_done(step.to, true, now_ns);
        assert_eq!(log.position(), TERM + 2 * UNIT);
        assert_eq!(log.unreserved(), (2 * TERM - 2 * UNIT) as u64);
        let second = log.next_step(now_ns).unwrap();
        assert_eq!(second.length(), 2 * UNIT as u64);
        log.on_done(second.to, false, now_ns);
        let third = log.next_step(now_ns + BACKOFF_MIN_NS).unwrap();
        assert_eq!(third.length(), UNIT as u64);
    }

    #[test]
    fn shortage_begins_with_a_failure_and_ends_when_the_requirement_is_met() {
        let (mut log, _) = publication(0, TERM / 2);
        log.require(TERM + UNIT + STEP_MAX + UNIT);
        let step = log.next_step(0).unwrap();
        assert!(log.on_done(step.to, false, 0), "begins");
        let mut changes = Vec::new();
        let mut now_ns = 0;
        for is_reserved in [false, true, false, true, true, true, true] {
            now_ns += BACKOFF_MAX_NS;
            if let Some(step) = log.next_step(now_ns) {
                changes.push(log.on_done(step.to, is_reserved, now_ns));
            }
        }
        assert_eq!(changes.iter().filter(|changed| **changed).count(), 1);
        assert_eq!(changes.last(), Some(&true), "ends");
        assert_eq!(log.next_step(now_ns), None);
    }

    #[test]
    fn next_step_is_none_without_a_requirement() {
        let (mut log, _) = publication(0, TERM / 2);
        log.require(TERM);
        assert_eq!(log.next_step(0), None);
        let (mut whole, _) = LogReservation::new(dimensions(TERM), 0, 0, true);
        whole.require(i64::MAX - 1);
        assert_eq!(whole.next_step(0), None);
    }

    #[test]
    fn pages_longer_than_a_term_reserve_the_whole_log() {
        let of = LogDimensions {
            term_length: MIB as i32,
            file_length: 4 * MIB as usize,
            page_size: 2 * MIB as i32,
        };
        let (log, step) = LogReservation::new(of, 0, 1, false);
        assert_eq!((log.position(), step.length()), (i64::MAX, 4 * MIB as u64));
    }
}
