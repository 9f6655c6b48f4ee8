// SPDX-License-Identifier: Apache-2.0
//! Generation of groups: iterators over entries, and group encoders.

mod read;
mod write;

pub(super) use read::opened;

use super::block::{GroupPlan, TailKind};
use super::code::{Code, named};
use super::{decoder, encoder, number};
use crate::model::{ByteOrder, Slot};

/// Writes a group and the groups nested in it.
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

/// Returns a number literal of the type of a slot.
pub(super) fn typed(value: u64, slot: &Slot) -> String {
    format!("{value}_{}", number::rust_type(slot.primitive))
}
