// SPDX-License-Identifier: Apache-2.0
//! Character encodings and their names.

/// Character encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Charset {
    Ascii,
    Utf8,
    Latin1,
    Utf16Big,
    Utf16Little,
    /// Encoding that Java knows but this crate does not decode; holds the size of its code unit in bytes.
    Other(usize),
}

/// Names without a numeric part: those of Java's standard libraries, which the official tool uses, and their aliases.
const OTHERS: [&str; 29] = [
    "BIG5",
    "BIG5HKSCS",
    "CESU8",
    "EUCCN",
    "EUCJP",
    "EUCKR",
    "EUCTW",
    "GB18030",
    "GB2312",
    "GBK",
    "ISO2022CN",
    "ISO2022JP",
    "ISO2022KR",
    "JISX0201",
    "JOHAB",
    "KOI8R",
    "KOI8U",
    "LATIN10",
    "LATIN2",
    "LATIN3",
    "LATIN4",
    "LATIN5",
    "LATIN9",
    "MACROMAN",
    "MS932",
    "SHIFTJIS",
    "SJIS",
    "TIS620",
    "WINDOWS31J",
];

/// Length of the longest name, counting only letters and digits.
const LONGEST: usize = 16;

impl Charset {
    /// Returns the encoding with this name. Only letters and digits are compared, ignoring case: `ISO_8859_1`,
    /// `iso-8859-1`, `UTF8`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let plain = plain(name)?;
        Some(match plain.as_str() {
            "USASCII" | "ASCII" | "ISO646US" => Self::Ascii,
            "UTF8" => Self::Utf8,
            "ISO88591" | "LATIN1" | "L1" | "IBM819" | "CP819" => Self::Latin1,
            "UTF16" | "UTF16BE" => Self::Utf16Big,
            "UTF16LE" => Self::Utf16Little,
            "UTF32" | "UTF32BE" | "UTF32LE" => Self::Other(4),
            plain if OTHERS.contains(&plain) || is_numbered(plain) => Self::Other(1),
            _ => return None,
        })
    }

    /// Returns true if both names denote the same encoding. Two different unknown names are different encodings.
    pub(crate) fn is_one(name: &str, other: &str) -> bool {
        if name.eq_ignore_ascii_case(other) {
            return true;
        }
        let of = |name| Some((Self::named(name)?, plain(name)?));
        match (of(name), of(other)) {
            // The common encodings have many aliases. UTF-16 has a byte order mark and therefore differs from UTF-16BE.
            (Some((Self::Ascii, _)), Some((Self::Ascii, _)))
            | (Some((Self::Latin1, _)), Some((Self::Latin1, _))) => true,
            (Some((_, one)), Some((_, two))) => register(&one) == register(&two),
            _ => false,
        }
    }

    /// Returns the size of a code unit in bytes, which is also the number of zero bytes that terminate a text.
    pub(crate) const fn unit(self) -> usize {
        match self {
            Self::Ascii | Self::Utf8 | Self::Latin1 => 1,
            Self::Utf16Big | Self::Utf16Little => 2,
            Self::Other(unit) => unit,
        }
    }
}

/// Returns the name in upper case with only its letters and digits, or `None` if it is longer than `LONGEST`.
fn plain(name: &str) -> Option<String> {
    let counts = |byte: &u8| !b"-_ .".contains(byte);
    let bytes = name.bytes().filter(counts).take(LONGEST + 1);
    let plain = bytes.map(|byte| byte.to_ascii_uppercase()).collect();
    let plain = String::from_utf8(plain).ok()?;
    if plain.len() > LONGEST {
        return None;
    }
    // Java prefixes unregistered names with `X`.
    Some(match plain.strip_prefix('X') {
        Some(registered) => registered.to_owned(),
        None => plain,
    })
}

/// Returns the canonical family and number of a normalized name; aliases of one encoding return the same pair.
fn register(plain: &str) -> (&str, u32) {
    let number = |prefix| plain.strip_prefix(prefix)?.parse::<u32>().ok();
    let page = number("IBM").or_else(|| number("CP"));
    let of_windows = number("WINDOWS").or(page);
    match (plain, page, of_windows) {
        ("LATIN5", ..) => ("ISO8859", 9),
        ("LATIN9", ..) => ("ISO8859", 15),
        ("LATIN10", ..) => ("ISO8859", 16),
        ("SHIFTJIS", ..) => ("SJIS", 0),
        ("WINDOWS31J" | "MS932", ..) => ("WINDOWS", 932),
        (_, Some(page), _) if !(1250..=1258).contains(&page) => ("IBM", page),
        (_, _, Some(page)) => ("WINDOWS", page),
        // Latin-2 to Latin-4 are parts 2 to 4 of ISO 8859.
        _ => match number("LATIN").or_else(|| number("ISO8859")) {
            Some(part) => ("ISO8859", part),
            None => (plain, 0),
        },
    }
}

/// Returns true for the numbered families: parts of ISO 8859, and code pages.
fn is_numbered(plain: &str) -> bool {
    let number = |prefix| plain.strip_prefix(prefix)?.parse::<u32>().ok();
    let is_part = number("ISO8859").is_some_and(|part| (1..=16).contains(&part) && part != 12);
    let is_windows = number("WINDOWS").is_some_and(|page| {
        [874, 932, 936, 949, 950].contains(&page) || (1250..=1258).contains(&page)
    });
    let is_page = ["IBM", "CP"]
        .into_iter()
        .any(|prefix| number(prefix).is_some_and(|page| (37..=33_722).contains(&page)));
    is_part || is_windows || is_page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_aliases_return_same_encoding() {
        for (charset, names) in [
            (Charset::Ascii, &["US-ASCII", "ascii", "ISO646-US"][..]),
            (Charset::Utf8, &["UTF-8", "utf8", "UTF_8"]),
            (
                Charset::Latin1,
                &["ISO-8859-1", "iso_8859_1", "ISO8859-1", "latin1", "cp819"],
            ),
            (Charset::Utf16Big, &["UTF-16", "utf16be"]),
            (Charset::Utf16Little, &["UTF-16LE", "X-UTF-16LE"]),
            (Charset::Other(4), &["UTF-32", "UTF_32LE"]),
            (
                Charset::Other(1),
                &[
                    "windows-1252",
                    "Cp1252",
                    "ISO-8859-15",
                    "Shift_JIS",
                    "x-sjis",
                    "GB18030",
                    "Big5",
                    "EUC-JP",
                    "IBM037",
                    "ibm-1047",
                    "KOI8-R",
                    "x-MacRoman",
                ],
            ),
        ] {
            for name in names {
                assert_eq!(Charset::named(name), Some(charset), "{name}");
            }
        }
    }

    #[test]
    fn named_unknown_encoding_returns_none() {
        for name in [
            "",
            "-",
            "X",
            "UTF-9",
            "UTF-8!",
            "klingon",
            "ISO-8859-12",
            "ISO-8859-17",
            "ISO-8859-",
            "IBM",
            "cp1",
            "windows-1259",
            "ÜTF-8",
            "a name that is as long as no encoding's",
        ] {
            assert_eq!(Charset::named(name), None, "{name}");
        }
    }
}
