// SPDX-License-Identifier: Apache-2.0
//! Checks that ids, versions and block lengths fit into the header fields that carry them.

use crate::model::{Block, Position, Schema, Slot};
use crate::problem::{GREATEST_ID, Problem, Problems};

pub(super) fn schema(schema: &Schema, problems: &mut Problems) {
    let header = &schema.header;
    let composite = header.kind.name.as_str();
    let mut fits = |what, value, member, slot: Slot, position: &Position| {
        check(what, value, (member, slot), composite, position, problems);
    };
    let place = &schema.position;
    fits("the id", schema.id, "schemaId", header.schema_id, place);
    let version = schema.version.into();
    fits("the version", version, "version", header.version, place);
    let mut greater = Vec::new();
    for message in &schema.messages {
        let place = &message.position;
        fits(
            "the id",
            message.id,
            "templateId",
            header.template_id,
            place,
        );
        if message.id > GREATEST_ID.into() && message.id <= header.template_id.max {
            let (element, id) = ("message".to_owned(), message.id);
            greater.push((place, Problem::GreatId { element, id }));
        }
        let length = message.block.length.into();
        fits(
            "a block of",
            length,
            "blockLength",
            header.block_length,
            place,
        );
    }
    for (place, problem) in greater {
        problems.add(place, problem);
    }
    for message in &schema.messages {
        let slots = (header.groups, header.data);
        counts(
            &message.block,
            slots,
            composite,
            &message.position,
            problems,
        );
        groups(&message.block, problems);
    }
}

/// Checks the numbers of groups and data elements after a block against the header fields that carry them. Constant
/// fields are skipped: readers do not use them.
fn counts(
    block: &Block,
    (groups, data): (Option<Slot>, Option<Slot>),
    composite: &str,
    position: &Position,
    problems: &mut Problems,
) {
    for (what, count, member, slot) in [
        (
            "the number of groups",
            block.groups.len(),
            "numGroups",
            groups,
        ),
        (
            "the number of data",
            block.data.len(),
            "numVarDataFields",
            data,
        ),
    ] {
        if let Some(slot) = slot.filter(|slot| slot.constant.is_none()) {
            let slot = (member, slot);
            check(what, count as u64, slot, composite, position, problems);
        }
    }
}

fn groups(block: &Block, problems: &mut Problems) {
    for group in &block.groups {
        let dimensions = &group.dimensions;
        counts(
            &group.block,
            (dimensions.groups, dimensions.data),
            &dimensions.kind.name,
            &group.position,
            problems,
        );
        check(
            "a block of",
            group.block.length.into(),
            ("blockLength", dimensions.block_length),
            &dimensions.kind.name,
            &group.position,
            problems,
        );
        check(
            "minValue",
            dimensions.min_count,
            ("numInGroup", dimensions.count),
            &dimensions.kind.name,
            &group.position,
            problems,
        );
        groups(&group.block, problems);
    }
}

fn check(
    what: &'static str,
    value: u64,
    (member, slot): (&'static str, Slot),
    composite: &str,
    position: &Position,
    problems: &mut Problems,
) {
    if let Some(constant) = slot.constant.filter(|constant| *constant != value) {
        let problem = Problem::NotTheConstant {
            what,
            value,
            member,
            composite: composite.to_owned(),
            constant,
        };
        problems.add(position, problem);
    } else if value > slot.max {
        let problem = Problem::DoesNotFit {
            what,
            value,
            member,
            composite: composite.to_owned(),
            max: slot.max,
        };
        problems.add(position, problem);
    }
}
