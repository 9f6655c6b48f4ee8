// SPDX-License-Identifier: Apache-2.0
//! Requirements of the standard that a schema can violate without becoming ambiguous.

use super::attributes::Attributes;
use crate::problem::{Problem, Problems};
use crate::xml::Element;

/// Reports the violated requirements.
pub(super) fn check(root: &Element, problems: &mut Problems) {
    let attributes = Attributes { element: root };
    if attributes.value("package").unwrap_or_default().is_empty() {
        problems.add(&root.position, Problem::NoPackage);
    }
    if attributes.value("version").is_none() {
        problems.add(&root.position, Problem::NoVersion);
    }
    let mut any_messages = false;
    for child in &root.children {
        match child.name.as_str() {
            "message" => any_messages = true,
            "types" if any_messages => problems.add(&child.position, Problem::TypesBehindMessages),
            _ => {}
        }
    }
    // If an include failed, elements can be missing.
    let is_whole = !problems.any_errors();
    element(root, is_whole, problems);
}

/// Checks an element and its valid child elements.
fn element(element: &Element, is_whole: bool, problems: &mut Problems) {
    let name = element.name.as_str();
    if is_whole && must_have_parts(name) && element.children.is_empty() {
        problems.add(&element.position, Problem::Empty(name.to_owned()));
    }
    let is_text = ["type", "validValue", "choice"].contains(&name);
    if !is_text && !element.text.trim().is_empty() {
        problems.add(&element.position, Problem::StrayText(name.to_owned()));
    }
    for part in &element.children {
        if parts(name).contains(&part.name.as_str()) {
            self::element(part, is_whole, problems);
        }
    }
}

/// Returns the names of the elements allowed in an element.
fn parts(name: &str) -> &'static [&'static str] {
    match name {
        "messageSchema" => &["types", "message"],
        "types" => &["type", "composite", "enum", "set"],
        "composite" => &["type", "composite", "enum", "set", "ref"],
        "enum" => &["validValue"],
        "set" => &["choice"],
        "message" | "group" => &["field", "group", "data"],
        _ => &[],
    }
}

fn must_have_parts(name: &str) -> bool {
    ["types", "composite", "enum", "set"].contains(&name)
}
