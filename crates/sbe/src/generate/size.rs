//! How much code a schema would become.

use super::GenerateError;
use crate::model::{Block, Constant, Field, Member, Schema, Type, TypeKind};

/// The most values, of fields with all that their types hold, that code is made for: some hundred megabytes of it.
const MOST_VALUES: u64 = 1 << 20;
/// The most bytes that code repeats of a schema, each counted once for each thing that brings it: it is there some dozen
/// times for each.
const MOST_REPEATED: u64 = 4 << 20;

/// As how many values each counts besides what is in it: by how much code there is for it, of which a plain field takes less
/// than half a kilobyte.
const MESSAGE: u64 = 12;
const GROUP: u64 = 16;
const DATA: u64 = 4;
const COMPOSITE: u64 = 3;
const ENUM_OR_SET: u64 = 2;

/// The names of a group: where it is next, its decoder, its encoder, and those of its entries.
const NAMES_OF_A_GROUP: u64 = 5;

/// How large it would be.
#[derive(Debug, Default, Clone, Copy)]
struct Size {
    /// Each field with all of its type, and what else counts as values.
    values: u64,
    /// Bytes of names and descriptions that the schema has once, and code for each thing that has to do with them: names
    /// of all groups around a group or data, of all composites around a type; names, values and descriptions of types.
    ///
    /// Without a bound of its own, a few bytes of a schema would make kilobytes, even to look at the names.
    repeated: u64,
}

impl Size {
    fn add(&mut self, values: u64, repeated: u64) {
        self.values = self.values.saturating_add(values);
        self.repeated = self.repeated.saturating_add(repeated);
    }
}

/// Refuses a schema of which there would be more code than anybody could compile.
pub(super) fn check(schema: &Schema) -> Result<(), GenerateError> {
    let size = of(schema);
    if size.values > MOST_VALUES {
        return Err(GenerateError::TooLarge {
            values: size.values,
            most: MOST_VALUES,
        });
    }
    if size.repeated > MOST_REPEATED {
        return Err(GenerateError::TooMuchRepeated {
            bytes: size.repeated,
            most: MOST_REPEATED,
        });
    }
    Ok(())
}

fn of(schema: &Schema) -> Size {
    let mut size = Size::default();
    for of in &schema.types {
        let values = match &of.kind {
            TypeKind::Simple(_) => 1,
            TypeKind::Composite(composite) => composite.leaves.into(),
            TypeKind::Enum(kind) => kind.values.len() as u64,
            TypeKind::Set(set) => set.choices.len() as u64,
        };
        // What is in composites is counted as they are gone through.
        size.add(values, 0);
        kind(of, 0, &mut size);
    }
    for message in &schema.messages {
        size.add(MESSAGE, length(&schema.header.kind.name));
        block(&message.block, length(&message.name), &mut size);
    }
    size
}

fn length(text: &str) -> u64 {
    text.len() as u64
}

/// What is repeated of a type inside of others whose names have that length together.
fn kind(of: &Type, around: u64, size: &mut Size) {
    let composite = match &of.kind {
        TypeKind::Simple(_) => return,
        TypeKind::Enum(_) | TypeKind::Set(_) => return size.add(ENUM_OR_SET, around),
        TypeKind::Composite(composite) => composite,
    };
    // It has a decoder and an encoder.
    size.add(COMPOSITE, around.saturating_mul(2));
    let around = around + length(&of.name);
    for member in &composite.members {
        if !member.is_ref {
            kind(&member.kind, around, size);
            continue;
        }
        size.add(0, of_type(&member.kind, constant_of(member)));
        if member.description.is_none() {
            let described = member.kind.description.as_deref();
            size.add(0, described.map_or(0, length));
        }
    }
}

fn constant_of(member: &Member) -> Option<&Constant> {
    match &member.kind.kind {
        TypeKind::Simple(simple) => simple.constant.as_ref(),
        _ => None,
    }
}

/// What each use of a type repeats.
fn of_type(kind: &Type, constant: Option<&Constant>) -> u64 {
    match (&kind.kind, constant) {
        (TypeKind::Simple(_), Some(Constant::Bytes(bytes))) => bytes.len() as u64,
        (TypeKind::Simple(_), _) => 0,
        _ => length(&kind.name),
    }
}

/// A block in a message and groups whose names have that length together.
fn block(of: &Block, around: u64, size: &mut Size) {
    for field in &of.fields {
        size.add(values(field), of_type(&field.kind, field.constant.as_ref()));
    }
    for group in &of.groups {
        let names = around.saturating_mul(NAMES_OF_A_GROUP);
        size.add(GROUP, names + length(&group.dimensions.kind.name));
        block(&group.block, around + length(&group.name), size);
    }
    for _ in &of.data {
        size.add(DATA, around);
    }
}

fn values(field: &Field) -> u64 {
    match &field.kind.kind {
        TypeKind::Composite(composite) => 1 + u64::from(composite.leaves),
        TypeKind::Simple(_) | TypeKind::Enum(_) | TypeKind::Set(_) => 1,
    }
}
