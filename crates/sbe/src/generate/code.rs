// SPDX-License-Identifier: Apache-2.0
//! Writer for Rust source, formatted as by rustfmt.
//!
//! Written by hand because `prettyplease` leaves no blank line between methods and drops comments, and the generator
//! needs only a few constructs.

use crate::printable;

/// Maximum line width.
const WIDTH: usize = 100;

/// Source text under construction.
#[derive(Debug, Default)]
pub(super) struct Code {
    text: String,
    depth: usize,
    /// True if the last line opened a block, so that no blank line is inserted.
    fresh: bool,
}

impl Code {
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Adds one line, or several lines with relative indentation.
    pub(super) fn line(&mut self, text: impl AsRef<str>) {
        for line in text.as_ref().lines() {
            if !line.is_empty() {
                self.indent();
                self.text.push_str(line);
            }
            self.text.push('\n');
        }
        self.fresh = false;
    }

    fn indent(&mut self) {
        for _ in 0..self.depth {
            self.text.push_str("    ");
        }
    }

    /// Adds a blank line between two items.
    pub(super) fn blank(&mut self) {
        if !self.fresh {
            self.text.push('\n');
        }
    }

    /// Adds a line that ends in `{`, and a body in braces.
    pub(super) fn block(&mut self, head: impl AsRef<str>, body: impl FnOnce(&mut Self)) {
        self.open(head);
        body(self);
        self.close("}");
    }

    pub(super) fn open(&mut self, head: impl AsRef<str>) {
        self.line(head);
        self.depth += 1;
        self.fresh = true;
    }

    pub(super) fn close(&mut self, end: &str) {
        self.depth -= 1;
        self.line(end);
    }

    /// Adds a semicolon after a block.
    pub(super) fn semicolon(&mut self) {
        if self.text.ends_with("}\n") {
            self.text.pop();
            self.text.push_str(";\n");
        }
    }

    /// Adds a doc comment.
    pub(super) fn doc(&mut self, text: &str) {
        for line in text.lines() {
            let line = line.trim_end();
            if line.is_empty() {
                self.line("///");
            } else {
                self.line(format!("/// {line}"));
            }
        }
    }

    /// Returns true if a line of this length fits at the current indentation.
    pub(super) const fn fits(&self, length: usize) -> bool {
        self.depth * 4 + length <= WIDTH
    }

    /// Adds a function: on one line if it fits, otherwise with one line per argument.
    pub(super) fn function(
        &mut self,
        name: &str,
        arguments: &[&str],
        result: &str,
        body: impl FnOnce(&mut Self),
    ) {
        let result = if result.is_empty() {
            String::new()
        } else {
            format!(" -> {result}")
        };
        let head = format!("{name}({}){result} {{", arguments.join(", "));
        if self.fits(head.len()) {
            self.open(head);
        } else {
            self.open(format!("{name}("));
            for argument in arguments {
                self.line(format!("{argument},"));
            }
            self.depth -= 1;
            let last = format!("){result} {{");
            // rustfmt counts the indentation twice here.
            if self.fits(self.depth * 4 + last.len()) {
                self.open(last);
            } else if self.fits(result.len() - 1) {
                self.line(format!("){result}"));
                self.open("{");
            } else {
                self.result(&result);
            }
        }
        body(self);
        self.close("}");
    }

    /// Adds a return type whose generic arguments exceed the line width, and the opening brace.
    fn result(&mut self, result: &str) {
        let inside = result
            .split_once('<')
            .and_then(|(name, rest)| Some((name, rest.strip_suffix('>')?)));
        let Some((name, inside)) = inside else {
            self.line(format!("){result}"));
            self.open("{");
            return;
        };
        self.line(format!("){name}<"));
        let (mut depth, mut start) = (0, 0);
        for (at, character) in inside.char_indices().chain([(inside.len(), ',')]) {
            match character {
                '<' | '(' => depth += 1,
                '>' | ')' => depth -= 1,
                ',' if depth == 0 => {
                    self.line(format!("    {},", inside[start..at].trim()));
                    start = at + 1;
                }
                _ => {}
            }
        }
        self.open("> {");
    }

