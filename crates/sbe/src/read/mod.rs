// SPDX-License-Identifier: Apache-2.0
//! Reads an element tree into a model.
//!
//! Invalid elements are reported and left out, so that one pass reports all problems. A model with errors is used only
//! to find more of them.

mod attributes;
mod block;
mod composite;
mod customs;
mod enumeration;
mod frame;
mod message;
mod names_in_use;
mod simple;
mod types;
mod versions;

use crate::model::{ByteOrder, Index, Schema};
use crate::problem::{Problem, Problems};
use crate::xml::Element;
use attributes::Attributes;
use names_in_use::NamesInUse;
use types::Types;

const KNOWN: &[&str] = &[
    "package",
    "id",
    "version",
    "semanticVersion",
    "description",
    "byteOrder",
    "headerType",
];

/// Name of elements without a name, in a model with errors.
const NAMELESS: &str = "?";

/// Reads a schema; returns `None` if nothing further can be checked.
pub(crate) fn schema(root: &Element, problems: &mut Problems) -> Option<Schema> {
    // So far only problems with files can have been found. If a file could not be read, its elements are unknown.
    let is_whole = !problems.any_errors();
    if root.name != "messageSchema" {
        let problem = Problem::WrongRoot {
            expected: "messageSchema",
            found: root.name.clone(),
        };
        problems.add(&root.position, problem);
        return None;
    }
    let attributes = Attributes::only(root, &[KNOWN], problems);
    let package = attributes.text("package").unwrap_or_default();
    let id = attributes.required_number("id", problems).unwrap_or(0);
    let version = match attributes.value("version") {
        None => Some(0),
        Some(_) => attributes.number("version", problems),
    };
    let byte_order = byte_order(&attributes, problems);
    let header_type = attributes
        .text("headerType")
        .unwrap_or_else(|| "messageHeader".to_owned());
    let semantic_version = attributes.text("semanticVersion");
    let description = attributes.text("description");

    customs::check(root, problems);
    // Skipped if the schema version is invalid.
    if let Some(version) = version {
        versions::check(root, version, problems);
    }
    let mut types = Types::collect(root, is_whole, problems);
    let all_types = types.resolve_all(problems);
    let header = frame::header(root, &header_type, &mut types, problems)
        .map(|header| frame::with_schema_id(header, id.into(), &root.position, problems));
    let mut messages = Vec::new();
    let (mut names, mut ids) = (NamesInUse::default(), NamesInUse::default());
    let mut any_messages = false;
    for element in &root.children {
        match element.name.as_str() {
            "types" => {}
            "message" => {
                any_messages = true;
                messages.extend(message::message(element, &mut types, problems));
                // Also done for invalid elements, so that one pass reports every problem.
                let attributes = Attributes { element };
                if let Some(name) = attributes.value("name") {
                    names.add("message", name, &element.position, problems);
                }
                if let Some(Ok(id)) = attributes.value("id").map(str::parse::<u32>) {
                    ids.add("message id", &id.to_string(), &element.position, problems);
                }
            }
            _ => attributes::unknown_element(element, root, problems),
        }
    }
    if !any_messages && is_whole {
        problems.add(&root.position, Problem::NoMessages);
    }
    Some(Schema {
        package,
        id: id.into(),
        version: version.unwrap_or(0),
        semantic_version,
        description,
        byte_order,
        // Placeholder; the missing header was reported as an error, and reading continues to find more problems.
        header: header.unwrap_or_else(|| frame::placeholder(&types)),
        types: all_types,
        by_id: Index::of(&messages, |message| message.id),
        messages,
        position: root.position.clone(),
    })
}

fn byte_order(attributes: &Attributes<'_>, problems: &mut Problems) -> ByteOrder {
    match attributes.text("byteOrder").as_deref() {
        None | Some("littleEndian") => ByteOrder::Little,
        Some("bigEndian") => ByteOrder::Big,
        Some(_) => {
            attributes.bad("byteOrder", "littleEndian or bigEndian", problems);
            ByteOrder::Little
        }
    }
}
