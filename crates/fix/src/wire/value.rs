// SPDX-License-Identifier: Apache-2.0
//! Values of fields (`docs/spec/fix-gateway.md` §3.3).

use std::fmt;

const NANOS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// Returns an integer: an optional minus sign and up to 18 digits, leading zeros allowed.
#[must_use]
pub fn int(value: &[u8]) -> Option<i64> {
    match value {
        [b'-', digits @ ..] => magnitude(digits).map(|magnitude| -magnitude),
        digits => magnitude(digits),
    }
}

/// Returns a non-negative integer of up to 18 digits.
#[must_use]
pub fn unsigned(value: &[u8]) -> Option<u64> {
    magnitude(value).map(i64::cast_unsigned)
}

fn magnitude(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    digits.iter().try_fold(0, |sum, digit| {
        digit
            .is_ascii_digit()
            .then(|| sum * 10 + i64::from(digit - b'0'))
    })
}

/// Returns true if the value is one byte.
#[must_use]
pub const fn is_char(value: &[u8]) -> bool {
    value.len() == 1
}

/// Decimal number: `mantissa` divided by ten to the power of `scale`.
///
/// Numbers of the same value with different numbers of trailing zeros are different here; [`Decimal::cmp_value`]
/// compares values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Decimal {
    mantissa: i64,
    scale: u8,
}

impl Decimal {
    /// Largest number of digits after the point.
    pub const MAX_SCALE: u8 = 18;

    /// Returns the number `mantissa / 10^scale`, or nothing if `scale` is more than 18.
    #[must_use]
    pub const fn new(mantissa: i64, scale: u8) -> Option<Self> {
        if scale > Self::MAX_SCALE {
            None
        } else {
            Some(Self { mantissa, scale })
        }
    }

    /// Returns the digits as an integer.
    #[must_use]
    pub const fn mantissa(self) -> i64 {
        self.mantissa
    }

    /// Returns the number of digits after the point.
    #[must_use]
    pub const fn scale(self) -> u8 {
        self.scale
    }

    /// Returns the number that these bytes write: an optional minus sign and digits with at most one point. A number
    /// with more digits than fit returns nothing; its bytes can be valid nevertheless ([`Decimal::is_valid`]).
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (is_negative, digits) = match value {
            [b'-', digits @ ..] => (true, digits),
            digits => (false, digits),
        };
        let (mut mantissa, mut scale, mut has_digit, mut has_point) = (0i64, 0u8, false, false);
        for byte in digits {
            match byte {
                b'0'..=b'9' => {
                    has_digit = true;
                    mantissa = mantissa
                        .checked_mul(10)?
                        .checked_add(i64::from(byte - b'0'))?;
                    scale += u8::from(has_point);
                    if scale > Self::MAX_SCALE {
                        return None;
                    }
                }
                b'.' if !has_point => has_point = true,
                _ => return None,
            }
        }
        let mantissa = if is_negative { -mantissa } else { mantissa };
        has_digit.then_some(Self { mantissa, scale })
    }

    /// Returns true if the bytes write a number of any length.
    #[must_use]
    pub fn is_valid(value: &[u8]) -> bool {
        let digits = value.strip_prefix(b"-").unwrap_or(value);
        let points = digits.iter().filter(|byte| **byte == b'.').count();
        let count = digits.iter().filter(|byte| byte.is_ascii_digit()).count();
        points <= 1 && count > 0 && points + count == digits.len()
    }

    /// Compares the values of two numbers: `1.50` equals `1.5`.
    #[must_use]
    pub fn cmp_value(self, other: Self) -> std::cmp::Ordering {
        let at = |number: Self, scale: u8| {
            i128::from(number.mantissa) * 10i128.pow(u32::from(scale - number.scale))
        };
        let scale = self.scale.max(other.scale);
        at(self, scale).cmp(&at(other, scale))
    }

    /// Writes the number into the buffer and returns its bytes: `0.5`, never `.5` or `-0`.
    pub fn write(self, buffer: &mut [u8; 40]) -> &[u8] {
        let mut at = buffer.len();
        let mut rest = self.mantissa.unsigned_abs();
        let mut written = 0;
        let mut put = |byte: u8| {
            at -= 1;
            buffer[at] = byte;
        };
        loop {
            if written == self.scale && written > 0 {
                put(b'.');
            }
            // One digit of ten: fits.
            put(b'0' + (rest % 10) as u8);
            rest /= 10;
            written += 1;
            if rest == 0 && written > self.scale {
                break;
            }
        }
        if self.mantissa < 0 {
            put(b'-');
        }
        &buffer[at..]
    }
}

