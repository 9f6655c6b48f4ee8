// SPDX-License-Identifier: Apache-2.0
//! Decoding of XML files to text.

/// Decodes an XML file in one of the supported encodings.
///
/// The error is the part that could be decoded.
pub(super) fn decode(bytes: Vec<u8>) -> Result<String, String> {
    match *bytes.as_slice() {
        [0xFE, 0xFF, ref rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xFF, 0xFE, ref rest @ ..] => utf16(rest, u16::from_le_bytes),
        _ if declares_latin_1(&bytes) => Ok(bytes.into_iter().map(char::from).collect()),
        _ => String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            bytes.truncate(valid);
            String::from_utf8(bytes).unwrap_or_default()
        }),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, String> {
    let (pairs, rest) = bytes.as_chunks();
    let mut text = String::new();
    for character in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        match character {
            Ok(character) => text.push(character),
            Err(_) => return Err(text),
        }
    }
    if rest.is_empty() { Ok(text) } else { Err(text) }
}

/// Returns true if the first line declares it, as in `<?xml version="1.0" encoding="ISO-8859-1"?>`.
fn declares_latin_1(bytes: &[u8]) -> bool {
    let Some(end) = bytes.windows(2).take(200).position(|two| two == b"?>") else {
        return false;
    };
    let declaration = bytes[..end].to_ascii_lowercase();
    declaration.starts_with(b"<?xml")
        && declaration
            .windows(b"iso-8859-1".len())
            .any(|window| window == b"iso-8859-1")
}

/// Returns the declared encoding if it is unknown and can make a difference.
pub(super) fn unknown_encoding(text: &str) -> Option<&str> {
    if text.is_ascii() {
        return None;
    }
    let (declaration, _) = text.strip_prefix("<?xml")?.split_once("?>")?;
    let (_, behind) = declaration.split_once("encoding")?;
    let value = behind.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next()?;
    let (name, _) = value.strip_prefix(['"', '\''])?.split_once(quote)?;
    let is_known = |known: &&str| name.eq_ignore_ascii_case(known);
    let known = [
        "utf-8",
        "utf8",
        "utf-16",
        "utf-16le",
        "utf-16be",
        "iso-8859-1",
    ];
    (!known.iter().any(is_known)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_encoding_is_returned_for_non_ascii_text() {
        let text = |name: &str| format!("<?xml version=\"1.0\" encoding='{name}' ?><a b=\"é\"/>");
        for known in ["UTF-8", "utf-16", "ISO-8859-1"] {
            assert_eq!(unknown_encoding(&text(known)), None);
        }
        for unknown in ["windows-1252", "iso-8859-15"] {
            assert_eq!(unknown_encoding(&text(unknown)), Some(unknown));
            assert_eq!(unknown_encoding(&text(unknown).replace('é', "e")), None);
        }
        assert_eq!(unknown_encoding("<a encoding='é'/>"), None);
        assert_eq!(unknown_encoding("<?xml encoding=é?><a/>"), None);
    }

    #[test]
    fn decode_supported_encodings() {
        let text = "<a b=\"é\"/>";
        assert_eq!(decode(text.into()).unwrap(), text);
        let little: Vec<u8> = [0xFF, 0xFE]
            .into_iter()
            .chain(text.encode_utf16().flat_map(u16::to_le_bytes))
            .collect();
        assert_eq!(decode(little).unwrap(), text);
        let big: Vec<u8> = [0xFE, 0xFF]
            .into_iter()
            .chain(text.encode_utf16().flat_map(u16::to_be_bytes))
            .collect();
        assert_eq!(decode(big).unwrap(), text);
        let latin = b"<?xml version='1.0' encoding='iso-8859-1'?><a b='\xE9'/>".to_vec();
        assert!(decode(latin).unwrap().contains('é'));
        assert_eq!(decode(vec![b'<', 0xE9]), Err("<".to_owned()));
        assert_eq!(decode(vec![0xFF, 0xFE, b'<', 0, 1]), Err("<".to_owned()));
    }
}
