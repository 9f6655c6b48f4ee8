//! Bytes to text.

use std::borrow::Cow;

use super::Value;

/// Bytes in an encoding that has a name.
pub(super) fn value<'data>(bytes: &'data [u8], encoding: &'data str) -> Value<'data> {
    match decode(bytes, encoding) {
        Some(text) => Value::Text(text),
        None => Value::NotText { encoding, bytes },
    }
}

/// The part of an array of characters that is in front of its first zero.
pub(super) fn until_zero<'data>(bytes: &'data [u8], encoding: &str) -> &'data [u8] {
    let unit = if encoding.to_ascii_uppercase().starts_with("UTF-16") {
        2
    } else {
        1
    };
    let mut units = bytes.chunks_exact(unit);
    let end = units.position(|unit| unit.iter().all(|byte| *byte == 0));
    &bytes[..end.map_or(bytes.len(), |units| units * unit)]
}

fn decode<'data>(bytes: &'data [u8], encoding: &str) -> Option<Cow<'data, str>> {
    // Names are written in many ways: `ISO_8859_1`, `iso-8859-1`, `UTF8`.
    let mut plain = [0; 16];
    let mut length = 0;
    for byte in encoding.bytes().filter(u8::is_ascii_alphanumeric) {
        *plain.get_mut(length)? = byte.to_ascii_uppercase();
        length += 1;
    }
    match &plain[..length] {
        // ASCII is a part of UTF-8; who sends more than the former most likely means the latter.
        b"USASCII" | b"ASCII" | b"UTF8" => Some(Cow::Borrowed(str::from_utf8(bytes).ok()?)),
        b"ISO88591" | b"LATIN1" => Some(bytes.iter().copied().map(char::from).collect()),
        b"UTF16" | b"UTF16BE" => utf16(bytes, u16::from_be_bytes),
        b"UTF16LE" => utf16(bytes, u16::from_le_bytes),
        _ => None,
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
    fn encodings_go_by_many_names() {
        for name in ["UTF-8", "utf8", "US-ASCII", "ascii", "ISO_8859_1", "latin1"] {
            assert_eq!(decode(b"abc", name).as_deref(), Some("abc"), "{name}");
        }
        assert_eq!(decode(b"\xE9", "ISO-8859-1").as_deref(), Some("é"));
        assert_eq!(decode(b"\x00\xE9", "UTF-16").as_deref(), Some("é"));
        assert_eq!(decode(b"\xE9\x00", "UTF-16LE").as_deref(), Some("é"));
        assert_eq!(decode(b"\xE9", "UTF-8"), None);
        assert_eq!(decode(b"\xE9", "UTF-16"), None);
        assert_eq!(decode(b"abc", "EBCDIC"), None);
        assert_eq!(
            decode(b"abc", "a name that is as long as no encoding's"),
            None
        );
    }
}
