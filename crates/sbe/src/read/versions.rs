// SPDX-License-Identifier: Apache-2.0
//! Checks that `sinceVersion` and `deprecated` are within the schema version and in order.
//!
//! Works on elements, because invalid elements are not in the model.

use super::attributes::Attributes;
use crate::problem::{Problem, Problems};
use crate::xml::Element;

/// Elements that have versions, and their containers.
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

/// Checks all elements in an element.
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
    // Invalid numbers are reported where the attribute is read.
    let number = |name| attributes.value(name).and_then(|text| text.parse().ok());
    let since = number("sinceVersion").unwrap_or(0);
    let position = &element.position;
    if since > version {
        problems.add(position, Problem::SinceBeyond { since, version });
    }
    // As in the official tool, 0 means never deprecated.
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
