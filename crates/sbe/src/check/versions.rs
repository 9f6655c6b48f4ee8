//! Everything came in a version that exists, and where older readers expect nothing.

use crate::model::{Block, Position, Schema, Type, TypeKind};
use crate::problem::{Problem, Problems};

pub(super) fn schema(schema: &Schema, problems: &mut Problems) {
    let version = schema.version;
    for kind in &schema.types {
        each_type(version, kind, problems);
    }
    for message in &schema.messages {
        let position = &message.position;
        life(
            version,
            message.since,
            message.deprecated,
            position,
            problems,
        );
        block(version, &message.block, problems);
    }
}

fn each_type(version: u32, kind: &Type, problems: &mut Problems) {
    life(
        version,
        kind.since,
        kind.deprecated,
        &kind.position,
        problems,
    );
    match &kind.kind {
        TypeKind::Simple(_) => {}
        TypeKind::Enum(enumeration) => {
            for value in &enumeration.values {
                let position = &value.position;
                life(version, value.since, value.deprecated, position, problems);
            }
        }
        TypeKind::Set(set) => {
            for choice in &set.choices {
                let position = &choice.position;
                life(version, choice.since, choice.deprecated, position, problems);
            }
        }
        TypeKind::Composite(composite) => {
            let mut order = Order::default();
            for member in &composite.members {
                let position = &member.position;
                life(version, member.since, member.deprecated, position, problems);
                order.next(&member.name, member.since, position, problems);
                if member.since > kind.since && member.kind.encoded_length() > 0 {
                    let problem = Problem::CompositeExtended {
                        name: member.name.clone(),
                        since: member.since,
                        composite: kind.name.clone(),
                        composite_since: kind.since,
                    };
                    problems.add(position, problem);
                }
                if !member.is_ref {
                    each_type(version, &member.kind, problems);
                }
            }
        }
    }
}

fn block(version: u32, block: &Block, problems: &mut Problems) {
    let mut order = Order::default();
    for field in &block.fields {
        let position = &field.position;
        life(version, field.since, field.deprecated, position, problems);
        // What is not sent is in nobody's way.
        if field.encoded_length() > 0 {
            order.next(&field.name, field.since, position, problems);
        }
    }
    let mut order = Order::default();
    for group in &block.groups {
        let position = &group.position;
        life(version, group.since, group.deprecated, position, problems);
        order.next(&group.name, group.since, position, problems);
        self::block(version, &group.block, problems);
    }
    // Data comes behind all groups, so a group that came after it stands in its way just so.
    for data in &block.data {
        let position = &data.position;
        life(version, data.since, data.deprecated, position, problems);
        order.next(&data.name, data.since, position, problems);
    }
}

/// Came, and perhaps went, in versions that there are.
fn life(
    version: u32,
    since: u32,
    deprecated: Option<u32>,
    position: &Position,
    problems: &mut Problems,
) {
    if since > version {
        problems.add(position, Problem::SinceBeyond { since, version });
    }
    let Some(deprecated) = deprecated else {
        return;
    };
    if deprecated > version {
        let problem = Problem::DeprecatedBeyond {
            deprecated,
            version,
        };
        problems.add(position, problem);
    } else if deprecated < since {
        problems.add(position, Problem::DeprecatedBefore { deprecated, since });
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
