// SPDX-License-Identifier: Apache-2.0
//! Texts in shared memory: ASCII with a length, untrusted.

use crate::memory::Region;

/// Returns the bytes to store for a text: `?` for each character that is not ASCII, as Aeron for Java does.
pub(crate) fn encode(text: &str) -> impl Iterator<Item = u8> + '_ {
    text.chars().map(|character| {
        if character.is_ascii() {
            character as u8
        } else {
            b'?'
        }
    })
}

/// Returns a stored byte for output: `?` for bytes that are not printable ASCII, which removes escape sequences.
pub(crate) fn printable(byte: u8) -> u8 {
    if byte == b' ' || byte.is_ascii_graphic() {
        byte
    } else {
        b'?'
    }
}

/// Reads a text of one line, e.g. a channel.
///
/// # Panics
/// If the range is not inside the region; callers check it first.
pub(crate) fn read_line(region: &Region, offset: usize, len: usize) -> String {
    read(region, offset, len, printable)
}

/// Reads a text of many lines, e.g. a stack trace; tabs and line ends are kept.
///
/// # Panics
/// If the range is not inside the region; callers check it first.
pub(crate) fn read_lines(region: &Region, offset: usize, len: usize) -> String {
    read(region, offset, len, |byte| {
        if matches!(byte, b'\n' | b'\t') {
            byte
        } else {
            printable(byte)
        }
    })
}

fn read(region: &Region, offset: usize, len: usize, shown: impl Fn(u8) -> u8) -> String {
    // A racing copy starts at a multiple of 8.
    let start = offset & !7;
    let skip = offset - start;
    let mut bytes = vec![0; skip + len];
    region.copy_racing_out(start, &mut bytes);
    bytes[skip..]
        .iter()
        .map(|&byte| char::from(shown(byte)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encode_replaces_characters_that_are_not_ascii() {
        assert_eq!(encode("a\u{e9}\u{1f600}b").collect::<Vec<_>>(), b"a??b");
    }

    #[test]
    fn texts_may_start_at_any_offset() {
        let region = Region::anonymous(64).unwrap();
        region.write(13, b"tab\tline\n\x1b[31m\xff\0");
        assert_eq!(read_line(&region, 13, 16), "tab?line??[31m??");
        assert_eq!(read_lines(&region, 13, 16), "tab\tline\n?[31m??");
        assert_eq!(read_line(&region, 64, 0), "");
    }
}
