//! What others wrote, made fit for a terminal and for output of one line a thing: channels and error texts come from
//! clients and from the network, and could move the cursor or pretend to be lines of ours.

use std::borrow::Cow;

/// The text with a question mark for each control character.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    without(text, char::is_control)
}

/// The same, but line feeds and tabs stay.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    without(text, |character| {
        character.is_control() && character != '\n' && character != '\t'
    })
}

fn without(text: &str, unfit: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.contains(&unfit) {
        let fit = |character| if unfit(character) { '?' } else { character };
        Cow::Owned(text.chars().map(fit).collect())
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_others_moves_the_cursor() {
        assert_eq!(
            one_line("aeron:ipc?alias=\x1b[2J\n\x07é"),
            "aeron:ipc?alias=?[2J??é"
        );
        assert_eq!(lines("one\n\ttwo\x1b[2J\u{9b}"), "one\n\ttwo?[2J?");
        assert!(matches!(one_line("aeron:ipc"), Cow::Borrowed(_)));
    }
}
