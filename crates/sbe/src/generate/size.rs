//! How much code a schema would become.

use crate::model::{Block, Schema, TypeKind};

/// The most values, of fields with all that their types hold, that code is made for: some hundred megabytes of it.
pub(super) const MOST: u64 = 1 << 20;

/// How many values a schema has, each field with all of its type; groups in groups count for more, as their types have
/// the names of all around them.
pub(super) fn of(schema: &Schema) -> u64 {
    let types = schema.types.iter().map(|kind| match &kind.kind {
        TypeKind::Simple(_) => 1,
        TypeKind::Composite(composite) => composite.leaves.into(),
        TypeKind::Enum(kind) => kind.values.len() as u64,
        TypeKind::Set(set) => set.choices.len() as u64,
    });
    let messages = schema
        .messages
        .iter()
        .map(|message| block(&message.block, message.name.len()));
    types.chain(messages).fold(0, u64::saturating_add)
}

/// A block whose types have names of that length.
fn block(of: &Block, name: usize) -> u64 {
    let fields = of.fields.iter().map(|field| match &field.kind.kind {
        TypeKind::Composite(composite) => 1 + u64::from(composite.leaves),
        TypeKind::Simple(_) | TypeKind::Enum(_) | TypeKind::Set(_) => 1,
    });
    let groups = of.groups.iter().map(|group| {
        let name = name + group.name.len();
        (name as u64 / 16).saturating_add(block(&group.block, name))
    });
    let data = of.data.len() as u64;
    fields.chain(groups).fold(data, u64::saturating_add)
}
