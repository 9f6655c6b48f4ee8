// SPDX-License-Identifier: Apache-2.0
//! Checks that elements of later versions follow those of earlier versions, so that older readers can skip them.

use crate::model::{Block, Position, Schema, Type, TypeKind};
use crate::problem::{Problem, Problems};

pub(super) fn schema(schema: &Schema, problems: &mut Problems) {
    for kind in &schema.types {
        each_type(kind, 0, problems);
    }
    for message in &schema.messages {
        // A `sinceVersion` beyond the schema version is reported elsewhere; it is ignored here so that nested elements
        // are still checked.
        let came = Some(message.since).filter(|since| *since <= schema.version);
        block(&message.block, came.unwrap_or(0), problems);
    }
}

/// Checks a type that is defined inside an element introduced in version `around`.
fn each_type(kind: &Type, around: u32, problems: &mut Problems) {
    let TypeKind::Composite(composite) = &kind.kind else {
        return;
    };
    let came = kind.since.max(around);
    let mut order = Order::since(came);
    for member in &composite.members {
        let position = &member.position;
        // Constant members occupy no bytes.
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

/// Checks a block of an element introduced in version `came`.
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
    // Data follows all groups, so a later group before it is out of order too.
    for data in &block.data {
        order.next(&data.name, data.since, &data.position, problems);
    }
}

/// Highest `sinceVersion` seen in a sequence of elements.
struct Order {
    /// Version of the enclosing element, a lower bound for the versions of the elements in it.
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
