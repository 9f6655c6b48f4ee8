//! The value syntaxes that channel URIs and options share: sizes, durations, integers (docs/spec/uri-and-configuration.md §1.3).
//!
//! The functions return `Err` with what the text should have been, in words that fit behind "needs"; the caller knows
//! the name of the key or option and makes the full message.

use std::borrow::Cow;

/// What a text that could not be read should have looked like, for example `a size such as 64k, 8m or 1g`.
pub type Requirement = Cow<'static, str>;

const SIZE_FORM: &str = "a size in bytes: decimal digits with an optional suffix k, m or g";
const DURATION_FORM: &str =
    "a duration: decimal digits with a unit ns, us, ms or s (no unit means nanoseconds)";

/// Reads a size in bytes: decimal digits with an optional suffix `k`, `m` or `g` in either case.
///
/// A `b` behind the suffix (`64kb`) is accepted because the C driver does; any other text behind it is not.
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

/// Reads a duration in nanoseconds; what exceeds `i64` saturates.
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
                "a unit that cannot be misread: {digits}ms for milliseconds, or seconds for minutes"
            )
            .into());
        }
        _ => return Err(DURATION_FORM.into()),
    };
    // Only digits are left, so a failure to parse can only mean too many of them.
    let number: i64 = digits.parse().unwrap_or(i64::MAX);
    Ok(number.saturating_mul(scale))
}

/// Reads an integer: decimal with an optional sign, or hexadecimal behind `0x`.
///
/// A leading zero does not make the number octal: the C driver reads it so, clients and the Java driver do not.
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
    // `from_str_radix` would take a second sign.
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err("an integer".into());
    }
    i64::from_str_radix(&format!("{sign}{digits}"), radix)
        .map_err(|_| "an integer of 64 bits".into())
}

/// Reads an integer of 32 bits, in the forms of [`parse_i64`].
pub fn parse_i32(text: &str) -> Result<i32, Requirement> {
    parse_i64(text)
        .ok()
        .and_then(|n| i32::try_from(n).ok())
        .ok_or_else(|| "an integer in -2147483648..2147483647".into())
}

/// Reads a boolean: exactly `true` or `false`.
pub fn parse_bool(text: &str) -> Result<bool, Requirement> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("true or false".into()),
    }
}

/// Writes a size with the largest suffix that divides it exactly: `64k`, `1408`, `16m`.
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

/// Writes a duration with the largest unit that divides it exactly: `5s`, `100ms`, `1us`, `1500us`.
///
/// The labels of system counters use this form too (docs/spec/shared-memory.md §5.6).
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
