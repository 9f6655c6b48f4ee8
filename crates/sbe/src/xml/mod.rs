// SPDX-License-Identifier: Apache-2.0
//! Parses schema files to an element tree with positions, with includes resolved.
//!
//! The parser is `roxmltree`; this module converts its result to a tree that does not borrow the text and can span
//! several files. Depth and size are bounded.

mod bounds;
mod include;
mod place;
mod sources;
mod text;

pub use sources::{Disk, InMemory, NoFiles, Sources};

use crate::model::Position;
use crate::problem::{Problem, Problems};
use include::Loader;

/// Maximum nesting depth of elements: more than any schema needs, and safe for recursion on any stack.
const MAX_NESTING: usize = 256;
/// Maximum number of nodes (elements, attributes and texts) in one file.
const MAX_NODES: u32 = 1_000_000;

/// Element.
#[derive(Debug, Clone)]
pub struct Element {
    /// Local name.
    pub name: String,
    /// Start position.
    pub position: Position,
    /// Attributes without a namespace.
    pub attributes: Vec<Attribute>,
    /// Child elements, in order.
    pub children: Vec<Element>,
    /// Text directly in the element.
    pub text: String,
}

/// Attribute.
#[derive(Debug, Clone)]
pub struct Attribute {
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
    /// Start position.
    pub position: Position,
}

impl Element {
    /// Returns the attribute with this name.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes
            .iter()
            .find(|attribute| attribute.name == name)
    }
}

/// Reads the file with this name and the files it includes.
pub(crate) fn load(name: &str, sources: &dyn Sources, problems: &mut Problems) -> Option<Element> {
    let mut loader = Loader::new(sources);
    match loader.open(name, problems) {
        Ok(root) => root,
        Err(reason) => {
            let name = name.to_owned();
            let place = Position::start_of(&name);
            problems.add(&place, Problem::Unreadable { name, reason });
            None
        }
    }
}
