// SPDX-License-Identifier: Apache-2.0
//! Combines a file and the files it includes into one element tree.

use roxmltree::{Document, Error, Node, ParsingOptions};

use super::place::Places;
use super::sources::Sources;
use super::{Attribute, Element, MAX_NESTING, MAX_NODES, bounds, text};
use crate::model::Position;
use crate::problem::{Problem, Problems};

const XINCLUDE: &str = "http://www.w3.org/2001/XInclude";
/// Substring of the SBE namespaces, which differ by edition of the standard.
const SBE: &str = "fixprotocol";
/// Maximum number of files of a schema.
const MAX_FILES: usize = 256;
/// Maximum total size of all files, in bytes.
const MAX_BYTES: usize = 16 << 20;
/// Maximum length of attribute values, in bytes. Attributes of a type can be repeated for each element of that type.
const MAX_VALUE: usize = 256;
/// Maximum length of descriptions, in bytes.
const MAX_DESCRIPTION: usize = 4_096;

pub(super) struct Loader<'sources> {
    sources: &'sources dyn Sources,
    /// Files being read, each included by the preceding one.
    open: Vec<String>,
    /// Namespaces of their root elements.
    namespaces: Vec<Option<String>>,
    /// Nesting depth of the current element, including the elements of including files.
    depth: usize,
    files: usize,
    bytes: usize,
}

impl<'sources> Loader<'sources> {
    pub(super) fn new(sources: &'sources dyn Sources) -> Self {
        Self {
            sources,
            open: Vec::new(),
            namespaces: Vec::new(),
            depth: 0,
            files: 0,
            bytes: 0,
        }
    }

    /// Reads the root element of a file. The error is returned for unreadable files; all other problems are reported.
    pub(super) fn open(
        &mut self,
        name: &str,
        problems: &mut Problems,
    ) -> Result<Option<Element>, String> {
        let start = Position::start_of(name);
        self.files += 1;
        if self.files > MAX_FILES {
            problems.add(&start, Problem::TooManyFiles(MAX_FILES));
            return Ok(None);
        }
        let left = MAX_BYTES - self.bytes;
        let bytes = self
            .sources
            .read(name, left)
            .map_err(|error| error.to_string())?;
        if bytes.len() > left {
            problems.add(&start, Problem::TooLong(MAX_BYTES));
            return Ok(None);
        }
        self.bytes += bytes.len();
        let text = match text::decode(bytes) {
            Ok(text) => text,
            Err(readable) => {
                let place = Places::new(name, &readable).at(readable.len());
                problems.add(&place, Problem::NotText);
                return Ok(None);
            }
        };
        if let Some(encoding) = text::unknown_encoding(&text) {
            let encoding = encoding.chars().take(MAX_VALUE).collect();
            problems.add(&start, Problem::UnknownEncoding(encoding));
        }
        self.open.push(name.to_owned());
        let root = self.parse(name, &text, problems);
        self.open.pop();
        Ok(root)
    }

    fn parse(&mut self, name: &str, text: &str, problems: &mut Problems) -> Option<Element> {
        if let Err((start, problem)) = bounds::check(text) {
            problems.add(&Places::new(name, text).at(start), problem);
            return None;
        }
        let options = ParsingOptions {
            // Some schemas have a DOCTYPE without content.
            allow_dtd: true,
            nodes_limit: MAX_NODES,
            ..ParsingOptions::default()
        };
        match Document::parse_with_options(text, options) {
            Ok(document) => {
                let mut places = Places::new(name, text);
                let root = document.root_element();
                let namespace = root.tag_name().namespace();
                self.namespaces.push(namespace.map(str::to_owned));
                let mut found = self.element(root, &mut places, problems);
                self.namespaces.pop();
                found.pop()
            }
            Err(error) => {
                let (place, problem) = broken(name, text, &error);
                problems.add(&place, problem);
                None
            }
        }
    }

    /// Returns true if an element belongs to SBE: it has no namespace, that of the schema, or that of one of its files.
    fn is_ours(&self, namespace: Option<&str>) -> bool {
        let Some(namespace) = namespace else {
            return true;
        };
        let is_of_root = |root: &Option<String>| root.as_deref() == Some(namespace);
        namespace.contains(SBE) || self.namespaces.iter().any(is_of_root)
    }

