// SPDX-License-Identifier: Apache-2.0
//! Checks on the text before it is parsed, against input that is expensive to parse.
//!
//! The parser compares each attribute of an element with all others, and copies the namespaces in scope for each
//! element that declares one. Schemas have few of either, and define no entities.

use crate::problem::Problem;

/// Maximum number of attributes of one element.
const MAX_ATTRIBUTES: usize = 64;
/// Maximum number of namespace declarations in one file.
const MAX_NAMESPACES: usize = 1_000;

/// Returns the first exceeded limit and its offset.
pub(super) fn check(text: &str) -> Result<(), (usize, Problem)> {
    // Entities can be defined only in a DOCTYPE; elsewhere the text can occur in comments.
    if text.contains("<!DOCTYPE")
        && let Some(start) = text.find("<!ENTITY")
    {
        return Err((start, Problem::Entities));
    }
    let mut namespaces = 0;
    let tags = Tags {
        text,
        at: 0,
        is_doubtful: false,
    };
    for tag in tags {
        for (at, _) in tag.text.match_indices("xmlns") {
            namespaces += 1;
            if namespaces > MAX_NAMESPACES {
                return Err((tag.start + at, Problem::TooManyNamespaces(MAX_NAMESPACES)));
            }
        }
        if tag.attributes > MAX_ATTRIBUTES {
            return Err((tag.start, Problem::TooManyAttributes(MAX_ATTRIBUTES)));
        }
    }
    Ok(())
}

/// Returns the offset and name of the innermost unclosed element, in a text that a parser has rejected for one.
pub(super) fn unclosed(text: &str) -> Option<(usize, &str)> {
    let tags = Tags {
        text,
        at: 0,
        is_doubtful: false,
    };
    let mut open = Vec::new();
    for tag in tags {
        let (tag_text, _) = self::tag(tag.text);
        let inside = &tag_text[1..];
        if inside.starts_with(['!', '?']) {
            continue;
        }
        if inside.starts_with('/') {
            open.pop();
        } else if !tag_text.ends_with('/') {
            let end = inside.find(char::is_whitespace);
            open.push((tag.start, &inside[..end.unwrap_or(inside.len())]));
        }
    }
    open.pop()
}

/// Start tag, with an upper bound of its number of attributes.
struct Tag<'text> {
    start: usize,
    text: &'text str,
    attributes: usize,
}

/// Iterator over the tags of a text. It may return more than the parser sees, but never less: it skips only what the
/// parser skips.
struct Tags<'text> {
    text: &'text str,
    at: usize,
    /// True after a DOCTYPE whose end only a parser can find. From there on, every `<` counts as a tag.
    is_doubtful: bool,
}

impl<'text> Iterator for Tags<'text> {
    type Item = Tag<'text>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let start = self.at + self.text.get(self.at..)?.find('<')?;
            let rest = &self.text[start..];
            // A tag ends at the next `<` at the latest, which attribute values cannot contain.
            let length = rest[1..].find('<').map_or(rest.len(), |next| next + 1);
            let piece = &rest[..length];
            self.is_doubtful = self.is_doubtful || is_doubtful(piece);
            if !self.is_doubtful
                && let Some(length) = passed_over(rest)
            {
                self.at = start + length;
                continue;
            }
            self.at = start + length;
            let (text, attributes) = if self.is_doubtful {
                (piece, assignments(piece))
            } else {
                tag(piece)
            };
            return Some(Tag {
                start,
                text,
                attributes,
            });
        }
    }
}

