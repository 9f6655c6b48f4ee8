// SPDX-License-Identifier: Apache-2.0
//! Timestamps as the tools print them (docs/spec/uri-and-configuration.md §5.6).

use chrono::{Local, TimeZone};

/// Formats a time as `YYYY-MM-DD HH:MM:SS.mmm+zzzz` in the local time zone. A time outside the calendar is returned as
/// a number.
pub(crate) fn format(epoch_ms: i64) -> String {
    match Local.timestamp_millis_opt(epoch_ms).single() {
        Some(time) => time.format("%Y-%m-%d %H:%M:%S%.3f%z").to_string(),
        None => epoch_ms.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::format;

    #[test]
    fn format_matches_the_official_tools() {
        let shape: String = format(1_700_000_000_123)
            .chars()
            .map(|c| if c.is_ascii_digit() { '0' } else { c })
            .collect();
        assert_eq!(shape.replace('-', "+"), "0000+00+00 00:00:00.000+0000");
        assert!(format(1_700_000_000_123).contains(".123"));
    }

    #[test]
    fn format_of_invalid_time_is_the_number() {
        assert_eq!(format(i64::MAX), i64::MAX.to_string());
    }
}
