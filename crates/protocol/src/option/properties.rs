// SPDX-License-Identifier: Apache-2.0
//! Parsing of property files and `-D` arguments (docs/spec/uri-and-configuration.md §5.1).

/// Maximum length in bytes of a line, and of a property whose value is continued over several lines.
pub const MAX_LINE_LENGTH: usize = 2047;

/// Reason why a property file cannot be parsed.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PropertiesError {
    /// A line has no `=` or `:`, or no name.
    #[error("line {line}: '{text}' is not a property, must be name=value")]
    Malformed {
        /// Line number, from 1.
        line: usize,
        /// Text of the line.
        text: String,
    },
    /// A line, or a property over several lines, is too long.
    #[error("line {line}: longer than {MAX_LINE_LENGTH} bytes")]
    TooLong {
        /// Line number, from 1.
        line: usize,
    },
    /// The last line ends in a backslash.
    #[error("line {line}: ends in a backslash, but no line follows")]
    Unfinished {
        /// Line number, from 1.
        line: usize,
    },
}

taran_core::debug_is_display!(PropertiesError);

/// Name and value.
pub type Define = (String, String);

/// Parses the text of a property file into names and values, in order. An empty value resets the option to its default.
///
/// A line is `name=value` or `name:value`. Blanks around the name and before the value are dropped; blanks after the
/// value are part of it. Lines that start with `#` or `!` are comments. A backslash at the end of a line continues the
/// value on the next line. Unlike in the official driver, the last line need not end with a line break.
///
/// # Errors
/// [`PropertiesError`] for the first invalid line.
pub fn parse_properties(text: &str) -> Result<Vec<Define>, PropertiesError> {
    let mut defines = Vec::new();
    let mut open: Option<(Define, usize)> = None;
    for (index, line_text) in text.lines().enumerate() {
        let line = index + 1;
        let content = line_text.trim_start_matches(BLANKS);
        if content.is_empty() || content.starts_with(['#', '!']) {
            continue;
        }
        if line_text.len() > MAX_LINE_LENGTH {
            return Err(PropertiesError::TooLong { line });
        }
        let ((name, mut value), part) = if let Some((define, _)) = open.take() {
            (define, content)
        } else {
            let (name, value) = split(content).ok_or_else(|| PropertiesError::Malformed {
                line,
                text: line_text.to_owned(),
            })?;
            ((name.to_owned(), String::new()), value)
        };
        let (part, is_continued) = match part.strip_suffix('\\') {
            Some(part) => (part, true),
            None => (part, false),
        };
        value.push_str(part);
        if name.len() + value.len() > MAX_LINE_LENGTH {
            return Err(PropertiesError::TooLong { line });
        }
        if is_continued {
            open = Some(((name, value), line));
        } else {
            defines.push((name, value));
        }
    }
    match open {
        Some((_, line)) => Err(PropertiesError::Unfinished { line }),
        None => Ok(defines),
    }
}

/// Parses the text after `-D`: `name=value` or `name:value`.
#[must_use]
pub fn parse_define(text: &str) -> Option<Define> {
    split(text).map(|(name, value)| (name.to_owned(), value.to_owned()))
}

const BLANKS: [char; 2] = [' ', '\t'];

/// Splits at the first `=` or `:`.
fn split(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once(['=', ':'])?;
    let name = name.trim_matches(BLANKS);
    (!name.is_empty()).then(|| (name, value.trim_start_matches(BLANKS)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn define(name: &str, value: &str) -> Define {
        (name.into(), value.into())
    }

    #[test]
    fn parse_properties_reads_file() {
        let text = "# comment\n! another\n\n  a.b = 1 \nc:d=e\nlong=x \\\n  # still a comment\n\n  y\\\n\tz\r\nempty=\nlast=5";
        assert_eq!(
            parse_properties(text),
            Ok(vec![
                define("a.b", "1 "),
                define("c", "d=e"),
                define("long", "x yz"),
                define("empty", ""),
                define("last", "5"),
            ])
        );
        assert_eq!(parse_properties(""), Ok(vec![]));
    }

    #[test]
    fn parse_properties_malformed_file_fails() {
        for (text, error) in [
            (
                "a=1\nb\n",
                PropertiesError::Malformed {
                    line: 2,
                    text: "b".into(),
                },
            ),
            (
                "=1\n",
                PropertiesError::Malformed {
                    line: 1,
                    text: "=1".into(),
                },
            ),
            ("a=1\\\n", PropertiesError::Unfinished { line: 1 }),
        ] {
            assert_eq!(parse_properties(text), Err(error), "{text}");
        }
        let long = format!("a={}\n", "x".repeat(MAX_LINE_LENGTH));
        assert_eq!(
            parse_properties(&long),
            Err(PropertiesError::TooLong { line: 1 })
        );
        let half = "x".repeat(MAX_LINE_LENGTH / 2);
        let joined = format!("a={half}\\\n{half}\\\n{half}\n");
        assert_eq!(
            parse_properties(&joined),
            Err(PropertiesError::TooLong { line: 3 })
        );
    }

    #[test]
    fn parse_define_accepts_equals_and_colon() {
        assert_eq!(parse_define("a.b=c"), Some(define("a.b", "c")));
        assert_eq!(parse_define("a.b:c"), Some(define("a.b", "c")));
        assert_eq!(parse_define("a="), Some(define("a", "")));
        assert_eq!(parse_define("a"), None);
        assert_eq!(parse_define("=b"), None);
    }

    proptest! {
        #[test]
        fn parse_random_text_never_panics(text in "[ -~\\n\\t\\\\é]{0,200}") {
            let _ = (parse_properties(&text), parse_define(&text));
        }
    }
}
