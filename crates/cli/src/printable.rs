// SPDX-License-Identifier: Apache-2.0
//! Untrusted text, made safe for terminals and for line-based output. Channels and error texts come from clients and
//! from the network; they could move the cursor or imitate lines of the output.

use std::borrow::Cow;

/// Replaces each control character with a question mark.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    replace_if(text, char::is_control)
}

/// Replaces each control character with a question mark, except line feeds and tabs.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    replace_if(text, |character| {
        character.is_control() && character != '\n' && character != '\t'
    })
}

fn replace_if(text: &str, is_unsafe: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.contains(&is_unsafe) {
        let replaced = |character| if is_unsafe(character) { '?' } else { character };
        Cow::Owned(text.chars().map(replaced).collect())
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(
            one_line("aeron:ipc?alias=\x1b[2J\n\x07é"),
            "aeron:ipc?alias=?[2J??é"
        );
        assert_eq!(lines("one\n\ttwo\x1b[2J\u{9b}"), "one\n\ttwo?[2J?");
        assert!(matches!(one_line("aeron:ipc"), Cow::Borrowed(_)));
    }
}
