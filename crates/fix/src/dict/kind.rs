// SPDX-License-Identifier: Apache-2.0
//! Data types of fields.

use crate::wire::{self, Decimal, Timestamp};

/// Data type of a field, as far as it decides which values are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Integer.
    Int,
    /// Length of a data field.
    Length,
    /// Sequence number.
    SeqNum,
    /// Number of entries of a group.
    NumInGroup,
    /// Tag.
    TagNum,
    /// Day of a month.
    DayOfMonth,
    /// Decimal number: float, Qty, Price, PriceOffset, Amt, Percentage.
    Decimal,
    /// `Y` or `N`.
    Boolean,
    /// One byte.
    Char,
    /// Single characters, separated by spaces.
    MultipleChar,
    /// Words, separated by spaces.
    MultipleString,
    /// Date and time in UTC.
    UtcTimestamp,
    /// Time of day in UTC.
    UtcTime,
    /// Date.
    Date,
    /// Local time of day.
    LocalTime,
    /// Month of a year, with an optional day or week.
    MonthYear,
    /// Date and time with a time zone.
    TzTimestamp,
    /// Time of day with a time zone.
    TzTime,
    /// Duration such as `D5` or `M3`.
    Tenor,
    /// Any text.
    Text,
    /// Any bytes, behind a length.
    Data,
}

impl Kind {
    /// Returns the data type with this name in QuickFIX dictionaries or Orchestra, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_uppercase().as_str() {
            "INT" => Self::Int,
            "LENGTH" => Self::Length,
            "SEQNUM" => Self::SeqNum,
            "NUMINGROUP" => Self::NumInGroup,
            "TAGNUM" => Self::TagNum,
            "DAYOFMONTH" => Self::DayOfMonth,
            "FLOAT" | "QTY" | "QUANTITY" | "PRICE" | "PRICEOFFSET" | "AMT" | "PERCENTAGE" => {
                Self::Decimal
            }
            "BOOLEAN" => Self::Boolean,
            "CHAR" => Self::Char,
            "MULTIPLECHARVALUE" => Self::MultipleChar,
            "MULTIPLEVALUESTRING" | "MULTIPLESTRINGVALUE" => Self::MultipleString,
            "UTCTIMESTAMP" | "TIME" => Self::UtcTimestamp,
            "UTCTIMEONLY" => Self::UtcTime,
            "UTCDATEONLY" | "UTCDATE" | "LOCALMKTDATE" | "DATE" => Self::Date,
            "LOCALMKTTIME" => Self::LocalTime,
            "MONTHYEAR" => Self::MonthYear,
            "TZTIMESTAMP" => Self::TzTimestamp,
            "TZTIMEONLY" => Self::TzTime,
            "TENOR" => Self::Tenor,
            "STRING" | "CURRENCY" | "COUNTRY" | "EXCHANGE" | "LANGUAGE" | "XID" | "XIDREF"
            | "PATTERN" | "RESERVED100PLUS" | "RESERVED1000PLUS" | "RESERVED4000PLUS" => Self::Text,
            "DATA" | "XMLDATA" => Self::Data,
            _ => return None,
        })
    }

    /// Returns the name as in QuickFIX dictionaries.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int => "INT",
            Self::Length => "LENGTH",
            Self::SeqNum => "SEQNUM",
            Self::NumInGroup => "NUMINGROUP",
            Self::TagNum => "TAGNUM",
            Self::DayOfMonth => "DAYOFMONTH",
            Self::Decimal => "FLOAT",
            Self::Boolean => "BOOLEAN",
            Self::Char => "CHAR",
            Self::MultipleChar => "MULTIPLECHARVALUE",
            Self::MultipleString => "MULTIPLESTRINGVALUE",
            Self::UtcTimestamp => "UTCTIMESTAMP",
            Self::UtcTime => "UTCTIMEONLY",
            Self::Date => "LOCALMKTDATE",
            Self::LocalTime => "LOCALMKTTIME",
            Self::MonthYear => "MONTHYEAR",
            Self::TzTimestamp => "TZTIMESTAMP",
            Self::TzTime => "TZTIMEONLY",
            Self::Tenor => "TENOR",
            Self::Text => "STRING",
            Self::Data => "DATA",
        }
    }

    /// Returns true if the value has the form of this type. Sets of values are checked apart.
    #[must_use]
    pub fn accepts(self, value: &[u8]) -> bool {
        match self {
            Self::Int => wire::int(value).is_some(),
            Self::Length | Self::SeqNum | Self::NumInGroup | Self::TagNum => {
                wire::unsigned(value).is_some()
            }
            Self::DayOfMonth => wire::unsigned(value).is_some_and(|day| (1..=31).contains(&day)),
            Self::Decimal => Decimal::is_valid(value),
            Self::Boolean => matches!(value, [b'Y' | b'N']),
            Self::Char => wire::is_char(value),
            Self::MultipleChar => words(value).all(wire::is_char),
            Self::MultipleString => words(value).all(|word| !word.is_empty()),
            Self::UtcTimestamp => Timestamp::parse(value).is_some(),
            Self::UtcTime => wire::time_nanos(value).is_some(),
            Self::Date => wire::date_days(value).is_some(),
            Self::LocalTime => value.len() == 8 && wire::time_nanos(value).is_some(),
            Self::MonthYear => is_month_year(value),
            Self::TzTimestamp => {
                let parts = value.split_at_checked(9);
                parts.is_some_and(|(date, time)| {
                    let day = date.strip_suffix(b"-");
                    day.and_then(wire::date_days).is_some() && is_zoned_time(time)
                })
            }
            Self::TzTime => is_zoned_time(value),
            Self::Tenor => {
                matches!(value, [b'D' | b'W' | b'M' | b'Y', number @ ..] if wire::unsigned(number).is_some())
            }
            Self::Text | Self::Data => true,
        }
    }

    /// Returns true if a value is a list of words, each of which is checked against the set of values.
    #[must_use]
    pub const fn is_list(self) -> bool {
        matches!(self, Self::MultipleChar | Self::MultipleString)
    }
}

