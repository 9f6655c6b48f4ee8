// SPDX-License-Identifier: Apache-2.0
//! Reader of Orchestra 1.0 and 1.1 repositories (`docs/spec/fix-gateway.md` §4.1).
//!
//! Presence is read; the conditions of rules are not: a member whose presence depends on a rule is optional.

use std::collections::HashMap;

use roxmltree::Node;

use super::build::{Definitions, Raw, RawMember, RawMessage, add_field, pair_data};
use super::quickfix::is_msg_type;
use super::xml::{Problems, children, list, parse};
use super::{Dictionary, FieldDef, Kind, Problem, Protocol, Rejected, ValueDef, Version};

/// Scenario that each message has unless it names another.
pub const BASE: &str = "base";

/// Reads the messages of one scenario; messages that do not have it are left out. `file` is the name in problems.
///
/// # Errors
///
/// All problems of the text, with positions.
pub fn read(file: &str, text: &str, scenario: &str) -> Result<Dictionary, Rejected> {
    let document = parse(file, text)?;
    let mut problems = Problems::new(file);
    let root = document.root_element();
    if root.tag_name().name() != "repository" {
        let name = root.tag_name().name().to_owned();
        problems.add(root, Problem::Root(name));
        return problems.finish(None);
    }
    let dictionary = definitions(root, scenario, &mut problems)
        .map(|definitions| definitions.finish(root, &mut problems));
    problems.finish(dictionary)
}

fn scenario_of<'text>(node: Node<'text, '_>) -> &'text str {
    node.attribute("scenario").unwrap_or(BASE)
}

fn definitions<'node, 'text>(
    root: Node<'node, 'text>,
    scenario: &str,
    problems: &mut Problems<'_>,
) -> Option<Definitions<'node, 'text>> {
    let version = version(root, problems)?;
    let fields = fields(root, problems);
    let mut components = HashMap::new();
    let (mut header, mut trailer) = (Vec::new(), Vec::new());
    for node in list(root, "components") {
        let (Some(id), Some(name)) = (
            problems.required(node, "id"),
            problems.required(node, "name"),
        ) else {
            continue;
        };
        let members = members(node, problems);
        match name {
            "StandardHeader" => header = members,
            "StandardTrailer" => trailer = members,
            _ => define(
                &mut components,
                node,
                scenario,
                format!("component {id}"),
                members,
                problems,
            ),
        }
        // References to header and trailer add nothing to a body.
        if matches!(name, "StandardHeader" | "StandardTrailer") {
            components.insert(format!("component {id}"), Vec::new());
        }
    }
    for node in list(root, "groups") {
        let Some(id) = problems.required(node, "id") else {
            continue;
        };
        let count = children(node).find(|child| child.tag_name().name() == "numInGroup");
        let Some(count) = count else {
            let name = format!("numInGroup of group {id}");
            let kind = "element";
            problems.add(node, Problem::Undefined { kind, name });
            continue;
        };
        if let Some(field) = problems.required(count, "id") {
            let entries = members(node, problems);
            let group = RawMember {
                node,
                required: true,
                what: Raw::Group(field.to_owned(), entries),
            };
            define(
                &mut components,
                node,
                scenario,
                format!("group {id}"),
                vec![group],
                problems,
            );
        }
    }
    let mut messages = Vec::new();
    for node in list(root, "messages").filter(|node| scenario_of(*node) == scenario) {
        let name = problems.required(node, "name");
        let msg_type = problems.required(node, "msgType");
        let (Some(name), Some(msg_type)) = (name, msg_type) else {
            continue;
        };
        if !is_msg_type(msg_type) {
            let value = msg_type.to_owned();
            let expected = "one to four printable characters";
            let attribute = "msgType";
            problems.add(
                node,
                Problem::Value {
                    attribute,
                    value,
                    expected,
                },
            );
        }
        let structure = children(node).find(|child| child.tag_name().name() == "structure");
        messages.push(RawMessage {
            node,
            name: name.to_owned(),
            msg_type: msg_type.to_owned(),
            is_admin: node.attribute("category") == Some("Session"),
            body: structure.map_or_else(Vec::new, |structure| members(structure, problems)),
        });
    }
    Some(Definitions {
        version,
        fields,
        components,
        header,
        trailer,
        messages,
    })
}

/// Adds a component or group of this scenario; the base scenario is used where the chosen one has none.
fn define<'node, 'text>(
    components: &mut HashMap<String, Vec<RawMember<'node, 'text>>>,
    node: Node<'node, 'text>,
    scenario: &str,
    key: String,
    members: Vec<RawMember<'node, 'text>>,
    problems: &mut Problems<'_>,
) {
    let own = scenario_of(node);
    if own != scenario && own != BASE {
        return;
    }
    if own == BASE && scenario != BASE {
        components.entry(key).or_insert(members);
    } else if components.insert(key.clone(), members).is_some() && scenario == BASE {
        let kind = "definition";
        problems.add(node, Problem::Twice { kind, name: key });
    }
}

