// SPDX-License-Identifier: Apache-2.0
//! Text description of messages and fields.

use std::fmt::Write;

use super::{Block, Dictionary, FieldDef, MessageDef};

/// Returns one line per message: type, name, layer.
#[must_use]
pub fn messages(dictionary: &Dictionary) -> String {
    let mut text = format!(
        "{}: {} messages, {} fields\n",
        dictionary.version(),
        dictionary.messages().len(),
        dictionary.fields().len()
    );
    for message in dictionary.messages() {
        let layer = if message.is_admin() { "  session" } else { "" };
        let _ = writeln!(text, "{:<4} {}{layer}", message.msg_type(), message.name());
    }
    text
}

/// Returns the members of a message with tags, data types and values.
#[must_use]
pub fn message(dictionary: &Dictionary, message: &MessageDef) -> String {
    let mut text = format!("{} ({})\n", message.name(), message.msg_type());
    members(dictionary, message.body(), 1, &mut text);
    text
}

fn members(dictionary: &Dictionary, block: &Block, depth: usize, text: &mut String) {
    for member in block.members() {
        let Some(field) = dictionary.field(member.tag()) else {
            continue;
        };
        let indent = "  ".repeat(depth);
        let required = if member.is_required() {
            "required"
        } else {
            "optional"
        };
        let name = format!("{indent}{}", field.name());
        let _ = write!(
            text,
            "{name:<36} {:>6} {:<20} {required}",
            field.tag(),
            field.kind().name()
        );
        if !field.values().is_empty() {
            let values: Vec<&str> = field.values().iter().map(super::ValueDef::value).collect();
            let _ = write!(text, " {}", values.join(","));
        }
        text.push('\n');
        if let Some(group) = member.group() {
            members(dictionary, group, depth + 1, text);
        }
    }
}

/// Returns a field with its values and the messages that have it.
#[must_use]
pub fn field(dictionary: &Dictionary, field: &FieldDef) -> String {
    let mut text = format!(
        "{} ({}), {}\n",
        field.name(),
        field.tag(),
        field.kind().name()
    );
    for value in field.values() {
        let _ = writeln!(text, "  {:<8} {}", value.value(), value.name());
    }
    if let Some(partner) = field
        .partner()
        .and_then(|partner| dictionary.field(partner))
    {
        let _ = writeln!(text, "  goes with {} ({})", partner.name(), partner.tag());
    }
    let uses: Vec<&str> = dictionary
        .messages()
        .iter()
        .filter(|message| has(message.body(), field.tag()))
        .map(MessageDef::name)
        .collect();
    if !uses.is_empty() {
        let _ = writeln!(text, "  used by {}", uses.join(", "));
    }
    text
}

fn has(block: &Block, tag: u32) -> bool {
    block
        .members()
        .iter()
        .any(|member| member.tag() == tag || member.group().is_some_and(|group| has(group, tag)))
}
