//! Everything came, and perhaps went, in versions that there are.
//!
//! Looked for in the elements, as what is broken elsewhere is in no model.

use super::attributes::Attributes;
use crate::problem::{Problem, Problems};
use crate::xml::Element;

/// What versions can be said of, and what such things stand in.
const KNOWN: &[&str] = &[
    "types",
    "type",
    "composite",
    "enum",
    "set",
    "ref",
    "validValue",
    "choice",
    "message",
    "field",
    "group",
    "data",
];

/// Looks at everything in an element of a schema of that version.
pub(super) fn check(within: &Element, version: u32, problems: &mut Problems) {
    for element in &within.children {
        if KNOWN.contains(&element.name.as_str()) {
            one(element, version, problems);
            check(element, version, problems);
        }
    }
}

fn one(element: &Element, version: u32, problems: &mut Problems) {
    let attributes = Attributes { element };
    // What is no number is told by whoever reads it.
    let number = |name| attributes.value(name).and_then(|text| text.parse().ok());
    let since = number("sinceVersion").unwrap_or(0);
    let position = &element.position;
    if since > version {
        problems.add(position, Problem::SinceBeyond { since, version });
    }
    // The official tool takes 0 for never.
    let Some(deprecated) = number("deprecated").filter(|version| *version > 0) else {
        return;
    };
    if deprecated > version {
        let problem = Problem::DeprecatedBeyond {
            deprecated,
            version,
        };
        problems.add(position, problem);
    } else if deprecated < since {
        problems.add(position, Problem::DeprecatedBefore { deprecated, since });
    }
}
