// SPDX-License-Identifier: Apache-2.0
//! Fields of a message in order, with data fields passed over by their lengths.

use thiserror::Error;

use super::{SOH, tag, unsigned};

/// Field: a tag and the bytes of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'bytes> {
    /// Tag.
    pub tag: u32,
    /// Value, without the delimiter; never empty.
    pub value: &'bytes [u8],
    /// Offset of the tag.
    pub at: usize,
}

/// Reason why bytes are not a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FieldFault {
    /// The tag is not a positive number without leading zeros. `written` is what stands there if it is numeric.
    #[error("invalid tag number at offset {at}")]
    Tag {
        /// Offset of the tag.
        at: usize,
        /// The number, if it is one.
        written: Option<i64>,
    },
    /// There is no equals sign: a value held a delimiter.
    #[error("text without tag at offset {at}")]
    NoEquals {
        /// Offset of the text.
        at: usize,
    },
    /// The value is empty.
    #[error("tag {tag} has no value")]
    Empty {
        /// Tag.
        tag: u32,
        /// Offset of the tag.
        at: usize,
    },
    /// A data field does not end where its length says.
    #[error("data field {tag} does not have the length that precedes it")]
    Data {
        /// Tag of the data field.
        tag: u32,
        /// Offset of the tag.
        at: usize,
    },
}

/// Iterator over the fields of a byte range. It goes on after a fault, at the next delimiter.
#[derive(Debug, Clone)]
pub struct Fields<'bytes> {
    bytes: &'bytes [u8],
    at: usize,
    end: usize,
    /// Data field that has to follow, with its length.
    data: Option<(u32, usize)>,
}

impl<'bytes> Fields<'bytes> {
    /// Returns the fields of `bytes[start..end]`; the range is cut to the bytes that there are.
    #[must_use]
    pub fn new(bytes: &'bytes [u8], start: usize, end: usize) -> Self {
        let end = end.min(bytes.len());
        Self {
            bytes,
            at: start.min(end),
            end,
            data: None,
        }
    }

    /// Returns the offset of the next field.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.at
    }

    /// Makes the next field a data field of this length, if it has this tag. Pairs that are the same in all versions
    /// are known without a call ([`data_partner`]).
    pub fn expect_data(&mut self, tag: u32, length: usize) {
        self.data = Some((tag, length));
    }

    fn end_of_value(&self, start: usize, tag: u32, at: usize) -> Result<usize, FieldFault> {
        match self.data {
            Some((data, length)) if data == tag => {
                let end = start.checked_add(length).filter(|end| *end < self.end);
                let end = end.filter(|end| self.bytes[*end] == SOH);
                end.ok_or(FieldFault::Data { tag, at })
            }
            _ => Ok(delimiter(&self.bytes[..self.end], start)),
        }
    }
}

/// Returns the offset of the next delimiter, or the end.
fn delimiter(bytes: &[u8], start: usize) -> usize {
    let found = bytes[start..].iter().position(|byte| *byte == SOH);
    found.map_or(bytes.len(), |length| start + length)
}

impl<'bytes> Iterator for Fields<'bytes> {
    type Item = Result<Field<'bytes>, FieldFault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        let at = self.at;
        let bytes = &self.bytes[..self.end];
        let (mut tag, mut digits) = (0u32, 0);
        while let Some(digit) = bytes.get(at + digits).filter(|byte| byte.is_ascii_digit()) {
            // Ten digits are never valid, and nine cannot overflow.
            if digits < 9 {
                tag = tag * 10 + u32::from(digit - b'0');
            }
            digits += 1;
        }
        let is_tag = (1..=9).contains(&digits) && bytes[at] != b'0';
        let has_equals = bytes.get(at + digits) == Some(&b'=');
        if !is_tag || !has_equals {
            let end = delimiter(bytes, at);
            self.at = end + 1;
            self.data = None;
            let text = &bytes[at..end];
            let Some(equals) = text.iter().position(|byte| *byte == b'=') else {
                return Some(Err(FieldFault::NoEquals { at }));
            };
            let written = super::int(&text[..equals]);
            return Some(Err(FieldFault::Tag { at, written }));
        }
        let start = at + digits + 1;
        let end = match self.end_of_value(start, tag, at) {
            Ok(end) => end,
            Err(fault) => {
                self.data = None;
                self.at = delimiter(bytes, start) + 1;
                return Some(Err(fault));
            }
        };
        self.at = end + 1;
        self.data = None;
        let value = &bytes[start..end];
        if value.is_empty() {
            return Some(Err(FieldFault::Empty { tag, at }));
        }
        if let Some(data) = data_partner(tag) {
            // An invalid length makes the data field a common one; the check of values reports it.
            let length = unsigned(value).and_then(|length| usize::try_from(length).ok());
            self.data = length.map(|length| (data, length));
        }
        Some(Ok(Field { tag, value, at }))
    }
}