/// Returns the words of a list value, which single spaces separate.
pub(crate) fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b' ')
}

fn is_month_year(value: &[u8]) -> bool {
    let Some((month, rest)) = value.split_at_checked(6) else {
        return false;
    };
    let mut first = [b'0'; 8];
    first[..6].copy_from_slice(month);
    first[7] = b'1';
    wire::date_days(&first).is_some()
        && match rest {
            [] | [b'w', b'1'..=b'5'] => true,
            _ => wire::date_days(value).is_some(),
        }
}

/// Returns true for `HH:MM[:SS[.s…]]` followed by `Z` or an offset `+hh[:mm]`.
fn is_zoned_time(value: &[u8]) -> bool {
    let Some(zone) = value
        .iter()
        .position(|byte| matches!(byte, b'Z' | b'+' | b'-'))
    else {
        return false;
    };
    let (time, zone) = value.split_at(zone);
    let is_time = match time {
        [a, b, b':', c, d] => wire::time_nanos(&[*a, *b, b':', *c, *d, b':', b'0', b'0']).is_some(),
        _ => wire::time_nanos(time).is_some(),
    };
    let is_number = |digits: &[u8], below: u64| {
        digits.len() == 2 && wire::unsigned(digits).is_some_and(|number| number < below)
    };
    is_time
        && match zone {
            [b'Z'] => true,
            [b'+' | b'-', hour @ ..] if hour.len() == 2 => is_number(hour, 15),
            [b'+' | b'-', a, b, b':', minute @ ..] => {
                is_number(&[*a, *b], 15) && is_number(minute, 60)
            }
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_values_are_accepted_or_refused() {
        for (kind, valid, invalid) in [
            (Kind::Int, &["-1", "007"][..], &["+1", "1.0", ""][..]),
            (Kind::SeqNum, &["1"], &["-1"]),
            (Kind::DayOfMonth, &["1", "31"], &["0", "32"]),
            (Kind::Decimal, &["200.00", ".5"], &["+200.00", "1e3"]),
            (Kind::Boolean, &["Y", "N"], &["y", "YES"]),
            (Kind::Char, &["1"], &["12"]),
            (Kind::MultipleChar, &["A", "A B"], &["A  B", "AB", "A "]),
            (Kind::MultipleString, &["AB C"], &["AB  C"]),
            (Kind::UtcTimestamp, &["20240101-00:00:00"], &["20240101"]),
            (Kind::UtcTime, &["23:59:60.123"], &["24:00:00"]),
            (Kind::Date, &["20240229"], &["20230229", "2024022"]),
            (Kind::LocalTime, &["12:00:00"], &["12:00:00.1"]),
            (
                Kind::MonthYear,
                &["202401", "20240131", "202401w5"],
                &["202413", "20240132", "202401w6", "2024"],
            ),
            (
                Kind::TzTimestamp,
                &["20240101-07:39Z", "20240101-07:39:01.123+05:30"],
                &["20240101-07:39", "20240132-07:39Z", "20240101"],
            ),
            (
                Kind::TzTime,
                &["07:39-05", "07:39:00Z"],
                &["07:39+0530", "07:39+99"],
            ),
            (Kind::Tenor, &["D5", "M13"], &["5D", "D"]),
            (Kind::Text, &["anything"], &[]),
        ] {
            for value in valid {
                assert!(kind.accepts(value.as_bytes()), "{kind:?} {value}");
            }
            for value in invalid {
                assert!(!kind.accepts(value.as_bytes()), "{kind:?} {value}");
            }
            assert_eq!(Kind::named(kind.name()), Some(kind));
        }
    }
}