/// Returns the length of the comment, CDATA section or processing instruction at the start of `rest`.
fn passed_over(rest: &str) -> Option<usize> {
    [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")]
        .into_iter()
        .find_map(|(open, close)| {
            let inside = rest.strip_prefix(open)?;
            // An unterminated one extends to the end of the text.
            let end = inside.find(close).map(|end| open.len() + end + close.len());
            Some(end.unwrap_or(rest.len()))
        })
}

/// Returns true for a DOCTYPE with more than a name, which can contain anything.
fn is_doubtful(piece: &str) -> bool {
    piece.starts_with("<!DOCTYPE")
        && piece
            .split_once('>')
            .is_none_or(|(head, _)| head.contains(['"', '\'', '[']))
}

/// Returns a tag without the text after it, and its number of quoted values.
fn tag(piece: &str) -> (&str, usize) {
    let (mut at, mut values) = (0, 0);
    while let Some(next) = piece[at..].find(['>', '"', '\'']) {
        let start = at + next;
        let quote = piece.as_bytes()[start];
        if quote == b'>' {
            return (&piece[..start], values);
        }
        values += 1;
        let inside = &piece[start + 1..];
        match inside.find(char::from(quote)) {
            Some(length) => at = start + 1 + length + 1,
            None => break,
        }
    }
    (piece, values)
}

/// Returns the number of equals signs followed by a quote.
fn assignments(part: &str) -> usize {
    let is_quoted = |rest: &&str| rest.trim_start().starts_with(['"', '\'']);
    part.split('=').skip(1).filter(is_quoted).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_accepts_ordinary_schema() {
        assert_eq!(check(""), Ok(()));
        let separator = "=".repeat(10_000);
        let usual = format!("<a b='1' c = \"2\"><!-- {separator} --></a>").repeat(10);
        assert_eq!(check(&usual), Ok(()));
    }

    #[test]
    fn check_exceeded_limit_returns_position() {
        let attributes = |count: usize| {
            let all: String = (0..count).map(|index| format!(" a{index} = '1'")).collect();
            format!("<a/>\n<b{all}/>")
        };
        assert_eq!(check(&attributes(64)), Ok(()));
        assert_eq!(
            check(&attributes(65)),
            Err((5, Problem::TooManyAttributes(64)))
        );
        let namespaces = "<a xmlns='b'/>".repeat(1_001);
        assert_eq!(
            check(&namespaces),
            Err((14_003, Problem::TooManyNamespaces(1_000)))
        );
        assert_eq!(
            check("<!DOCTYPE a [<!ENTITY b 'c'>]>"),
            Err((13, Problem::Entities))
        );
    }

    #[test]
    fn check_ignores_comments_cdata_and_instructions() {
        let many = " a='1' xmlns:b=\"c\"".repeat(2_000);
        for text in [
            format!("<a><!-- {many} <b{many}/> --></a>"),
            format!("<a><![CDATA[{many} <b{many}/> ]]></a>"),
            format!("<?xml version=\"1.0\"?><a><?b {many} <b{many}/> don't ?></a>"),
            format!("<!DOCTYPE a><a b='>'>{many}</a>"),
        ] {
            assert_eq!(check(&text), Ok(()), "{}", &text[..40]);
        }
    }

    #[test]
    fn unclosed_returns_innermost_element() {
        for (text, expected) in [
            ("<a>", (0, "a")),
            ("<a>\n<b c='>'/><d\n e='/'>", (14, "d")),
            ("<a><b></b><!-- <c> --><d/>", (0, "a")),
            ("<?a?><!DOCTYPE a [ <?b?> ]>\n<a> <b>c", (32, "b")),
        ] {
            assert_eq!(unclosed(text), Some(expected), "{text}");
        }
        assert_eq!(unclosed("<a></a>"), None);
    }

    #[test]
    fn tags_after_doctype_are_all_counted() {
        let attributes: String = (0..65).map(|index| format!(" a{index}='1'")).collect();
        for before in [
            "<!-- --><!---->",
            "<![CDATA[<!--]]>",
            "<?b <!-- ?>",
            "<!DOCTYPE a SYSTEM '<!--'>",
            "<!DOCTYPE a PUBLIC \"><!--\" '<![CDATA['>",
            "<!DOCTYPE a [ <?b?> ]>",
            "<c d='/>'/>",
        ] {
            let text = format!("{before}<b{attributes}/><!-- '?> --> ]]>");
            let reported = check(&text);
            assert_eq!(
                reported,
                Err((before.len(), Problem::TooManyAttributes(64))),
                "{before}"
            );
        }
    }
}