impl From<i64> for Decimal {
    fn from(mantissa: i64) -> Self {
        Self { mantissa, scale: 0 }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [0; 40];
        let text = self.write(&mut buffer);
        // Only digits, a point and a minus sign.
        formatter.write_str(std::str::from_utf8(text).unwrap_or_default())
    }
}

/// Number of digits after the seconds of a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Precision {
    /// None.
    Seconds,
    /// Three.
    #[default]
    Millis,
    /// Six.
    Micros,
    /// Nine.
    Nanos,
}

/// Time in UTC: nanoseconds since 1970-01-01, within the years 1678 to 2261.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Longest text: `YYYYMMDD-HH:MM:SS.nnnnnnnnn`.
    pub const MAX_LENGTH: usize = 27;

    /// Returns the time this many nanoseconds after 1970-01-01.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since 1970-01-01.
    #[must_use]
    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// Returns the time that these bytes write: `YYYYMMDD-HH:MM:SS`, with up to twelve digits of a fraction, of which
    /// nine count. Second 60 is the first of the next minute.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (date, time) = value.split_at_checked(8)?;
        let days = date_days(date)?;
        let nanos = time_nanos(time.strip_prefix(b"-")?)?;
        let seconds = days.checked_mul(SECONDS_PER_DAY)?;
        seconds
            .checked_mul(NANOS_PER_SECOND)?
            .checked_add(nanos)
            .map(Self)
    }

    /// Writes the time into the buffer and returns its bytes.
    pub fn write(self, precision: Precision, buffer: &mut [u8; Self::MAX_LENGTH]) -> &[u8] {
        let seconds = self.0.div_euclid(NANOS_PER_SECOND);
        let nanos = self.0.rem_euclid(NANOS_PER_SECOND);
        let (year, month, day) = civil(seconds.div_euclid(SECONDS_PER_DAY));
        let of_day = seconds.rem_euclid(SECONDS_PER_DAY);
        digits(&mut buffer[0..4], year);
        digits(&mut buffer[4..6], month);
        digits(&mut buffer[6..8], day);
        buffer[8] = b'-';
        digits(&mut buffer[9..11], of_day / 3600);
        buffer[11] = b':';
        digits(&mut buffer[12..14], of_day / 60 % 60);
        buffer[14] = b':';
        digits(&mut buffer[15..17], of_day % 60);
        let (count, fraction) = match precision {
            Precision::Seconds => return &buffer[..17],
            Precision::Millis => (3, nanos / 1_000_000),
            Precision::Micros => (6, nanos / 1000),
            Precision::Nanos => (9, nanos),
        };
        buffer[17] = b'.';
        digits(&mut buffer[18..18 + count], fraction);
        &buffer[..18 + count]
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [0; Self::MAX_LENGTH];
        let text = self.write(Precision::Nanos, &mut buffer);
        // Only digits and separators.
        formatter.write_str(std::str::from_utf8(text).unwrap_or_default())
    }
}

