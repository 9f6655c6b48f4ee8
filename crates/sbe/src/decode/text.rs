// SPDX-License-Identifier: Apache-2.0
//! Decoding of text.

use std::borrow::Cow;

use super::Value;
use crate::charset::Charset;

/// Decodes bytes in a named encoding.
pub(super) fn value<'data>(bytes: &'data [u8], encoding: &'data str) -> Value<'data> {
    match decode(bytes, encoding) {
        Some(text) => Value::Text(text),
        None => Value::NotText { encoding, bytes },
    }
}

/// Returns the bytes of a character array up to its first zero code unit.
pub(super) fn until_zero<'data>(bytes: &'data [u8], encoding: &str) -> &'data [u8] {
    let unit = Charset::named(encoding).map_or(1, Charset::unit);
    let mut units = bytes.chunks_exact(unit);
    let end = units.position(|unit| unit.iter().all(|byte| *byte == 0));
    &bytes[..end.map_or(bytes.len(), |units| units * unit)]
}

fn decode<'data>(bytes: &'data [u8], encoding: &str) -> Option<Cow<'data, str>> {
    match Charset::named(encoding)? {
        // ASCII is a subset of UTF-8; bytes outside of ASCII are most likely UTF-8.
        Charset::Ascii | Charset::Utf8 => Some(Cow::Borrowed(str::from_utf8(bytes).ok()?)),
        Charset::Latin1 => Some(bytes.iter().copied().map(char::from).collect()),
        Charset::Utf16Big => utf16(bytes, u16::from_be_bytes),
        Charset::Utf16Little => utf16(bytes, u16::from_le_bytes),
        Charset::Other(_) => None,
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<Cow<'_, str>> {
    let (pairs, rest) = bytes.as_chunks();
    if !rest.is_empty() {
        return None;
    }
    char::decode_utf16(pairs.iter().map(|pair| unit(*pair)))
        .collect::<Result<String, _>>()
        .map(Cow::Owned)
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decode_text_in_known_encodings() {
        for name in ["UTF-8", "US-ASCII", "ISO_8859_1"] {
            assert_eq!(decode(b"abc", name).as_deref(), Some("abc"), "{name}");
        }
        assert_eq!(decode(b"\xE9", "ISO-8859-1").as_deref(), Some("é"));
        assert_eq!(decode(b"\x00\xE9", "UTF-16").as_deref(), Some("é"));
        assert_eq!(decode(b"\xE9\x00", "UTF-16LE").as_deref(), Some("é"));
        assert_eq!(decode(b"\xE9", "UTF-8"), None);
        assert_eq!(decode(b"\xE9", "UTF-16"), None);
        assert_eq!(decode(b"abc", "IBM037"), None);
        assert_eq!(decode(b"abc", "klingon"), None);
    }

    #[test]
    fn until_zero_stops_at_first_zero_code_unit() {
        for (encoding, expected) in [
            ("UTF-8", &b"a"[..]),
            ("klingon", b"a"),
            ("UTF-16LE", b"a\0b\0"),
            ("utf16le", b"a\0b\0"),
            ("UTF-32LE", b"a\0b\0\0\0c\0"),
        ] {
            let found = until_zero(b"a\0b\0\0\0c\0\0\0\0\0", encoding);
            assert_eq!(found, expected, "{encoding}");
        }
    }
}
