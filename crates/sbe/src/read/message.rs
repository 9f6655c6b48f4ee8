// SPDX-License-Identifier: Apache-2.0
//! Reads `<message>` and `<group>`.

use super::NAMELESS;
use super::attributes::Attributes;
use super::block;
use super::frame;
use super::types::Types;
use crate::model::{Group, MAX_DEPTH, Message};
use crate::problem::{Problem, Problems};
use crate::xml::Element;

pub(super) fn message(
    element: &Element,
    types: &mut Types<'_>,
    problems: &mut Problems,
) -> Option<Message> {
    let attributes = Attributes::of(element, &["id", "semanticType", "blockLength"], problems);
    let name = attributes.name(problems);
    let id = attributes.required_number("id", problems);
    let common = attributes.common(problems);
    let block = block::block(element, &attributes, 0, types, problems);
    Some(Message {
        name: name.unwrap_or(NAMELESS).to_owned(),
        id: id.unwrap_or(0).into(),
        description: common.description,
        since: common.since,
        deprecated: common.deprecated,
        semantic_type: common.semantic_type,
        block: block?,
        position: element.position.clone(),
    })
}

/// Reads a group nested in `depth` others.
pub(super) fn group(
    element: &Element,
    depth: usize,
    types: &mut Types<'_>,
    problems: &mut Problems,
) -> Option<Group> {
    if depth >= MAX_DEPTH {
        problems.add(&element.position, Problem::TooDeep);
        return None;
    }
    let attributes = Attributes::of(
        element,
        &["id", "semanticType", "blockLength", "dimensionType"],
        problems,
    );
    let name = attributes.name(problems);
    let id = attributes.required_number("id", problems);
    let common = attributes.common(problems);
    let dimension_type = attributes
        .value("dimensionType")
        .unwrap_or("groupSizeEncoding");
    let dimensions = frame::dimensions(dimension_type, &element.position, types, problems);
    let block = block::block(element, &attributes, depth + 1, types, problems);
    Some(Group {
        name: name.unwrap_or(NAMELESS).to_owned(),
        id: id.unwrap_or(0),
        description: common.description,
        since: common.since,
        deprecated: common.deprecated,
        semantic_type: common.semantic_type,
        // Placeholder; the missing dimensions were reported as an error, and reading continues to find more problems.
        dimensions: dimensions.unwrap_or_else(|| frame::no_dimensions(types)),
        block: block?,
        position: element.position.clone(),
    })
}