    /// Adds a struct literal: on one line if it fits and is short enough for rustfmt.
    pub(super) fn structure(&mut self, before: &str, fields: &[&str], after: &str) {
        let short = format!("{before} {{ {} }}{after}", fields.join(", "));
        let inner = fields.iter().map(|field| field.len() + 2).sum::<usize>();
        if inner <= 20 && self.fits(short.len()) {
            self.line(short);
            return;
        }
        self.open(format!("{before} {{"));
        for field in fields {
            self.line(format!("{field},"));
        }
        self.close(&format!("}}{after}"));
    }

    /// Adds a call: on one line if it fits, otherwise after the line break behind `=`, otherwise with one line per
    /// argument.
    pub(super) fn call(&mut self, before: &str, arguments: &[&str], after: &str) {
        let inner = arguments.join(", ");
        let short = format!("{before}({inner}){after}");
        if inner.len() <= 60 {
            if self.fits(short.len()) {
                self.line(short);
                return;
            }
            if let Some((name, call)) = short.split_once(" = ")
                && self.fits(4 + call.len())
            {
                self.line(format!("{name} =\n    {call}"));
                return;
            }
        }
        self.open(format!("{before}("));
        for argument in arguments {
            self.line(format!("{argument},"));
        }
        self.close(&format!("){after}"));
    }
}

/// Escapes a description of the schema for a doc comment, so that none of it is interpreted as markup.
///
/// Code blocks in doc comments are run as tests of the crate that contains the codecs, and rustdoc warns of broken
/// links and HTML. Each line therefore becomes plain text of a paragraph.
pub(super) fn prose(text: &str) -> String {
    let mut prose = String::with_capacity(text.len());
    for line in printable::lines(text) {
        // Leading blanks, or blanks after a list marker, would start a code block.
        let words: Vec<&str> = line.split_whitespace().collect();
        plain_line(&mut prose, &words.join(" "));
        prose.push('\n');
    }
    prose.trim_end().to_owned()
}

/// Adds a line with a backslash before each character that is markup in its place.
fn plain_line(prose: &mut String, line: &str) {
    let mark = mark_of_a_list(line);
    for (at, character) in line.char_indices() {
        let means_something = match character {
            '[' | ']' | '<' | '>' | '`' | '~' | '*' | '_' | '\\' | '#' => true,
            // An entity is shown literally.
            '&' => !line[at + 1..].starts_with(' ') && at + 1 < line.len(),
            '.' | ')' if Some(at) == mark => true,
            // rustdoc replaces repeated characters (smart punctuation), which corrupts `--force` and text that is
            // copied. Quotation marks are left as they are.
            '-' | '.' if line[..at].ends_with(character) => true,
            // Lists, headings by underline, and tables. In a numbered list the marker follows the number.
            '-' | '+' | '=' | '|' => at == 0,
            // rustdoc warns of bare URLs, and a table delimiter row can begin with a colon.
            ':' => at == 0 || line[at..].starts_with("://"),
            _ => false,
        };
        if means_something {
            prose.push('\\');
        }
        prose.push(character);
    }
}

/// Returns the offset of the marker if the line looks like an item of a numbered list.
fn mark_of_a_list(line: &str) -> Option<usize> {
    let at = line.find(|character: char| !character.is_ascii_digit())?;
    let ends_there = matches!(line.as_bytes().get(at + 1), None | Some(b' '));
    (at > 0 && ends_there).then_some(at)
}

/// Formats a schema name as inline code on one line.
pub(super) fn named(name: &str) -> String {
    let name = printable::lines(name).concat().replace('`', "");
    format!("`{name}`")
}
