// SPDX-License-Identifier: Apache-2.0
//! Value syntax shared by channel URIs and options: sizes, durations, integers (docs/spec/uri-and-configuration.md
//! §1.3).
//!
//! The parse functions return `Err` with a description of the valid texts that completes a sentence after "needs". The
//! caller adds the name of the key or option.

use std::borrow::Cow;

/// Description of the valid texts, for an error message, for example `a number in 1..256`.
pub type Requirement = Cow<'static, str>;

const SIZE_FORM: &str = "a size in bytes: decimal digits with an optional suffix k, m or g";
const DURATION_FORM: &str =
    "a duration: decimal digits with a unit ns, us, ms or s (no unit means nanoseconds)";

/// Parses a size in bytes: decimal digits with an optional suffix `k`, `m` or `g` in either case.
///
/// As in the C driver, a `b` after the suffix (`64kb`) is accepted; any other text after it is an error.
pub fn parse_size(text: &str) -> Result<i64, Requirement> {
    let digits = digits_prefix(text);
    let number: i64 = digits.parse().map_err(|_| Requirement::from(SIZE_FORM))?;
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" | "kb" => 10,
        "m" | "mb" => 20,
        "g" | "gb" => 30,
        _ => return Err(SIZE_FORM.into()),
    };
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| "a size of at most 2^63 - 1 bytes".into())
}

/// Parses a duration into nanoseconds. Values beyond `i64` saturate.
pub fn parse_duration_ns(text: &str) -> Result<i64, Requirement> {
    let digits = digits_prefix(text);
    if digits.is_empty() {
        return Err(DURATION_FORM.into());
    }
    let scale = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => {
            return Err(format!(
                "an unambiguous unit: {digits}ms for milliseconds, or seconds instead of minutes"
            )
            .into());
        }
        _ => return Err(DURATION_FORM.into()),
    };
    // Only digits are left, so parsing fails only on overflow.
    let number: i64 = digits.parse().unwrap_or(i64::MAX);
    Ok(number.saturating_mul(scale))
}

/// Parses an integer: decimal, or hexadecimal after `0x`, with an optional sign.
///
/// A leading zero does not make the number octal, as in clients and the Java driver, but unlike the C driver.
pub fn parse_i64(text: &str) -> Result<i64, Requirement> {
    let (sign, magnitude) = match text.as_bytes().first() {
        Some(b'-') => ("-", &text[1..]),
        Some(b'+') => ("", &text[1..]),
        _ => ("", text),
    };
    let (digits, radix) = match magnitude
        .strip_prefix("0x")
        .or_else(|| magnitude.strip_prefix("0X"))
    {
        Some(digits) => (digits, 16),
        None => (magnitude, 10),
    };
    // `from_str_radix` would accept a second sign.
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err("an integer".into());
    }
    i64::from_str_radix(&format!("{sign}{digits}"), radix)
        .map_err(|_| "an integer of 64 bits".into())
}

/// Parses a 32-bit integer in the syntax of [`parse_i64`].
pub fn parse_i32(text: &str) -> Result<i32, Requirement> {
    parse_i64(text)
        .ok()
        .and_then(|n| i32::try_from(n).ok())
        .ok_or_else(|| "an integer in -2147483648..2147483647".into())
}

/// Parses a boolean: exactly `true` or `false`.
pub fn parse_bool(text: &str) -> Result<bool, Requirement> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("true or false".into()),
    }
}

/// Formats a size with the largest suffix that divides it exactly: `64k`, `1408`, `16m`.
#[must_use]
pub fn format_size(bytes: i64) -> String {
    for (suffix, shift) in [("g", 30), ("m", 20), ("k", 10)] {
        let unit = 1i64 << shift;
        if bytes >= unit && bytes % unit == 0 {
            return format!("{}{suffix}", bytes / unit);
        }
    }
    bytes.to_string()
}

/// Formats a duration with the largest unit that divides it exactly: `5s`, `100ms`, `1us`, `1500us`.
///
/// The labels of system counters use this format too (docs/spec/shared-memory.md §5.6).
#[must_use]
pub fn format_duration_ns(nanos: i64) -> String {
    for (suffix, scale) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
        if nanos >= scale && nanos % scale == 0 {
            return format!("{}{suffix}", nanos / scale);
        }
    }
    format!("{nanos}ns")
}

fn digits_prefix(text: &str) -> &str {
    let end = text
        .bytes()
        .position(|b| !b.is_ascii_digit())
        .unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parse_size_accepts_and_rejects() {
        for (text, bytes) in [
            ("0", 0),
            ("1408", 1408),
            ("2K", 2048),
            ("64k", 65536),
            ("64kb", 65536),
            ("64kB", 65536),
            ("1M", 1 << 20),
            ("1g", 1 << 30),
            ("8589934591g", 8_589_934_591 << 30),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "k",
            "-64k",
            "+1",
            "1.5k",
            "64kx",
            "64 k",
            "8589934592g",
            "1t",
            "99999999999999999999",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parse_duration_accepts_and_rejects() {
        for (text, nanos) in [
            ("0", 0),
            ("5", 5),
            ("7ns", 7),
            ("3us", 3_000),
            ("10MS", 10_000_000),
            ("5S", 5_000_000_000),
            ("9223372036854775807s", i64::MAX),
            ("99999999999999999999", i64::MAX),
        ] {
            assert_eq!(parse_duration_ns(text), Ok(nanos), "{text}");
        }
        for text in ["", "s", "-1", "10x", "10sx", "1h", "5m", "5 s", "1.5s"] {
            assert!(parse_duration_ns(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parse_integer_accepts_and_rejects() {
        for (text, value) in [
            ("-1", -1),
            ("+7", 7),
            ("0x10", 16),
            ("-0x10", -16),
            ("010", 10),
            ("0", 0),
        ] {
            assert_eq!(parse_i64(text), Ok(value), "{text}");
        }
        for text in [
            "",
            "-",
            "0x",
            "--1",
            "-+1",
            "1a",
            "abc",
            " 1",
            "9223372036854775808",
        ] {
            assert!(parse_i64(text).is_err(), "{text}");
        }
        assert!(parse_i32("4294967295").is_err());
        assert!(parse_i32("2147483648").is_err());
        assert_eq!(parse_i32("-2147483648"), Ok(i32::MIN));
    }

    proptest! {
        #[test]
        fn size_round_trips(bytes in 0..i64::MAX) {
            prop_assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
        }

        #[test]
        fn duration_round_trips(nanos in 0..i64::MAX) {
            prop_assert_eq!(parse_duration_ns(&format_duration_ns(nanos)), Ok(nanos));
        }

        #[test]
        fn parse_random_text_never_panics(text in "\\PC*") {
            let _ = (parse_size(&text), parse_duration_ns(&text), parse_i64(&text), parse_i32(&text));
        }
    }
}
