// SPDX-License-Identifier: Apache-2.0
//! Reader of QuickFIX XML (`docs/spec/fix-gateway.md` §4.1).

use std::collections::HashMap;

use roxmltree::Node;

use super::build::{Definitions, Raw, RawMember, RawMessage, add_field, pair_data};
use super::xml::{Problems, children, list, parse};
use super::{Dictionary, FieldDef, Kind, Problem, Protocol, Rejected, ValueDef, Version};

/// Reads a dictionary; `file` is the name in problems.
///
/// # Errors
///
/// All problems of the text, with positions.
pub fn read(file: &str, text: &str) -> Result<Dictionary, Rejected> {
    let document = parse(file, text)?;
    let mut problems = Problems::new(file);
    let root = document.root_element();
    if root.tag_name().name() != "fix" {
        let name = root.tag_name().name().to_owned();
        problems.add(root, Problem::Root(name));
        return problems.finish(None);
    }
    let dictionary =
        definitions(root, &mut problems).map(|definitions| definitions.finish(root, &mut problems));
    problems.finish(dictionary)
}

fn definitions<'node, 'text>(
    root: Node<'node, 'text>,
    problems: &mut Problems<'_>,
) -> Option<Definitions<'node, 'text>> {
    let version = version(root, problems)?;
    let fields = fields(root, problems);
    let mut components = HashMap::new();
    for component in list(root, "components") {
        if let Some(name) = problems.required(component, "name") {
            let members = members(component, problems);
            if components.insert(name.to_owned(), members).is_some() {
                let name = name.to_owned();
                let kind = "component";
                problems.add(component, Problem::Twice { kind, name });
            }
        }
    }
    let mut messages = Vec::new();
    for message in list(root, "messages") {
        let name = problems.required(message, "name");
        let msg_type = problems.required(message, "msgtype");
        let (Some(name), Some(msg_type)) = (name, msg_type) else {
            continue;
        };
        if !is_msg_type(msg_type) {
            let value = msg_type.to_owned();
            let expected = "one to four printable characters";
            let attribute = "msgtype";
            problems.add(
                message,
                Problem::Value {
                    attribute,
                    value,
                    expected,
                },
            );
        }
        messages.push(RawMessage {
            node: message,
            name: name.to_owned(),
            msg_type: msg_type.to_owned(),
            is_admin: message.attribute("msgcat") == Some("admin"),
            body: members(message, problems),
        });
    }
    let mut section = |name| {
        let section = children(root).find(|child| child.tag_name().name() == name);
        section.map_or_else(Vec::new, |section| members(section, problems))
    };
    let header = section("header");
    let trailer = section("trailer");
    Some(Definitions {
        version,
        fields,
        components,
        header,
        trailer,
        messages,
    })
}

/// Returns true if the value can be a MsgType.
pub(super) fn is_msg_type(value: &str) -> bool {
    (1..=4).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_graphic())
}

fn version(root: Node<'_, '_>, problems: &mut Problems<'_>) -> Option<Version> {
    let mut number = |attribute: &'static str, is_required: bool| {
        let value = match root.attribute(attribute) {
            None if !is_required => return Some(0),
            _ => problems.required(root, attribute)?,
        };
        let number = value.parse::<u8>().ok().filter(|number| *number < 10);
        if number.is_none() {
            let value = value.to_owned();
            let expected = "a digit";
            problems.add(
                root,
                Problem::Value {
                    attribute,
                    value,
                    expected,
                },
            );
        }
        number
    };
    let major = number("major", true);
    let minor = number("minor", true);
    let service_pack = number("servicepack", false);
    let protocol = match root.attribute("type") {
        None | Some("FIX") => Protocol::Fix,
        Some("FIXT") => Protocol::Fixt,
        Some(value) => {
            let value = value.to_owned();
            let expected = "FIX or FIXT";
            let attribute = "type";
            problems.add(
                root,
                Problem::Value {
                    attribute,
                    value,
                    expected,
                },
            );
            return None;
        }
    };
    Some(Version {
        protocol,
        major: major?,
        minor: minor?,
        service_pack: service_pack?,
    })
}

fn fields(root: Node<'_, '_>, problems: &mut Problems<'_>) -> HashMap<String, FieldDef> {
    let (mut fields, mut tags, mut nodes) = (HashMap::new(), HashMap::new(), HashMap::new());
    for node in list(root, "fields") {
        let tag = problems.tag(node, "number");
        let name = problems.required(node, "name");
        let kind = problems.required(node, "type");
        let (Some(tag), Some(name), Some(kind_name)) = (tag, name, kind) else {
            continue;
        };
        let Some(kind) = Kind::named(kind_name) else {
            let name = kind_name.to_owned();
            let kind = "type";
            problems.add(node, Problem::Undefined { kind, name });
            continue;
        };
        nodes.insert(tag, node);
        let mut is_open = node.attribute("allowOtherValues") == Some("true");
        let mut values = Vec::new();
        for value in children(node).filter(|child| child.tag_name().name() == "value") {
            is_open |= value.attribute("allowOtherValues") == Some("true");
            if let Some(text) = problems.required(value, "enum") {
                values.push(ValueDef {
                    value: text.to_owned(),
                    name: value.attribute("description").unwrap_or(text).to_owned(),
                });
            }
        }
        let field = FieldDef {
            tag,
            name: name.to_owned(),
            kind,
            values,
            is_open,
            partner: None,
        };
        add_field(&mut fields, &mut tags, node, name, field, problems);
    }
    pair_data(&mut fields, &nodes, problems);
    fields
}

fn members<'node, 'text>(
    parent: Node<'node, 'text>,
    problems: &mut Problems<'_>,
) -> Vec<RawMember<'node, 'text>> {
    let mut all = Vec::new();
    for node in children(parent) {
        let Some(name) = problems.required(node, "name") else {
            continue;
        };
        let what = match node.tag_name().name() {
            "field" => Raw::Field(name.to_owned()),
            "component" => Raw::Component(name.to_owned()),
            "group" => Raw::Group(name.to_owned(), members(node, problems)),
            other => {
                let name = other.to_owned();
                let kind = "element";
                problems.add(node, Problem::Undefined { kind, name });
                continue;
            }
        };
        all.push(RawMember {
            node,
            required: node.attribute("required") == Some("Y"),
            what,
        });
    }
    all
}