/// Reads the version: `FIX.4.4`, `FIX.5.0SP2`, `FIXT.1.1`, `FIX.Latest` with anything behind.
fn version(root: Node<'_, '_>, problems: &mut Problems<'_>) -> Option<Version> {
    let text = problems.required(root, "version")?;
    let parsed = parse_version(text);
    if parsed.is_none() {
        let value = text.to_owned();
        let expected = "a version such as FIX.4.4, FIX.5.0SP2 or FIXT.1.1";
        let attribute = "version";
        problems.add(
            root,
            Problem::Value {
                attribute,
                value,
                expected,
            },
        );
    }
    parsed
}

fn parse_version(text: &str) -> Option<Version> {
    let (protocol, rest) = text.split_once('.')?;
    let protocol = match protocol {
        "FIX" => Protocol::Fix,
        "FIXT" => Protocol::Fixt,
        _ => return None,
    };
    if rest.starts_with("Latest") {
        return Some(Version {
            protocol,
            major: 5,
            minor: 0,
            service_pack: 2,
        });
    }
    let digit = |byte: u8| byte.is_ascii_digit().then(|| byte - b'0');
    let (number, rest) = rest.split_at_checked(3)?;
    let [major, b'.', minor] = number.as_bytes() else {
        return None;
    };
    let service_pack = match rest.strip_prefix("SP").map(str::as_bytes) {
        Some([pack, ..]) => digit(*pack)?,
        _ => 0,
    };
    Some(Version {
        protocol,
        major: digit(*major)?,
        minor: digit(*minor)?,
        service_pack,
    })
}

fn fields(root: Node<'_, '_>, problems: &mut Problems<'_>) -> HashMap<String, FieldDef> {
    let mut sets: HashMap<&str, (&str, Vec<ValueDef>)> = HashMap::new();
    for node in list(root, "codeSets") {
        let (Some(name), Some(kind)) = (
            problems.required(node, "name"),
            problems.required(node, "type"),
        ) else {
            continue;
        };
        let mut values = Vec::new();
        for code in children(node).filter(|child| child.tag_name().name() == "code") {
            let value = problems.required(code, "value");
            let name = problems.required(code, "name");
            if let (Some(value), Some(name)) = (value, name) {
                values.push(ValueDef {
                    value: value.to_owned(),
                    name: name.to_owned(),
                });
            }
        }
        sets.entry(name).or_insert((kind, values));
    }
    // Types of the file, by the type that they derive from.
    let bases: HashMap<&str, &str> = list(root, "datatypes")
        .filter_map(|node| Some((node.attribute("name")?, node.attribute("baseType")?)))
        .collect();
    let (mut fields, mut tags, mut nodes) = (HashMap::new(), HashMap::new(), HashMap::new());
    for node in list(root, "fields") {
        let tag = problems.tag(node, "id");
        let name = problems.required(node, "name");
        let type_name = problems.required(node, "type");
        let (Some(tag), Some(name), Some(type_name)) = (tag, name, type_name) else {
            continue;
        };
        if tags.contains_key(&tag) && scenario_of(node) != BASE {
            continue;
        }
        let (kind_name, values) = match sets.get(type_name) {
            Some((kind, values)) => (*kind, values.clone()),
            None => (type_name, Vec::new()),
        };
        let kind = Kind::named(kind_name)
            .or_else(|| bases.get(kind_name).and_then(|base| Kind::named(base)));
        let Some(kind) = kind else {
            let name = kind_name.to_owned();
            let kind = "type";
            problems.add(node, Problem::Undefined { kind, name });
            continue;
        };
        nodes.insert(tag, node);
        let length = node.attribute("lengthId").and_then(|id| id.parse().ok());
        let field = FieldDef {
            tag,
            name: name.to_owned(),
            kind,
            values,
            is_open: false,
            partner: length.filter(|_| kind == Kind::Data),
        };
        add_field(
            &mut fields,
            &mut tags,
            node,
            &tag.to_string(),
            field,
            problems,
        );
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
        let kind = node.tag_name().name();
        if !matches!(kind, "fieldRef" | "componentRef" | "groupRef") {
            continue;
        }
        let presence = node.attribute("presence").unwrap_or("optional");
        if matches!(presence, "forbidden" | "ignored") {
            continue;
        }
        let Some(id) = problems.required(node, "id") else {
            continue;
        };
        let what = match kind {
            "fieldRef" => Raw::Field(id.to_owned()),
            "componentRef" => Raw::Component(format!("component {id}")),
            _ => Raw::Component(format!("group {id}")),
        };
        all.push(RawMember {
            node,
            required: matches!(presence, "required" | "constant"),
            what,
        });
    }
    all
}
