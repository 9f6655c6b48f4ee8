// SPDX-License-Identifier: Apache-2.0
//! Text output of messages: one line per value, indented by nesting depth.

use std::fmt::Write;

use taran_sbe::decode::{Message, Value};

use crate::printable;

pub(super) fn message(message: &Message<'_>) -> String {
    let mut text = format!(
        "{}: {} (template {}), version {}, {} bytes\n",
        message.offset, message.name, message.template_id, message.version, message.length
    );
    fields(&message.fields, 1, &mut text);
    text
}

fn fields(fields: &[(&str, Value<'_>)], depth: usize, text: &mut String) {
    for (name, value) in fields {
        line(name, value, depth, text);
    }
}

fn line(name: &str, value: &Value<'_>, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    let name = printable::one_line(name);
    match value {
        Value::Object(members) => {
            let _ = writeln!(text, "{indent}{name}:");
            fields(members, depth + 1, text);
        }
        Value::List(entries) => {
            let _ = writeln!(text, "{indent}{name}: {} entries", entries.len());
            for (index, entry) in entries.iter().enumerate() {
                line(&format!("[{index}]"), entry, depth + 1, text);
            }
        }
        other => {
            // As in JSON, but names are not quoted.
            let shown = match other {
                Value::Named(name) => (*name).to_owned(),
                other => serde_json::to_string(other).unwrap_or_default(),
            };
            let _ = writeln!(text, "{indent}{name}: {}", printable::one_line(&shown));
        }
    }
}
