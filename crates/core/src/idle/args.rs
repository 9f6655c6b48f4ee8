// SPDX-License-Identifier: Apache-2.0
//! The texts of idle strategy arguments: durations, and fields joined by dashes.

use std::fmt;
use std::time::Duration;

/// A duration: digits and one of `ns`, `us`, `ms`, `s` in either case; without a unit, nanoseconds
/// (docs/spec/uri-and-configuration.md §1.3).
pub(super) fn duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let nanos_per_unit = match unit.to_ascii_lowercase().as_str() {
        "" | "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    let number: u64 = number.parse().ok()?;
    Some(Duration::from_nanos(number.saturating_mul(nanos_per_unit)))
}

/// Exactly `N` fields joined by dashes.
pub(super) fn fields<const N: usize>(text: &str) -> Option<[&str; N]> {
    let mut fields = text.split('-').map(str::trim);
    let mut found = [""; N];
    for field in &mut found {
        *field = fields.next()?;
    }
    fields.next().is_none().then_some(found)
}

/// Prints a duration with the largest unit that divides it, as [`duration`] reads it.
pub(super) struct Shortest(pub(super) Duration);

impl fmt::Display for Shortest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
        match units
            .iter()
            .find(|(_, nanos_per_unit)| nanos > 0 && nanos.is_multiple_of(*nanos_per_unit))
        {
            Some((unit, nanos_per_unit)) => write!(f, "{}{unit}", nanos / nanos_per_unit),
            None => write!(f, "{nanos}ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_with_and_without_units() {
        assert_eq!(duration("15"), Some(Duration::from_nanos(15)));
        assert_eq!(duration("15ns"), Some(Duration::from_nanos(15)));
        assert_eq!(duration("15US"), Some(Duration::from_micros(15)));
        assert_eq!(duration("15ms"), Some(Duration::from_millis(15)));
        assert_eq!(duration("15s"), Some(Duration::from_secs(15)));
        assert_eq!(
            duration("18446744073709551615s"),
            Some(Duration::from_nanos(u64::MAX))
        );
    }

    #[test]
    fn other_texts_are_no_durations() {
        for text in [
            "",
            "s",
            "-1us",
            "+1us",
            "1 us",
            "5m",
            "1.5ms",
            "18446744073709551616",
            "١us",
        ] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn printed_durations_read_back() {
        for (nanos, text) in [
            (0, "0ns"),
            (1500, "1500ns"),
            (2_000, "2us"),
            (3_000_000, "3ms"),
            (60_000_000_000, "60s"),
        ] {
            let printed = Shortest(Duration::from_nanos(nanos)).to_string();
            assert_eq!(printed, text);
            assert_eq!(duration(&printed), Some(Duration::from_nanos(nanos)));
        }
    }

    #[test]
    fn fields_are_counted() {
        assert_eq!(fields("1-2 -3"), Some(["1", "2", "3"]));
        assert_eq!(fields::<3>("1-2"), None);
        assert_eq!(fields::<3>("1-2-3-4"), None);
    }
}