/// Returns the data field whose length this field holds, for the pairs that are the same in all versions
/// (`docs/spec/fix-gateway.md` §3.2).
#[must_use]
pub const fn data_partner(length: u32) -> Option<u32> {
    Some(match length {
        90 => 91,
        93 => 89,
        95 => 96,
        212 => 213,
        348 => 349,
        350 => 351,
        352 => 353,
        354 => 355,
        356 => 357,
        358 => 359,
        360 => 361,
        362 => 363,
        364 => 365,
        445 => 446,
        618 => 619,
        621 => 622,
        1401 => 1402,
        1403 => 1404,
        _ => return None,
    })
}

/// Returns true if the tag belongs to the standard header of any version.
#[must_use]
pub const fn is_header(tag: u32) -> bool {
    matches!(
        tag,
        tag::BEGIN_STRING
            | tag::BODY_LENGTH
            | tag::MSG_TYPE
            | tag::MSG_SEQ_NUM
            | tag::POSS_DUP_FLAG
            | tag::SENDER_COMP_ID
            | tag::SENDER_SUB_ID
            | tag::SENDING_TIME
            | tag::TARGET_COMP_ID
            | tag::TARGET_SUB_ID
            | 90
            | 91
            | tag::POSS_RESEND
            | 115
            | 116
            | 122
            | 128
            | 129
            | 142..=145
            | 212
            | 213
            | 347
            | 369
            | 370
            | 627..=630
            | 1128
            | 1129
            | 1156
    )
}

/// Returns true if the tag belongs to the standard trailer of any version.
#[must_use]
pub const fn is_trailer(tag: u32) -> bool {
    matches!(tag, 93 | 89 | 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Result<(u32, String), FieldFault>> {
        let bytes = text.replace('|', "\x01").into_bytes();
        Fields::new(&bytes, 0, bytes.len())
            .map(|field| {
                field.map(|field| (field.tag, String::from_utf8_lossy(field.value).into()))
            })
            .collect()
    }

    #[test]
    fn fields_values_keep_equals_signs() {
        assert_eq!(
            all("58=a=b|1=2|"),
            [Ok((58, "a=b".into())), Ok((1, "2".into()))]
        );
    }

    #[test]
    fn fields_data_may_hold_delimiters() {
        assert_eq!(
            all("95=5|96=a|1=b|58=x|"),
            [
                Ok((95, "5".into())),
                Ok((96, "a\x011=b".into())),
                Ok((58, "x".into()))
            ]
        );
    }

    #[test]
    fn fields_data_of_wrong_length_is_reported() {
        for text in [
            "95=9|96=abc|58=x|",
            "95=2|96=abc|58=x|",
            "95=99999999999|96=abc|58=x|",
        ] {
            let found = all(text);
            assert_eq!(
                found[1],
                Err(FieldFault::Data {
                    tag: 96,
                    at: text.find("96").expect("is there")
                })
            );
            assert_eq!(found[2], Ok((58, "x".into())));
        }
    }

    #[test]
    fn fields_faults_are_passed_over() {
        for (text, fault) in [
            (
                "0=a|58=x|",
                FieldFault::Tag {
                    at: 0,
                    written: Some(0),
                },
            ),
            (
                "-1=a|58=x|",
                FieldFault::Tag {
                    at: 0,
                    written: Some(-1),
                },
            ),
            (
                "058=a|58=x|",
                FieldFault::Tag {
                    at: 0,
                    written: Some(58),
                },
            ),
            (
                "a=a|58=x|",
                FieldFault::Tag {
                    at: 0,
                    written: None,
                },
            ),
            (
                "9999999999=a|58=x|",
                FieldFault::Tag {
                    at: 0,
                    written: Some(9_999_999_999),
                },
            ),
            ("abc|58=x|", FieldFault::NoEquals { at: 0 }),
            ("|58=x|", FieldFault::NoEquals { at: 0 }),
            ("44=|58=x|", FieldFault::Empty { tag: 44, at: 0 }),
        ] {
            assert_eq!(all(text), [Err(fault), Ok((58, "x".into()))], "{text}");
        }
    }
}
