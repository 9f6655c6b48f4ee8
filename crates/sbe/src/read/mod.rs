//! A tree of elements to a model.
//!
//! Each part that cannot be made sense of becomes a problem and is left out, so that one look finds what is wrong
//! everywhere. A model that comes with errors is good for finding more of them, and for nothing else.

mod attributes;
mod block;
mod composite;
mod customs;
mod enumeration;
mod frame;
mod life;
mod message;
mod simple;
mod taken;
mod types;

use crate::model::{ByteOrder, Index, Schema};
use crate::problem::{Problem, Problems};
use crate::xml::Element;
use attributes::Attributes;
use taken::Taken;
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

/// The name of what has none, in a model that comes with errors.
const NAMELESS: &str = "?";

/// Reads a whole schema; `None` where it is so broken that nothing further can be said of it.
pub(crate) fn schema(root: &Element, problems: &mut Problems) -> Option<Schema> {
    // So far only files were looked at. What is in one that cannot be read, nobody can say.
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
    // Of a version that nobody can read, nobody can say what is beyond it.
    if let Some(version) = version {
        life::check(root, version, problems);
    }
    let mut types = Types::collect(root, is_whole, problems);
    let all_types = types.resolve_all(problems);
    let header = frame::header(root, &header_type, &mut types, problems);
    let mut messages = Vec::new();
    let (mut names, mut ids) = (Taken::default(), Taken::default());
    let mut any_messages = false;
    for element in &root.children {
        match element.name.as_str() {
            "types" => {}
            "message" => {
                any_messages = true;
                messages.extend(message::message(element, &mut types, problems));
                // Of what is broken too, so that all is told at once.
                let attributes = Attributes { element };
                if let Some(name) = attributes.value("name") {
                    names.take("message", name, &element.position, problems);
                }
                if let Some(Ok(id)) = attributes.value("id").map(str::parse::<u32>) {
                    ids.take("message id", &id.to_string(), &element.position, problems);
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
