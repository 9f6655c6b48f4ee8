// SPDX-License-Identifier: Apache-2.0
//! XML of dictionaries: bounds before parsing, attributes, and problems with positions.

use roxmltree::{Document, Node, ParsingOptions};

use super::{Diagnostic, Problem, Rejected};

/// Largest dictionary: the full set of FIX 5.0 SP2 has 5 MB.
const MAX_BYTES: usize = 64 << 20;
const MAX_NODES: u32 = 4_000_000;
/// The parser compares each attribute of an element with all others.
const MAX_ATTRIBUTES: usize = 64;
const MAX_NAMESPACES: usize = 100;
/// The parser, and all that walks the tree, are recursive.
const MAX_DEPTH: usize = 64;

/// Parses the text; entities and document types are refused.
pub(super) fn parse<'text>(file: &str, text: &'text str) -> Result<Document<'text>, Rejected> {
    let reject = |line, column, problem| {
        let file = file.to_owned();
        Rejected {
            problems: vec![Diagnostic {
                file,
                line,
                column,
                problem,
            }],
        }
    };
    check_bounds(text).map_err(|limit| reject(1, 1, Problem::Limit(limit)))?;
    let options = ParsingOptions {
        allow_dtd: false,
        nodes_limit: MAX_NODES,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(text, options).map_err(|error| {
        let position = error.pos();
        reject(position.row, position.col, Problem::Xml(error.to_string()))
    })
}

fn check_bounds(text: &str) -> Result<(), &'static str> {
    if text.len() > MAX_BYTES {
        return Err("the file is larger than 64 MiB");
    }
    let (mut namespaces, mut depth) = (0, 0usize);
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        rest = &rest[start..];
        let skipped = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")]
            .into_iter()
            .find_map(|(open, close)| {
                let inside = rest.strip_prefix(open)?;
                Some(
                    inside
                        .find(close)
                        .map_or(rest.len(), |end| open.len() + end + close.len()),
                )
            });
        if let Some(length) = skipped {
            rest = &rest[length..];
            continue;
        }
        // Attribute values cannot contain `<`, so a tag ends before the next one.
        let length = rest[1..].find('<').map_or(rest.len(), |next| next + 1);
        let tag = &rest[..length];
        let end = tag_end(tag);
        let tag = &tag[..end];
        namespaces += tag.matches("xmlns").count();
        if namespaces > MAX_NAMESPACES {
            return Err("the file has more than 100 namespace declarations");
        }
        if tag.matches(['"', '\'']).count() > 2 * MAX_ATTRIBUTES {
            return Err("an element has more than 64 attributes");
        }
        if tag.starts_with("</") {
            depth = depth.saturating_sub(1);
        } else if !tag.ends_with('/') && !tag.starts_with("<!") {
            depth += 1;
            if depth > MAX_DEPTH {
                return Err("elements are nested more than 64 deep");
            }
        }
        rest = &rest[length..];
    }
    Ok(())
}

/// Returns the offset of the `>` that ends a tag, outside of quoted values.
fn tag_end(tag: &str) -> usize {
    let mut quote = None;
    for (at, byte) in tag.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    tag.len()
}

/// Problems found so far.
pub(super) struct Problems<'file> {
    file: &'file str,
    found: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    /// Number of warnings, repeated ones included: each is compared with those before.
    warned: usize,
}

/// Largest number of problems that are collected.
const MAX_PROBLEMS: usize = 1000;

impl<'file> Problems<'file> {
    pub(super) const fn new(file: &'file str) -> Self {
        let found = Vec::new();
        let warnings = Vec::new();
        Self {
            file,
            found,
            warnings,
            warned: 0,
        }
    }

    /// Adds a problem at the start of the element.
    pub(super) fn add(&mut self, node: Node<'_, '_>, problem: Problem) {
        if self.found.len() < MAX_PROBLEMS {
            let problem = self.diagnostic(node, problem);
            self.found.push(problem);
        }
    }

    /// Adds a problem that does not prevent the use of the dictionary; the same one counts once.
    pub(super) fn warn(&mut self, node: Node<'_, '_>, problem: Problem) {
        self.warned += 1;
        if self.warned > 10 * MAX_PROBLEMS {
            return;
        }
        let is_known = self.warnings.iter().any(|known| known.problem == problem);
        if self.warnings.len() < MAX_PROBLEMS && !is_known {
            let problem = self.diagnostic(node, problem);
            self.warnings.push(problem);
        }
    }

    pub(super) fn take_warnings(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.warnings)
    }

    fn diagnostic(&self, node: Node<'_, '_>, problem: Problem) -> Diagnostic {
        let position = node.document().text_pos_at(node.range().start);
        Diagnostic {
            file: self.file.to_owned(),
            line: position.row,
            column: position.col,
            problem,
        }
    }

    /// Returns the value if there are no problems.
    pub(super) fn finish<T>(self, value: Option<T>) -> Result<T, Rejected> {
        let mut problems = self.found;
        match value {
            Some(value) if problems.is_empty() => Ok(value),
            _ => {
                problems.sort_by_key(|problem| (problem.line, problem.column));
                Err(Rejected { problems })
            }
        }
    }

    pub(super) fn required<'text>(
        &mut self,
        node: Node<'text, '_>,
        attribute: &'static str,
    ) -> Option<&'text str> {
        let value = node.attribute(attribute);
        if value.is_none() {
            let element = node.tag_name().name().to_owned();
            self.add(node, Problem::Attribute { element, attribute });
        }
        value
    }

    /// Returns a tag: a number from 1 to 2^31-1.
    pub(super) fn tag(&mut self, node: Node<'_, '_>, attribute: &'static str) -> Option<u32> {
        let value = self.required(node, attribute)?;
        let number = value.parse::<i32>().ok().filter(|number| *number > 0);
        if number.is_none() {
            let expected = "a number from 1 to 2147483647";
            let value = value.to_owned();
            self.add(
                node,
                Problem::Value {
                    attribute,
                    value,
                    expected,
                },
            );
        }
        number.map(i32::cast_unsigned)
    }
}

/// Returns the child elements.
pub(super) fn children<'node, 'text>(
    node: Node<'node, 'text>,
) -> impl Iterator<Item = Node<'node, 'text>> {
    node.children().filter(Node::is_element)
}

/// Returns the children of the first child with this name.
pub(super) fn list<'node, 'text>(
    root: Node<'node, 'text>,
    name: &'static str,
) -> impl Iterator<Item = Node<'node, 'text>> {
    let list = children(root).find(|child| child.tag_name().name() == name);
    list.into_iter().flat_map(children)
}
