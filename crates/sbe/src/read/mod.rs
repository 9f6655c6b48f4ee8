//! A tree of elements to a model.
//!
//! Each part that cannot be made sense of becomes a problem and is left out, so that one look finds what is wrong
//! everywhere. A model that comes with errors is good for finding more of them, and for nothing else.

mod attributes;
mod block;
mod composite;
mod enumeration;
mod frame;
mod message;
mod simple;
mod taken;
mod types;

use crate::model::{ByteOrder, Index, Schema};
use crate::problem::{Problem, Problems};
use crate::xml::Element;
use attributes::Attributes;
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

/// Reads a whole schema; `None` where it is so broken that nothing further can be said of it.
pub(crate) fn schema(root: &Element, problems: &mut Problems) -> Option<Schema> {
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
    let version = attributes.number("version", problems).unwrap_or(0);
    let byte_order = byte_order(&attributes, problems);
    let header_type = attributes
        .text("headerType")
        .unwrap_or_else(|| "messageHeader".to_owned());
    let semantic_version = attributes.text("semanticVersion");
    let description = attributes.text("description");

    let mut types = Types::collect(root, problems);
    let all_types = types.resolve_all(problems);
    let header = frame::header(root, &header_type, &mut types, problems);
    let mut messages = Vec::new();
    let mut any_messages = false;
    for element in &root.children {
        match element.name.as_str() {
            "types" => {}
            "message" => {
                any_messages = true;
                messages.extend(message::message(element, &mut types, problems));
            }
            _ => attributes::unknown_element(element, root, problems),
        }
    }
    if !any_messages {
        problems.add(&root.position, Problem::NoMessages);
    }
    Some(Schema {
        package,
        id: id.into(),
        version,
        semantic_version,
        description,
        byte_order,
        // Without one there is an error, and this is good for finding more.
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
