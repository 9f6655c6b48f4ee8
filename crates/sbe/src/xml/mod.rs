//! The text of a schema as a tree of elements that know their places, with includes put in.
//!
//! The parser is `roxmltree`; this module turns what it finds into a tree that outlives the texts, and that several
//! files can be part of. How deep and how large that may become is bounded.

mod bounds;
mod include;
mod place;
mod sources;
mod text;

pub use sources::{Disk, InMemory, NoFiles, Sources};

use crate::model::Position;
use crate::problem::{Problem, Problems};
use include::Loader;

/// How deep elements may be nested: more than any schema needs, and less than any stack has.
const MAX_NESTING: usize = 256;
/// The most elements, attributes and texts in one file.
const MAX_NODES: u32 = 1_000_000;

/// An element.
#[derive(Debug, Clone)]
pub struct Element {
    /// Its name, without a prefix.
    pub name: String,
    /// Where it starts.
    pub position: Position,
    /// Its attributes; none that belong to other namespaces.
    pub attributes: Vec<Attribute>,
    /// The elements in it, in their order.
    pub children: Vec<Element>,
    /// The text that is directly in it.
    pub text: String,
}

/// An attribute.
#[derive(Debug, Clone)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// What is between the quotes.
    pub value: String,
    /// Where it starts.
    pub position: Position,
}

impl Element {
    /// The attribute of that name.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes
            .iter()
            .find(|attribute| attribute.name == name)
    }
}

/// Reads the file of that name, and those that it includes.
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
