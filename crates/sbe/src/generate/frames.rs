// SPDX-License-Identifier: Apache-2.0
//! Selects the types that code is generated for. Types used only for message headers, group dimensions or data are
//! excluded.

use std::collections::HashSet;

use super::extra_members;
use crate::model::{Block, Schema, Type, TypeKind};

/// Returns the types to generate code for, in schema order.
pub(super) fn shown(schema: &Schema) -> Vec<&Type> {
    let frames = Frames::of(schema);
    let mut used = HashSet::new();
    for message in &schema.messages {
        add_block(&message.block, &mut used);
    }
    for kind in schema.types.iter().filter(|kind| !frames.hide(kind)) {
        add(kind, &mut used);
    }
    let all = schema.types.iter().map(AsRef::as_ref);
    all.filter(|kind: &&Type| used.contains(kind.name.as_str()))
        .collect()
}

/// Adds a type and the types it refers to.
fn add<'a>(kind: &'a Type, used: &mut HashSet<&'a str>) {
    if used.insert(&kind.name) {
        add_inside(kind, used);
    }
}

fn add_inside<'a>(kind: &'a Type, used: &mut HashSet<&'a str>) {
    let TypeKind::Composite(composite) = &kind.kind else {
        return;
    };
    for member in &composite.members {
        if member.is_ref {
            add(&member.kind, used);
        } else {
            add_inside(&member.kind, used);
        }
    }
}

/// Adds the types of the fields of a block.
fn add_block<'a>(block: &'a Block, used: &mut HashSet<&'a str>) {
    for field in &block.fields {
        add(&field.kind, used);
    }
    for group in &block.groups {
        add_block(&group.block, used);
    }
}

/// Names of the composites used for headers, dimensions and data; [`extra_members`] decides which of them need code.
struct Frames<'a> {
    schema: &'a Schema,
    names: HashSet<&'a str>,
}

impl<'a> Frames<'a> {
    fn of(schema: &'a Schema) -> Self {
        fn add<'a>(block: &'a Block, names: &mut HashSet<&'a str>) {
            for group in &block.groups {
                names.insert(&group.dimensions.kind.name);
                add(&group.block, names);
            }
            let data = block.data.iter();
            names.extend(data.map(|data| data.encoding.kind.name.as_str()));
        }
        let mut names = HashSet::from([schema.header.kind.name.as_str()]);
        for message in &schema.messages {
            add(&message.block, &mut names);
        }
        Self { schema, names }
    }

    /// Returns true if a type is used for framing only and needs no code.
    fn hide(&self, kind: &Type) -> bool {
        let TypeKind::Composite(composite) = &kind.kind else {
            return false;
        };
        let has = |name| composite.member(name).is_some();
        let is_header = self.schema.header.kind.name == kind.name;
        let is_dimensions = has("numInGroup") && has("blockLength");
        if is_header && extra_members::in_header(kind)
            || is_dimensions && extra_members::in_dimensions(kind)
        {
            return false;
        }
        is_dimensions || has("varData") || self.names.contains(kind.name.as_str())
    }
}
