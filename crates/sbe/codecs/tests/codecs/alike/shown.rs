// SPDX-License-Identifier: Apache-2.0
//! Renders the expected `Display` output from the result of the schema-driven decoder.

use std::fmt::Write;

use taran_sbe::decode::{Message, Value};
use taran_sbe::model::{self, Block, Presence, Primitive, Scalar, Simple, Type, TypeKind};
use taran_sbe::runtime::Text;

pub(super) fn message(message: &model::Message, found: &Message<'_>) -> String {
    block(&message.name, &message.block, &found.fields, message.since)
}

type Found<'a> = [(&'a str, Value<'a>)];

fn find<'a>(found: &'a Found<'a>, name: &str) -> Option<&'a Value<'a>> {
    let mut named = found.iter().filter(|(found, _)| *found == name);
    named.next().map(|(_, value)| value)
}

fn structure(name: &str, fields: &[(&str, String)]) -> String {
    let mut text = name.to_owned();
    for (index, (name, value)) in fields.iter().enumerate() {
        let before = if index == 0 { " { " } else { ", " };
        write!(text, "{before}{name}: {value}").unwrap();
    }
    if !fields.is_empty() {
        text += " }";
    }
    text
}

/// Renders a block, in which all elements introduced after `since` can be absent.
fn block(name: &str, block: &Block, found: &Found<'_>, since: u32) -> String {
    let mut fields = Vec::new();
    for field in &block.fields {
        let name = field.name.as_str();
        let is_constant = field.presence == Presence::Constant;
        let nullable = field.presence == Presence::Optional && can_be_null(&field.kind);
        let text = match find(found, name) {
            None => "None".to_owned(),
            Some(found) => {
                let text = value(&field.kind, nullable, found);
                if field.since > since && !nullable && !is_constant {
                    format!("Some({text})")
                } else {
                    text
                }
            }
        };
        fields.push((name, text));
    }
    for group in &block.groups {
        let since = since.max(group.since);
        let entries: Vec<String> = match find(found, &group.name) {
            Some(Value::List(entries)) => entries
                .iter()
                .map(|entry| match entry {
                    Value::Object(found) => self::block(&group.name, &group.block, found, since),
                    other => panic!("{other:?}"),
                })
                .collect(),
            None => Vec::new(),
            Some(other) => panic!("{other:?}"),
        };
        fields.push((&group.name, format!("[{}]", entries.join(", "))));
    }
    for data in &block.data {
        let text = find(found, &data.name).map(|found| match found {
            Value::Bytes(bytes) => format!("{bytes:?}"),
            found => {
                let encoding = data.encoding.character_encoding.as_deref();
                format!("{:?}", Text::new(&bytes(found, encoding)))
            }
        });
        let text = if data.since > since {
            text.map_or("None".to_owned(), |text| format!("Some({text})"))
        } else {
            text.unwrap()
        };
        fields.push((&data.name, text));
    }
    structure(name, &fields)
}

fn can_be_null(kind: &Type) -> bool {
    matches!(kind.kind, TypeKind::Simple(_) | TypeKind::Enum(_))
}

/// Returns the bytes of a text in UTF-8, a subset of it, or ISO-8859-1.
fn bytes(found: &Value<'_>, encoding: Option<&str>) -> Vec<u8> {
    match found {
        Value::Text(text) if encoding == Some("ISO-8859-1") => {
            text.chars().map(|character| character as u8).collect()
        }
        Value::Text(text) => text.as_bytes().to_vec(),
        Value::NotText { bytes, .. } => bytes.to_vec(),
        other => panic!("{other:?}"),
    }
}

fn value(kind: &Type, nullable: bool, found: &Value<'_>) -> String {
    let text = match (&kind.kind, found) {
        (TypeKind::Simple(simple), Value::Numbers(_)) => {
            let Some(numbers) = numbers(simple, found) else {
                return "None".to_owned();
            };
            numbers
        }
        (_, Value::Null) if nullable => return "None".to_owned(),
        (TypeKind::Enum(kind), Value::Null) => {
            format!("Unknown({})", kind.null.as_integer().unwrap())
        }
        (TypeKind::Enum(_), Value::Integer(raw)) => format!("Unknown({raw})"),
        (_, Value::Named(name)) => (*name).to_owned(),
        (_, Value::Integer(number)) => number.to_string(),
        (_, Value::Float(number)) => format!("{number:?}"),
        (_, Value::Double(number)) => format!("{number:?}"),
        (TypeKind::Simple(simple), Value::Text(_) | Value::NotText { .. }) => {
            let bytes = bytes(found, simple.character_encoding.as_deref());
            let is_character = simple.primitive == Primitive::Char && !simple.is_array;
            if is_character && simple.presence != Presence::Constant {
                bytes[0].to_string()
            } else {
                format!("{:?}", Text::new(&bytes))
            }
        }
        (_, Value::Flags { named, unknown }) => {
            let rest = unknown.iter().fold(0_u64, |bits, bit| bits | 1 << bit);
            let mut flags: Vec<String> = named.iter().map(|&name| name.to_owned()).collect();
            flags.extend((rest != 0).then(|| format!("{rest:#x}")));
            format!("{{{}}}", flags.join(", "))
        }
        (TypeKind::Composite(composite), Value::Object(found)) => {
            let members = composite.members.iter().map(|member| {
                let nullable =
                    member.kind.presence() == Presence::Optional && can_be_null(&member.kind);
                let found = find(found, &member.name).unwrap();
                (member.name.as_str(), value(&member.kind, nullable, found))
            });
            structure(&kind.name, &members.collect::<Vec<_>>())
        }
        (_, other) => panic!("{}: {other:?}", kind.name),
    };
    if nullable {
        format!("Some({text})")
    } else {
        text
    }
}

/// Renders the numbers of an array; returns `None` if all are null.
fn numbers(simple: &Simple, found: &Value<'_>) -> Option<String> {
    let Value::Numbers(numbers) = found else {
        return None;
    };
    let all: Vec<Value<'_>> = numbers.iter().collect();
    if all.iter().all(|number| *number == Value::Null) {
        return None;
    }
    let each = all.iter().map(|number| match number {
        Value::Null => match simple.null {
            Scalar::Integer(null) => null.to_string(),
            Scalar::Real(null) => format!("{null:?}"),
        },
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Double(number) => format!("{number:?}"),
        other => panic!("{other:?}"),
    });
    Some(format!("[{}]", each.collect::<Vec<_>>().join(", ")))
}
