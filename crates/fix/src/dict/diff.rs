// SPDX-License-Identifier: Apache-2.0
//! Differences of two dictionaries and their impact on programs that use the other one.

use std::fmt;

use super::{Block, Dictionary, FieldDef};

/// Effect of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Impact {
    /// Only names change: messages are the same.
    Name,
    /// Messages of the old version are valid in the new one; those of the new one may hold what the old does not know.
    Extension,
    /// Messages that were valid are not any more.
    Breaking,
}

impl fmt::Display for Impact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Name => "name",
            Self::Extension => "extension",
            Self::Breaking => "breaking",
        })
    }
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Effect.
    pub impact: Impact,
    /// Place: a field, or a path from a message.
    pub place: String,
    /// Description.
    pub text: String,
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{:<9}  {}: {}",
            self.impact.to_string(),
            self.place,
            self.text
        )
    }
}

/// Returns all differences, in the order of fields and messages.
#[must_use]
pub fn diff(old: &Dictionary, new: &Dictionary) -> Vec<Change> {
    let mut changes = Changes(Vec::new());
    if old.version() != new.version() {
        let text = format!("{} becomes {}", old.version(), new.version());
        changes.add(Impact::Breaking, "version", text);
    }
    for field in old.fields() {
        let place = format!("field {} ({})", field.name(), field.tag());
        match new.field(field.tag()) {
            None => changes.add(Impact::Breaking, &place, "removed"),
            Some(other) => changes.fields(&place, field, other),
        }
    }
    for field in new
        .fields()
        .iter()
        .filter(|field| old.field(field.tag()).is_none())
    {
        let place = format!("field {} ({})", field.name(), field.tag());
        changes.add(Impact::Extension, &place, "added");
    }
    changes.blocks("header", (old, old.header()), (new, new.header()));
    changes.blocks("trailer", (old, old.trailer()), (new, new.trailer()));
    for message in old.messages() {
        let place = format!("{} ({})", message.name(), message.msg_type());
        let Some(other) = new.message(message.msg_type().as_bytes()) else {
            changes.add(Impact::Breaking, &place, "removed");
            continue;
        };
        if message.name() != other.name() {
            changes.add(Impact::Name, &place, format!("renamed to {}", other.name()));
        }
        if message.is_admin() != other.is_admin() {
            changes.add(
                Impact::Breaking,
                &place,
                "changes between session and application",
            );
        }
        changes.blocks(message.name(), (old, message.body()), (new, other.body()));
    }
    for message in new.messages() {
        if old.message(message.msg_type().as_bytes()).is_none() {
            let place = format!("{} ({})", message.name(), message.msg_type());
            changes.add(Impact::Extension, &place, "added");
        }
    }
    changes.0
}

/// Returns the worst effect.
#[must_use]
pub fn worst(changes: &[Change]) -> Option<Impact> {
    changes.iter().map(|change| change.impact).max()
}

struct Changes(Vec<Change>);

impl Changes {
    fn add(&mut self, impact: Impact, place: &str, text: impl Into<String>) {
        self.0.push(Change {
            impact,
            place: place.to_owned(),
            text: text.into(),
        });
    }

    fn fields(&mut self, place: &str, old: &FieldDef, new: &FieldDef) {
        if old.name() != new.name() {
            self.add(Impact::Name, place, format!("renamed to {}", new.name()));
        }
        if old.kind() != new.kind() {
            let text = format!("type {} becomes {}", old.kind().name(), new.kind().name());
            self.add(Impact::Breaking, place, text);
        }
        let restricts = |field: &FieldDef| !field.values().is_empty() && !field.is_open();
        if restricts(new) && !restricts(old) {
            self.add(Impact::Breaking, place, "values are restricted to a set");
        } else if restricts(old) && !restricts(new) {
            self.add(Impact::Extension, place, "any value is allowed");
        }
        for value in old.values() {
            match new.value_name(value.value().as_bytes()) {
                None if restricts(new) => {
                    let text = format!("value {} ({}) removed", value.value(), value.name());
                    self.add(Impact::Breaking, place, text);
                }
                Some(name) if name != value.name() => {
                    let text = format!(
                        "value {} ({}) renamed to {name}",
                        value.value(),
                        value.name()
                    );
                    self.add(Impact::Name, place, text);
                }
                _ => {}
            }
        }
        for value in new.values() {
            if restricts(old) && old.value_name(value.value().as_bytes()).is_none() {
                let text = format!("value {} ({}) added", value.value(), value.name());
                self.add(Impact::Extension, place, text);
            }
        }
    }

    fn blocks(&mut self, path: &str, old: (&Dictionary, &Block), new: (&Dictionary, &Block)) {
        let place = |dictionary: &Dictionary, tag: u32| {
            let name = dictionary.field(tag).map_or("", FieldDef::name);
            format!("{path}.{name} ({tag})")
        };
        for member in old.1.members() {
            let place = place(old.0, member.tag());
            let Some(other) = new.1.get(member.tag()) else {
                self.add(Impact::Breaking, &place, "removed");
                continue;
            };
            match (member.is_required(), other.is_required()) {
                (false, true) => self.add(Impact::Breaking, &place, "becomes required"),
                (true, false) => self.add(
                    Impact::Breaking,
                    &place,
                    "becomes optional: old readers require it",
                ),
                _ => {}
            }
            match (member.group(), other.group()) {
                (Some(one), Some(two)) => {
                    if one.first() != two.first() {
                        let text = "entries begin with another field";
                        self.add(Impact::Breaking, &place, text);
                    }
                    self.blocks(&place, (old.0, one), (new.0, two));
                }
                (None, None) => {}
                _ => self.add(Impact::Breaking, &place, "changes between field and group"),
            }
        }
        for member in new.1.members() {
            if old.1.get(member.tag()).is_none() {
                let place = place(new.0, member.tag());
                if member.is_required() {
                    self.add(Impact::Breaking, &place, "added, required");
                } else {
                    self.add(Impact::Extension, &place, "added");
                }
            }
        }
    }
}
