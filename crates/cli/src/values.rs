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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn millis_of_bare_number_is_milliseconds() {
        assert_eq!(millis("250"), Ok(Duration::from_millis(250)));
        assert_eq!(millis("2s"), Ok(Duration::from_secs(2)));
        for text in ["soon", "", "-1", "5m"] {
            assert!(millis(text).is_err(), "{text}");
        }
    }
}
