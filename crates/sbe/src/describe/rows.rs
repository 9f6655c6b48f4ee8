// SPDX-License-Identifier: Apache-2.0
//! Rows of a layout table.

use std::fmt::Write;

use super::{Row, What};
use crate::model::{
    Block, Composite, Constant, DataLayout, Enum, Field, Member, Presence, Set, Simple, Type,
    TypeKind, ValueRef,
};

/// Composites with more values than this are not expanded.
const MAX_MEMBERS: u32 = 512;
/// Total number of composite values expanded per schema. The members of a type repeat for each field of that type.
const MAX_IN_ALL: u32 = 65_536;

/// Total number of bytes of descriptions, names and constants of types that are repeated for fields of these types.
const MAX_REPEATED: usize = 8 << 20;

/// Remaining budget for type details that are repeated for each field. The number of fields of one type is bounded only
/// by the size of the schema.
pub(super) struct Budget {
    /// Values of composites that may still be expanded.
    values: u32,
    /// Bytes of descriptions, names and constants that may still be repeated.
    repeated: usize,
}

impl Budget {
    pub(super) const fn new() -> Self {
        Self {
            values: MAX_IN_ALL,
            repeated: MAX_REPEATED,
        }
    }

    /// Returns true if a composite with this many values may be expanded, and charges them.
    fn has(&mut self, values: u32) -> bool {
        match self.values.checked_sub(values) {
            Some(left) if values <= MAX_MEMBERS && self.repeated > 0 => {
                self.values = left;
                true
            }
            _ => false,
        }
    }

    /// Returns the description of the type, for a field or member without its own.
    fn described(&mut self, kind: &Type) -> Option<String> {
        let description = kind.description.as_ref()?;
        self.repeated = self.repeated.checked_sub(description.len())?;
        Some(description.clone())
    }

    /// Returns the note of a field or member. Most of it repeats the type; a constant has up to a thousand characters.
    /// Once the budget is spent, only the presence is returned.
    fn noted(
        &mut self,
        presence: Presence,
        kind: &Type,
        constant: Option<&Constant>,
        value_ref: Option<&ValueRef>,
    ) -> Option<String> {
        if self.repeated == 0 {
            return match presence {
                Presence::Required => None,
                Presence::Optional => Some("optional".to_owned()),
                Presence::Constant => Some("constant".to_owned()),
            };
        }
        let note = note(presence, kind, constant, value_ref);
        self.spend(note.as_ref().map_or(0, String::len));
        note
    }

    /// Charges repeated bytes. Members repeat for each field of their composite.
    const fn spend(&mut self, bytes: usize) {
        self.repeated = self.repeated.saturating_sub(bytes);
    }
}

pub(super) fn of_block(block: &Block, budget: &mut Budget) -> Vec<Row> {
    let mut rows = Rows::new(budget);
    rows.block(block);
    rows.rows
}

pub(super) fn of_composite(kind: &Type, budget: &mut Budget) -> Vec<Row> {
    let mut rows = Rows::new(budget);
    if let TypeKind::Composite(composite) = &kind.kind {
        rows.members(composite, 0);
    }
    rows.rows
}

struct Rows<'a> {
    rows: Vec<Row>,
    depth: usize,
    budget: &'a mut Budget,
}

impl<'a> Rows<'a> {
    const fn new(budget: &'a mut Budget) -> Self {
        Self {
            rows: Vec::new(),
            depth: 0,
            budget,
        }
    }

    fn block(&mut self, block: &Block) {
        let mut end = 0;
        for field in &block.fields {
            self.gap(end, field.offset);
            end = field.offset + field.encoded_length();
            self.field(field);
        }
        self.gap(end, block.length);
        for group in &block.groups {
            let mut row = self.row(What::Group, &group.name, group.block.length);
            row.id = Some(group.id);
            row.kind.clone_from(&group.dimensions.kind.name);
            row.since_version = group.since;
            row.deprecated = group.deprecated;
            row.description.clone_from(&group.description);
            self.rows.push(row);
            self.depth += 1;
            self.block(&group.block);
            self.depth -= 1;
        }
        for data in &block.data {
            let mut row = self.row(What::Data, &data.name, data.encoding.start);
            row.id = Some(data.id);
            row.kind = data_kind(&data.encoding);
            row.since_version = data.since;
            row.deprecated = data.deprecated;
            row.description.clone_from(&data.description);
            self.rows.push(row);
        }
    }

    fn field(&mut self, field: &Field) {
        let mut row = self.row(What::Field, &field.name, field.encoded_length());
        row.id = Some(field.id);
        row.offset = Some(field.offset);
        row.kind = kind(&field.kind);
        row.since_version = field.since;
        row.deprecated = field.deprecated;
        row.note = self.budget.noted(
            field.presence,
            &field.kind,
            field.constant.as_ref(),
            field.value_ref.as_ref(),
        );
        let description = field.description.clone();
        row.description = description.or_else(|| self.budget.described(&field.kind));
        self.rows.push(row);
        if let TypeKind::Composite(composite) = &field.kind.kind {
            self.depth += 1;
            self.members(composite, field.offset);
            self.depth -= 1;
        }
    }

