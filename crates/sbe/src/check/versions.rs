//! What came later stands where older readers expect nothing.

use crate::model::{Block, Position, Schema, Type, TypeKind};
use crate::problem::{Problem, Problems};

pub(super) fn schema(schema: &Schema, problems: &mut Problems) {
    for kind in &schema.types {
        each_type(kind, problems);
    }
    for message in &schema.messages {
        block(&message.block, problems);
    }
}

fn each_type(kind: &Type, problems: &mut Problems) {
    let TypeKind::Composite(composite) = &kind.kind else {
        return;
    };
    let mut order = Order::default();
    for member in &composite.members {
        let position = &member.position;
        // What is not sent is in nobody's way.
        let is_sent = member.kind.encoded_length() > 0;
        if is_sent {
            order.next(&member.name, member.since, position, problems);
        }
        if member.since > kind.since && is_sent {
            let problem = Problem::CompositeExtended {
                name: member.name.clone(),
                since: member.since,
                composite: kind.name.clone(),
                composite_since: kind.since,
            };
            problems.add(position, problem);
        }
        if !member.is_ref {
            each_type(&member.kind, problems);
        }
    }
}

fn block(block: &Block, problems: &mut Problems) {
    let mut order = Order::default();
    for field in &block.fields {
        if field.encoded_length() > 0 {
            order.next(&field.name, field.since, &field.position, problems);
        }
    }
    let mut order = Order::default();
    for group in &block.groups {
        order.next(&group.name, group.since, &group.position, problems);
        self::block(&group.block, problems);
    }
    // Data comes behind all groups, so a group that came after it stands in its way just so.
    for data in &block.data {
        order.next(&data.name, data.since, &data.position, problems);
    }
}

/// The newest that was passed in a row of things that lie behind each other.
#[derive(Default)]
struct Order {
    newest: Option<(String, u32)>,
}

impl Order {
    fn next(&mut self, name: &str, since: u32, position: &Position, problems: &mut Problems) {
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
