//! What schemas say, made fit for others: for comments of source code, for lines that programs read.

/// Whether a character shows itself and does nothing else. Controls move cursors and end lines, and so do two of Unicode's
/// own; those for text from right to left make people read what compilers do not, which is why these refuse them.
fn is_plain(character: char) -> bool {
    let is_hidden = matches!(character, '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    !character.is_control() && !is_hidden
}

/// The lines of a text, whatever ends them, with nothing in them that does not show itself.
pub(crate) fn lines(text: &str) -> Vec<String> {
    let ends = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];
    let plain = |line: &str| line.chars().filter(|shown| is_plain(*shown)).collect();
    text.replace("\r\n", "\n").split(ends).map(plain).collect()
}

/// The text in one line, with a question mark for whatever does not show itself.
pub(crate) fn one_line(text: &str) -> String {
    let fit = |character| if is_plain(character) { character } else { '?' };
    text.chars().map(fit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_does_not_show_itself() {
        assert_eq!(
            lines("a\r\nb\rc\n\nd\u{2028}e"),
            ["a", "b", "c", "", "d", "e"]
        );
        assert_eq!(lines("\u{202E}a\tb\u{2069}\u{7F}é"), ["abé"]);
        assert_eq!(one_line("a\ncargo::b\u{202E}\rc é"), "a?cargo::b??c é");
    }
}