    fn members(&mut self, composite: &Composite, start: u32) {
        if !self.budget.has(composite.leaves) {
            return;
        }
        let mut end = 0;
        for member in &composite.members {
            self.gap(start + end, start + member.offset);
            end = member.offset + member.kind.encoded_length();
            self.member(member, start);
        }
    }

    fn member(&mut self, member: &Member, start: u32) {
        let offset = start.saturating_add(member.offset);
        let mut row = self.row(What::Member, &member.name, member.kind.encoded_length());
        row.offset = Some(offset);
        // An inline type has the name of its member.
        row.kind = if member.is_ref {
            kind(&member.kind)
        } else {
            made_of(&member.kind)
        };
        row.since_version = member.since;
        row.deprecated = member.deprecated;
        let (constant, value_ref) = match &member.kind.kind {
            TypeKind::Simple(simple) => (simple.constant.as_ref(), simple.value_ref.as_ref()),
            _ => (None, None),
        };
        let presence = member.kind.presence();
        row.note = self
            .budget
            .noted(presence, &member.kind, constant, value_ref);
        let description = member.description.clone();
        let description_length = description.as_ref().map_or(0, String::len);
        row.description = description.or_else(|| self.budget.described(&member.kind));
        self.budget
            .spend(row.name.len() + row.kind.len() + description_length);
        self.rows.push(row);
        if let TypeKind::Composite(composite) = &member.kind.kind {
            self.depth += 1;
            self.members(composite, offset);
            self.depth -= 1;
        }
    }

    fn gap(&mut self, from: u32, to: u32) {
        if from < to {
            let mut row = self.row(What::Gap, "", to - from);
            row.offset = Some(from);
            self.rows.push(row);
        }
    }

    fn row(&self, what: What, name: &str, length: u32) -> Row {
        Row {
            depth: self.depth,
            what,
            name: name.to_owned(),
            id: None,
            offset: None,
            length,
            kind: String::new(),
            since_version: 0,
            deprecated: None,
            note: None,
            description: None,
        }
    }
}

/// Returns the kind of a type, with its name if that adds information.
fn kind(kind: &Type) -> String {
    let made_of = made_of(kind);
    if kind.built_in || kind.name == made_of {
        return made_of;
    }
    format!("{} ({made_of})", kind.name)
}

fn made_of(kind: &Type) -> String {
    match &kind.kind {
        TypeKind::Simple(simple) => array(simple),
        TypeKind::Composite(_) => "composite".to_owned(),
        TypeKind::Enum(Enum { encoding, .. }) => format!("enum of {encoding}"),
        TypeKind::Set(Set { encoding, .. }) => format!("set of {encoding}"),
    }
}

fn array(simple: &Simple) -> String {
    if simple.is_array {
        return format!("{}[{}]", simple.primitive, simple.length);
    }
    simple.primitive.name().to_owned()
}

fn data_kind(layout: &DataLayout) -> String {
    let mut kind = format!(
        "{} ({} of length {}",
        layout.kind.name, layout.primitive, layout.length.primitive
    );
    if let Some(encoding) = &layout.character_encoding {
        let _ = write!(kind, ", {encoding}");
    }
    kind.push(')');
    kind
}

fn note(
    presence: Presence,
    kind: &Type,
    constant: Option<&Constant>,
    value_ref: Option<&ValueRef>,
) -> Option<String> {
    match (presence, &kind.kind) {
        (Presence::Required, _) => None,
        (Presence::Optional, TypeKind::Simple(simple)) => Some(format!(
            "optional, null is {}",
            simple.null.shown(simple.primitive)
        )),
        (Presence::Optional, TypeKind::Enum(kind)) => Some(format!(
            "optional, null is {}",
            kind.null.shown(kind.encoding)
        )),
        (Presence::Optional, _) => Some("optional".to_owned()),
        (Presence::Constant, _) => Some(match (value_ref, constant) {
            (Some(ValueRef { enumeration, value }), _) => format!("always {enumeration}.{value}"),
            (None, Some(constant)) => format!("always {}", shown(constant, kind)),
            (None, None) => "constant".to_owned(),
        }),
    }
}

fn shown(constant: &Constant, kind: &Type) -> String {
    match (constant, &kind.kind) {
        (Constant::Bytes(bytes), _) => {
            format!("\"{}\"", bytes.trim_ascii_end().escape_ascii())
        }
        (Constant::Scalar(value), TypeKind::Simple(simple)) => value.shown(simple.primitive),
        (Constant::Scalar(value), _) => value.to_string(),
    }
}
