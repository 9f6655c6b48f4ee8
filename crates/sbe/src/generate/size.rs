// SPDX-License-Identifier: Apache-2.0
//! Limits of the size of the generated code.

use super::GenerateError;
use crate::model::{Block, Constant, Field, Member, Schema, Type, TypeKind};

/// Maximum number of values, counting all values of the type of each field. The limit corresponds to some hundred
/// megabytes of code.
const MAX_VALUES: u64 = 1 << 20;
/// Maximum number of schema bytes that the code repeats, counted once per element that causes a repetition; the code
/// contains each about a dozen times.
const MAX_REPEATED: u64 = 4 << 20;

/// Weight of each kind of element in values, besides its content, in proportion to its code size. A plain field takes
/// less than half a kilobyte.
const MESSAGE: u64 = 12;
const GROUP: u64 = 16;
const DATA: u64 = 4;
const COMPOSITE: u64 = 3;
const ENUM_OR_SET: u64 = 2;

/// Number of type names per group: its marker, decoder and encoder, and the decoder and encoder of its entries.
const NAMES_PER_GROUP: u64 = 5;

/// Size estimate.
#[derive(Debug, Default, Clone, Copy)]
struct Size {
    /// Values of all fields, plus the weights of other elements.
    values: u64,
    /// Bytes of names and descriptions that the code repeats: names of the enclosing groups for each group or data
    /// element, names of the enclosing composites for each type, and the names, values and descriptions of types.
    ///
    /// Without this limit, a few bytes of a schema would cause kilobytes of names, even before code is generated.
    repeated: u64,
}

impl Size {
    fn add(&mut self, values: u64, repeated: u64) {
        self.values = self.values.saturating_add(values);
        self.repeated = self.repeated.saturating_add(repeated);
    }
}

/// Rejects a schema whose code would be too large to compile.
pub(super) fn check(schema: &Schema) -> Result<(), GenerateError> {
    let size = of(schema);
    if size.values > MAX_VALUES {
        return Err(GenerateError::TooLarge {
            values: size.values,
            most: MAX_VALUES,
        });
    }
    if size.repeated > MAX_REPEATED {
        return Err(GenerateError::TooMuchRepeated {
            bytes: size.repeated,
            most: MAX_REPEATED,
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
        // The content of composites is counted by the traversal.
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

/// Adds the repeated bytes of a type; `around` is the total length of the names of the enclosing types.
fn kind(of: &Type, around: u64, size: &mut Size) {
    let composite = match &of.kind {
        TypeKind::Simple(_) => return,
        TypeKind::Enum(_) | TypeKind::Set(_) => return size.add(ENUM_OR_SET, around),
        TypeKind::Composite(composite) => composite,
    };
    // A composite has a decoder and an encoder.
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

/// Returns the number of bytes that each use of a type repeats.
fn of_type(kind: &Type, constant: Option<&Constant>) -> u64 {
    match (&kind.kind, constant) {
        (TypeKind::Simple(_), Some(Constant::Bytes(bytes))) => bytes.len() as u64,
        (TypeKind::Simple(_), _) => 0,
        _ => length(&kind.name),
    }
}

/// Adds a block; `around` is the total length of the names of the enclosing message and groups.
fn block(of: &Block, around: u64, size: &mut Size) {
    for field in &of.fields {
        size.add(values(field), of_type(&field.kind, field.constant.as_ref()));
    }
    for group in &of.groups {
        let names = around.saturating_mul(NAMES_PER_GROUP);
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