    /// Reads an element or the elements it includes: none if the file is missing or the element belongs to another
    /// namespace, several if a fallback contains them.
    fn element(
        &mut self,
        node: Node<'_, '_>,
        places: &mut Places<'_>,
        problems: &mut Problems,
    ) -> Vec<Element> {
        let position = places.at(node.range().start);
        if self.depth >= MAX_NESTING {
            problems.add(&position, Problem::NestedElements(MAX_NESTING));
            return Vec::new();
        }
        let (tag, namespace) = (node.tag_name().name(), node.tag_name().namespace());
        let is_include = node.has_tag_name((XINCLUDE, "include"));
        if !is_include && !self.is_ours(namespace) {
            let start = |text: &str| text.chars().take(MAX_VALUE).collect();
            let (element, namespace) = (start(tag), start(namespace.unwrap_or_default()));
            problems.add(&position, Problem::Foreign { element, namespace });
            return Vec::new();
        }
        self.depth += 1;
        let elements = if is_include {
            self.include(node, &position, places, problems)
        } else {
            vec![self.plain(node, position, places, problems)]
        };
        self.depth -= 1;
        elements
    }

    fn plain(
        &mut self,
        node: Node<'_, '_>,
        position: Position,
        places: &mut Places<'_>,
        problems: &mut Problems,
    ) -> Element {
        let attributes = node
            .attributes()
            .filter(|attribute| attribute.namespace().is_none())
            .map(|found| attribute(&found, places.at(found.range().start), problems))
            .collect();
        let mut text = String::new();
        let mut children = Vec::new();
        for child in node.children() {
            if child.is_element() {
                children.append(&mut self.element(child, places, problems));
            } else if child.is_text() {
                text.push_str(child.text().unwrap_or_default());
            }
        }
        Element {
            name: node.tag_name().name().to_owned(),
            position,
            attributes,
            children,
            text,
        }
    }

    fn include(
        &mut self,
        node: Node<'_, '_>,
        position: &Position,
        places: &mut Places<'_>,
        problems: &mut Problems,
    ) -> Vec<Element> {
        for (what, only) in [("parse", Some("xml")), ("xpointer", None)] {
            let value = node.attribute(what);
            if value.is_some() && value != only {
                let value = value.unwrap_or_default().to_owned();
                problems.add(position, Problem::Include { what, value });
                return Vec::new();
            }
        }
        let Some(href) = node.attribute("href").filter(|href| !href.is_empty()) else {
            let element = "xi:include".to_owned();
            let attribute = "href";
            problems.add(position, Problem::MissingAttribute { element, attribute });
            return Vec::new();
        };
        let by = self.open.last().cloned().unwrap_or_default();
        let name = self.sources.beside(&by, href);
        if self.open.contains(&name) {
            problems.add(position, Problem::IncludeCycle { name, by });
            return Vec::new();
        }
        match self.open(&name, problems) {
            Ok(root) => root.into_iter().collect(),
            Err(reason) => {
                let fallback = node
                    .children()
                    .find(|child| child.has_tag_name((XINCLUDE, "fallback")));
                let Some(fallback) = fallback else {
                    problems.add(position, Problem::Unreadable { name, reason });
                    return Vec::new();
                };
                let mut elements = Vec::new();
                for child in fallback.children().filter(Node::is_element) {
                    elements.append(&mut self.element(child, places, problems));
                }
                elements
            }
        }
    }
}

/// Returns the problem and the position of a parser error.
fn broken(name: &str, text: &str, error: &Error) -> (Position, Problem) {
    let mut places = Places::new(name, text);
    let place = match error {
        // The parser gives no position for these errors.
        Error::UnexpectedEndOfStream | Error::NoRootNode => places.at(text.len()),
        Error::UnclosedRootNode => match bounds::unclosed(text) {
            Some((start, element)) => {
                let element = element.chars().take(MAX_VALUE).collect();
                return (places.at(start), Problem::Unclosed(element));
            }
            None => places.at(text.len()),
        },
        // The parser gives no position for exceeded limits either; they apply to the whole file.
        _ => Position {
            file: name.into(),
            line: error.pos().row,
            column: error.pos().col,
        },
    };
    let reported = error.to_string();
    // The position is already part of the diagnostic.
    let end = format!(" at {}", error.pos());
    let reported = reported.strip_suffix(&end).unwrap_or(&reported);
    (place, Problem::Xml(reported.to_owned()))
}

/// Reads an attribute; a value over the limit is truncated.
fn attribute(
    found: &roxmltree::Attribute<'_, '_>,
    position: Position,
    problems: &mut Problems,
) -> Attribute {
    let most = match found.name() {
        "description" => MAX_DESCRIPTION,
        _ => MAX_VALUE,
    };
    let name: String = found.name().chars().take(MAX_VALUE).collect();
    let value = if found.value().len() > most {
        let attribute = name.clone();
        problems.add(&position, Problem::LongValue { attribute, most });
        found.value().chars().take(most / 4).collect()
    } else {
        found.value().to_owned()
    };
    Attribute {
        name,
        value,
        position,
    }
}
