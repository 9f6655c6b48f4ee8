// SPDX-License-Identifier: Apache-2.0
//! Sanitizing of schema text for source comments and machine-readable lines.

/// Returns true if a character is visible and has no side effect. Control characters and the Unicode line and paragraph
/// separators move the cursor or end lines. Bidirectional controls make code read differently from how it compiles, so
/// rustc rejects them.
fn is_plain(character: char) -> bool {
    let is_hidden = matches!(character, '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    !character.is_control() && !is_hidden
}

/// Splits a text at any line terminator and removes the remaining non-printable characters.
pub(crate) fn lines(text: &str) -> Vec<String> {
    let ends = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];
    let plain = |line: &str| line.chars().filter(|shown| is_plain(*shown)).collect();
    text.replace("\r\n", "\n").split(ends).map(plain).collect()
}

/// Returns the text as one line, with a question mark for each non-printable character.
pub(crate) fn one_line(text: &str) -> String {
    let fit = |character| if is_plain(character) { character } else { '?' };
    text.chars().map(fit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_printable_characters_are_removed_or_replaced() {
        assert_eq!(
            lines("a\r\nb\rc\n\nd\u{2028}e"),
            ["a", "b", "c", "", "d", "e"]
        );
        assert_eq!(lines("\u{202E}a\tb\u{2069}\u{7F}é"), ["abé"]);
        assert_eq!(one_line("a\ncargo::b\u{202E}\rc é"), "a?cargo::b??c é");
    }
}
