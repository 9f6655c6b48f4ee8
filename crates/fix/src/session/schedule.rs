// SPDX-License-Identifier: Apache-2.0
//! Times at which a session may be logged on, in UTC with a fixed offset.

use crate::wire::Timestamp;

/// Day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Day {
    /// Monday.
    Monday,
    /// Tuesday.
    Tuesday,
    /// Wednesday.
    Wednesday,
    /// Thursday.
    Thursday,
    /// Friday.
    Friday,
    /// Saturday.
    Saturday,
    /// Sunday.
    Sunday,
}

const DAY: i64 = 86_400;
const WEEK: i64 = 7 * DAY;
const NANOS: i64 = 1_000_000_000;
/// 1970-01-01 was a Thursday.
const THURSDAY: i64 = 3;

/// Times at which a session may be logged on.
///
/// A period has a number; the session resets when the number changes, if `reset` is set. Time zones with daylight saving
/// are up to the caller, which replaces the schedule when the offset changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    kind: Kind,
    /// Seconds east of UTC.
    offset: i64,
    reset: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Always,
    /// Seconds of the day.
    Daily {
        start: i64,
        end: i64,
    },
    /// Seconds of the week from Monday.
    Weekly {
        start: i64,
        end: i64,
    },
}

impl Schedule {
    /// Returns a schedule without limits.
    #[must_use]
    pub const fn always() -> Self {
        Self {
            kind: Kind::Always,
            offset: 0,
            reset: false,
        }
    }

    /// Returns a schedule from `start` to `end` of each day, in seconds after midnight; an end before the start is one
    /// of the next day. Nothing if a time is not within a day or both are equal.
    #[must_use]
    pub fn daily(start: u32, end: u32) -> Option<Self> {
        let (start, end) = (i64::from(start), i64::from(end));
        (start < DAY && end < DAY && start != end).then_some(Self {
            kind: Kind::Daily { start, end },
            offset: 0,
            reset: false,
        })
    }

    /// Returns a schedule from a time of one day to a time of another, each week.
    #[must_use]
    pub fn weekly(from: (Day, u32), to: (Day, u32)) -> Option<Self> {
        let second = |(day, time): (Day, u32)| i64::from(day as u8) * DAY + i64::from(time);
        let (start, end) = (second(from), second(to));
        let is_valid = i64::from(from.1.max(to.1)) < DAY && start != end;
        is_valid.then_some(Self {
            kind: Kind::Weekly { start, end },
            offset: 0,
            reset: false,
        })
    }

    /// Sets the offset of local time from UTC, in seconds east.
    #[must_use]
    pub fn offset(mut self, seconds: i32) -> Self {
        self.offset = i64::from(seconds);
        self
    }

    /// Makes both numbers start at 1 with each period.
    #[must_use]
    pub const fn resetting(mut self) -> Self {
        self.reset = true;
        self
    }

    /// Returns true if numbers start at 1 with each period.
    #[must_use]
    pub const fn resets(&self) -> bool {
        self.reset
    }

    /// Returns the number of the period that the time is in, or nothing outside of periods.
    #[must_use]
    pub fn period(&self, wall: Timestamp) -> Option<i64> {
        let seconds = wall.nanos().div_euclid(NANOS) + self.offset;
        let (start, end, length, seconds) = match self.kind {
            Kind::Always => return Some(0),
            Kind::Daily { start, end } => (start, end, DAY, seconds),
            Kind::Weekly { start, end } => (start, end, WEEK, seconds + THURSDAY * DAY),
        };
        let since = (seconds - start).rem_euclid(length);
        let duration = (end - start).rem_euclid(length);
        (since < duration).then(|| (seconds - start).div_euclid(length))
    }

    /// Returns the nanoseconds until the next start or end of a period.
    #[must_use]
    pub fn until_change(&self, wall: Timestamp) -> Option<i64> {
        let (start, end, length, shift) = match self.kind {
            Kind::Always => return None,
            Kind::Daily { start, end } => (start, end, DAY, 0),
            Kind::Weekly { start, end } => (start, end, WEEK, THURSDAY * DAY),
        };
        let shift = (self.offset + shift) * NANOS;
        let at = wall.nanos().saturating_add(shift);
        let until = |point: i64| length * NANOS - (at - point * NANOS).rem_euclid(length * NANOS);
        Some(until(start).min(until(end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text.as_bytes()).expect("valid")
    }

    #[test]
    fn daily_period_ends_and_has_number() {
        let hours = Schedule::daily(8 * 3600, 17 * 3600).expect("valid");
        assert_eq!(hours.period(at("20240102-07:59:59")), None);
        let first = hours.period(at("20240102-08:00:00"));
        assert!(first.is_some() && first == hours.period(at("20240102-16:59:59")));
        assert_eq!(hours.period(at("20240102-17:00:00")), None);
        assert_eq!(
            hours.period(at("20240103-08:00:00")),
            first.map(|number| number + 1)
        );
        assert_eq!(
            hours.until_change(at("20240102-07:59:59.5")),
            Some(500_000_000)
        );
        assert_eq!(
            hours.until_change(at("20240102-16:00:00")),
            Some(3600 * NANOS)
        );
    }

    #[test]
    fn daily_over_midnight_is_one_period() {
        let night = Schedule::daily(22 * 3600, 6 * 3600).expect("valid");
        let before = night.period(at("20240102-23:00:00"));
        assert!(before.is_some() && before == night.period(at("20240103-05:00:00")));
        assert_eq!(night.period(at("20240103-12:00:00")), None);
    }

    #[test]
    fn weekly_period_spans_days() {
        // 2024-01-01 is a Monday.
        let week =
            Schedule::weekly((Day::Sunday, 17 * 3600), (Day::Friday, 17 * 3600)).expect("valid");
        let first = week.period(at("20231231-17:00:00"));
        assert!(first.is_some() && first == week.period(at("20240105-16:59:59")));
        assert_eq!(week.period(at("20240105-17:00:00")), None);
        assert_eq!(week.period(at("20240106-12:00:00")), None);
        let shifted = week.offset(-5 * 3600);
        assert_eq!(shifted.period(at("20231231-21:59:59")), None);
        assert!(shifted.period(at("20231231-22:00:00")).is_some());
    }

    #[test]
    fn schedule_invalid_times_are_refused() {
        assert_eq!(Schedule::daily(1, 1), None);
        assert_eq!(Schedule::daily(86_400, 1), None);
        assert_eq!(Schedule::weekly((Day::Monday, 1), (Day::Monday, 1)), None);
        assert_eq!(
            Schedule::always().until_change(at("20240101-00:00:00")),
            None
        );
    }
}
