// SPDX-License-Identifier: Apache-2.0
//! Values of the tools' command-line arguments.

use std::time::Duration;

use taran_protocol::uri::value::parse_duration_ns;

/// Parses a duration such as `2s` or `200ms`. A bare number is milliseconds, as in the official tools.
pub(crate) fn millis(text: &str) -> Result<Duration, String> {
    if let Ok(millis) = text.parse() {
        return Ok(Duration::from_millis(millis));
    }
    parse_duration_ns(text)
        .ok()
        .and_then(|nanos| u64::try_from(nanos).ok())
        .map(Duration::from_nanos)
        .ok_or_else(|| "needs a time such as 200, 200ms or 2s".to_owned())
}

/// Parses the interval between two refreshes as [`millis`] does. Zero would use a whole core, so it is refused.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    match millis(text)? {
        Duration::ZERO => Err("needs an interval above 0, such as 200ms or 1s".to_owned()),
        interval => Ok(interval),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_of_zero_is_refused() {
        assert_eq!(interval("1"), Ok(Duration::from_millis(1)));
        for text in ["0", "0s", "0ms"] {
            assert!(interval(text).is_err(), "{text}");
        }
    }

    #[test]
    fn millis_of_bare_number_is_milliseconds() {
        assert_eq!(millis("250"), Ok(Duration::from_millis(250)));
        assert_eq!(millis("2s"), Ok(Duration::from_secs(2)));
        for text in ["soon", "", "-1", "5m"] {
            assert!(millis(text).is_err(), "{text}");
        }
    }
}
