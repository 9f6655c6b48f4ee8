//! Lines of Rust, as rustfmt would set them.
//!
//! Written by hand rather than by a formatter: `prettyplease` leaves no blank line between methods and drops comments,
//! and the shapes that are needed here are few.

use crate::printable;

/// The longest line.
const WIDTH: usize = 100;

/// Text that grows line by line.
#[derive(Debug, Default)]
pub(super) struct Code {
    text: String,
    depth: usize,
    /// Whether the last line opened a block, so that no blank line belongs here.
    fresh: bool,
}

impl Code {
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// One line, or several that are indented against each other already.
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

    /// A blank line between two things.
    pub(super) fn blank(&mut self) {
        if !self.fresh {
            self.text.push('\n');
        }
    }

    /// A line that ends in `{`, and what is in the braces.
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

    /// Ends a block that is a statement.
    pub(super) fn semicolon(&mut self) {
        if self.text.ends_with("}\n") {
            self.text.pop();
            self.text.push_str(";\n");
        }
    }

    /// Documentation.
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

    /// Whether a line of so many characters fits here.
    pub(super) const fn fits(&self, length: usize) -> bool {
        self.depth * 4 + length <= WIDTH
    }

    /// A function, on one line where that fits, else with a line for each argument; its body is one line or more.
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
            // Here rustfmt counts the indentation twice.
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

    /// A type with arguments that is longer than a line, and the brace behind it.
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

    /// A list in braces with a name before it, on one line where that fits and is short enough for rustfmt.
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

    /// A call, on one line where that fits, else behind its `=` alone, else with a line for each argument.
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

/// What a schema says of something, as documentation: nothing in it is taken for markup, and all of it is seen.
///
/// Code in documentation is run as a test of whoever uses the codecs, and of what rustdoc takes for links or HTML that are none
/// it warns its users. So each line is a line of a paragraph, whatever it looks like.
pub(super) fn prose(text: &str) -> String {
    let mut prose = String::with_capacity(text.len());
    for line in printable::lines(text) {
        // Blanks in front, or behind what may be the mark of a list, would make code of what follows.
        let words: Vec<&str> = line.split_whitespace().collect();
        plain_line(&mut prose, &words.join(" "));
        prose.push('\n');
    }
    prose.trim_end().to_owned()
}

/// A line with a backslash in front of all that means something where it stands.
fn plain_line(prose: &mut String, line: &str) {
    let mark = mark_of_a_list(line);
    for (at, character) in line.char_indices() {
        let means_something = match character {
            '[' | ']' | '<' | '>' | '`' | '~' | '*' | '_' | '\\' | '#' => true,
            // What is named by what follows it is shown instead.
            '&' => !line[at + 1..].starts_with(' ') && at + 1 < line.len(),
            '.' | ')' if Some(at) == mark => true,
            // rustdoc makes one of several, of which `--force` and what one copies suffer. Quotation marks stay themselves.
            '-' | '.' if line[..at].ends_with(character) => true,
            // Lists, lines below headings, and tables; the number of a list has its mark behind it.
            '-' | '+' | '=' | '|' => at == 0,
            // An address that is no link is warned of, and a row of a table begins with a colon too.
            ':' => at == 0 || line[at..].starts_with("://"),
            _ => false,
        };
        if means_something {
            prose.push('\\');
        }
        prose.push(character);
    }
}

/// Where the mark is, of a line that looks like a numbered part of a list.
fn mark_of_a_list(line: &str) -> Option<usize> {
    let at = line.find(|character: char| !character.is_ascii_digit())?;
    let ends_there = matches!(line.as_bytes().get(at + 1), None | Some(b' '));
    (at > 0 && ends_there).then_some(at)
}

/// A name of the schema in documentation: whatever somebody calls a thing, it is a part of one line, and code.
pub(super) fn named(name: &str) -> String {
    let name = printable::lines(name).concat().replace('`', "");
    format!("`{name}`")
}
