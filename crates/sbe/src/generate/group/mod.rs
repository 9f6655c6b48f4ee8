//! Groups: iterators over their entries, and what writes one entry after the other.

mod read;
mod write;

pub(super) use read::opened;

use super::block::{GroupPlan, TailKind};
use super::code::{Code, named};
use super::{decoder, encoder, number};
use crate::model::{ByteOrder, Slot};

/// A group, and those inside of it.
pub(super) fn write(code: &mut Code, plan: &GroupPlan<'_>, is_added: bool, order: ByteOrder) {
    code.blank();
    read::entries(code, plan, is_added, order);
    code.blank();
    code.doc(&format!("Reads an entry of {}.", named(&plan.group.name)));
    decoder::write(code, &plan.entry, order, |_| {});
    code.blank();
    write::entries(code, plan, order);
    code.blank();
    code.doc(&format!("Writes an entry of {}.", named(&plan.group.name)));
    encoder::write(code, &plan.entry, order, |_| {});
    for tail in &plan.entry.tails {
        if let TailKind::Group(group) = &tail.kind {
            write(code, group, tail.since.is_some(), order);
        }
    }
}

/// A number of the type of a slot.
pub(super) fn typed(value: u64, slot: &Slot) -> String {
    format!("{value}_{}", number::rust_type(slot.primitive))
}