/// Fills the slice with the last digits of a non-negative number.
fn digits(to: &mut [u8], mut number: i64) {
    for byte in to.iter_mut().rev() {
        // One digit of ten: fits.
        *byte = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Returns a number of exactly `length` digits.
fn fixed(value: &[u8], length: usize) -> Option<i64> {
    if value.len() == length {
        magnitude(value)
    } else {
        None
    }
}

/// Returns the days from 1970-01-01 to a date `YYYYMMDD` that exists.
pub(crate) fn date_days(value: &[u8]) -> Option<i64> {
    let year = fixed(value.get(..4)?, 4)?;
    let month = fixed(value.get(4..6)?, 2)?;
    let day = fixed(value.get(6..)?, 2)?;
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    Some(days(year, month, day))
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the nanoseconds of a time of day `HH:MM:SS` with an optional fraction of one to twelve digits.
pub(crate) fn time_nanos(value: &[u8]) -> Option<i64> {
    let (time, fraction) = value.split_at_checked(8)?;
    let hour = fixed(&time[..2], 2)?;
    let minute = fixed(&time[3..5], 2)?;
    let second = fixed(&time[6..], 2)?;
    if time[2] != b':' || time[5] != b':' || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let nanos = match fraction {
        [] => 0,
        [b'.', digits @ ..] if (1..=12).contains(&digits.len()) => {
            let number = magnitude(digits)?;
            // At most twelve digits.
            let length = u32::try_from(digits.len()).ok()?;
            if length <= 9 {
                number * 10i64.pow(9 - length)
            } else {
                number / 10i64.pow(length - 9)
            }
        }
        _ => return None,
    };
    Some((hour * 3600 + minute * 60 + second) * NANOS_PER_SECOND + nanos)
}

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar. Years begin in March, so that the day that
/// leap years add is their last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Returns year, month and day of a day counted from 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn int_forms_are_accepted_or_refused() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-5", Some(-5)),
            ("007", Some(7)),
            ("999999999999999999", Some(999_999_999_999_999_999)),
            ("1000000000000000000", None),
            ("+5", None),
            ("", None),
            ("-", None),
            ("1 ", None),
            ("5.", None),
        ] {
            assert_eq!(int(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(unsigned(b"-1"), None);
    }

    #[test]
    fn decimal_forms_are_accepted_or_refused() {
        for (text, expected) in [
            ("200.00", Some((20_000, 2))),
            ("-.5", Some((-5, 1))),
            ("5.", Some((5, 0))),
            ("0.000000000000000001", Some((1, 18))),
            ("0.0000000000000000001", None),
            ("9223372036854775807", Some((i64::MAX, 0))),
            ("9223372036854775808", None),
            ("+200.00", None),
            ("1e5", None),
            ("1.2.3", None),
            (".", None),
            ("-", None),
            ("", None),
            ("1,000", None),
        ] {
            let found = Decimal::parse(text.as_bytes());
            let found = found.map(|number| (number.mantissa(), number.scale()));
            assert_eq!(found, expected, "{text}");
        }
        assert!(Decimal::is_valid(b"12345678901234567890123.5"));
        assert!(!Decimal::is_valid(b"1-2"));
    }

    #[test]
    fn decimal_display_writes_leading_zero_and_no_negative_zero() {
        let shown = |text: &str| Decimal::parse(text.as_bytes()).map(|number| number.to_string());
        assert_eq!(shown(".5"), Some("0.5".into()));
        assert_eq!(shown("-0"), Some("0".into()));
        assert_eq!(shown("-0.05"), Some("-0.05".into()));
        assert_eq!(
            Decimal::new(i64::MIN, 18)
                .map(|number| number.to_string())
                .as_deref(),
            Some("-9.223372036854775808")
        );
        assert!(Decimal::new(1, 19).is_none());
        let half = Decimal::parse(b"1.50").expect("valid");
        assert!(
            half.cmp_value(Decimal::parse(b"1.5").expect("valid"))
                .is_eq()
        );
    }

    #[test]
    fn timestamp_forms_are_accepted_or_refused() {
        for (text, expected) in [
            ("19700101-00:00:00", Some(0)),
            ("20240229-12:34:56.789", Some(1_709_210_096_789_000_000)),
            (
                "20240229-12:34:56.123456789999",
                Some(1_709_210_096_123_456_789),
            ),
            ("19691231-23:59:59.999999999", Some(-1)),
            ("20161231-23:59:60", Some(1_483_228_800_000_000_000)),
            ("20230229-00:00:00", None),
            ("20241301-00:00:00", None),
            ("20240101-24:00:00", None),
            ("20240101-00:00:00.", None),
            ("20240101-00:00:00.1234567890123", None),
            ("20240101 00:00:00", None),
            ("20240101-00:00", None),
            ("99990101-00:00:00", None),
        ] {
            let found = Timestamp::parse(text.as_bytes()).map(Timestamp::nanos);
            assert_eq!(found, expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn timestamp_written_and_parsed_is_equal(nanos: i64) {
            let time = Timestamp::from_nanos(nanos);
            let mut buffer = [0; Timestamp::MAX_LENGTH];
            let parsed = Timestamp::parse(time.write(Precision::Nanos, &mut buffer));
            prop_assert_eq!(parsed, Some(time));
        }

        #[test]
        fn decimal_written_and_parsed_is_equal(mantissa in -i64::MAX.., scale in 0u8..=18) {
            let number = Decimal::new(mantissa, scale).expect("scale is small enough");
            let mut buffer = [0; 40];
            prop_assert_eq!(Decimal::parse(number.write(&mut buffer)), Some(number));
        }
    }
}
