//! What came later stands where older readers expect nothing.

use crate::model::{Block, Position, Schema, Type, TypeKind};
use crate::problem::{Problem, Problems};

pub(super) fn schema(schema: &Schema, problems: &mut Problems) {
    for kind in &schema.types {
        each_type(kind, 0, problems);
    }
    for message in &schema.messages {
        // One that there is not yet is told of, and hides nothing of what is in it.
        let came = Some(message.since).filter(|since| *since <= schema.version);
        block(&message.block, came.unwrap_or(0), problems);
    }
}

/// A type that is written in what came in that version.
fn each_type(kind: &Type, around: u32, problems: &mut Problems) {
    let TypeKind::Composite(composite) = &kind.kind else {
        return;
    };
    let came = kind.since.max(around);
    let mut order = Order::since(came);
    for member in &composite.members {
        let position = &member.position;
        // What is not sent is in nobody's way.
        let is_sent = member.kind.encoded_length() > 0;
        if is_sent {
            order.next(&member.name, member.since, position, problems);
        }
        if member.since > came && is_sent {
            let problem = Problem::CompositeExtended {
                name: member.name.clone(),
                since: member.since,
                composite: kind.name.clone(),
                composite_since: came,
            };
            problems.add(position, problem);
        }
        if !member.is_ref {
            each_type(&member.kind, came, problems);
        }
    }
}

/// A block of what came in that version.
fn block(block: &Block, came: u32, problems: &mut Problems) {
    let mut order = Order::since(came);
    for field in &block.fields {
        if field.encoded_length() > 0 {
            order.next(&field.name, field.since, &field.position, problems);
        }
    }
    let mut order = Order::since(came);
    for group in &block.groups {
        order.next(&group.name, group.since, &group.position, problems);
        self::block(&group.block, came.max(group.since), problems);
    }
    // Data comes behind all groups, so a group that came after it stands in its way just so.
    for data in &block.data {
        order.next(&data.name, data.since, &data.position, problems);
    }
}

/// The newest that was passed in a row of things that lie behind each other.
struct Order {
    /// The version of what they are in: none of them is older, whatever it says.
    came: u32,
    newest: Option<(String, u32)>,
}

impl Order {
    const fn since(came: u32) -> Self {
        let newest = None;
        Self { came, newest }
    }

    fn next(&mut self, name: &str, since: u32, position: &Position, problems: &mut Problems) {
        let since = since.max(self.came);
        match &self.newest {
            Some((before, before_since)) if since < *before_since => {
                let problem = Problem::VersionOrder {
                    name: name.to_owned(),
                    since,
                    before: before.clone(),
                    before_since: *before_since,
                };
                problems.add(position, problem);
            }
            _ => self.newest = Some((name.to_owned(), since)),
        }
    }
}
