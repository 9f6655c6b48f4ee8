// SPDX-License-Identifier: Apache-2.0
//! Reads `<composite>`.

use std::sync::Arc;

use super::NAMELESS;
use super::attributes::{self, Attributes};
use super::names_in_use::NamesInUse;
use super::types::Types;
use crate::model::{
    Composite, Lost, MAX_DEPTH, MAX_LEAVES, MAX_LENGTH, Member, Presence, Type, TypeKind,
};
use crate::problem::{Problem, Problems};
use crate::xml::Element;

pub(super) fn composite<'tree>(
    element: &'tree Element,
    package: Option<&str>,
    types: &mut Types<'tree>,
    problems: &mut Problems,
) -> Option<Composite> {
    let mut placed = Placed {
        members: Vec::new(),
        length: 0,
        depth: 1,
        leaves: 0,
    };
    let mut names = NamesInUse::default();
    let mut lost = Lost::default();
    for child in &element.children {
        let name = Attributes { element: child }.value("name");
        let member = match child.name.as_str() {
            "type" | "enum" | "set" | "composite" => nested(child, package, types, problems),
            "ref" => reference(child, types, problems),
            "field" | "group" | "data" => {
                let problem = Problem::NotInComposite(child.name.clone());
                problems.add(&child.position, problem);
                lost.names.extend(name.map(str::to_owned));
                continue;
            }
            _ => {
                attributes::unknown_element(child, element, problems);
                continue;
            }
        };
        // Also done for invalid elements, so that one pass reports every problem.
        let member = member.filter(|(member, _)| has_a_value(member, problems));
        let is_new = name.is_none_or(|name| names.add("member", name, &child.position, problems));
        lost.nameless |= name.is_none_or(str::is_empty);
        let Some((member, offset)) = member.filter(|_| is_new) else {
            lost.names.extend(name.map(str::to_owned));
            continue;
        };
        let offset = placed.offset(&member, offset).unwrap_or_else(|problem| {
            problems.add(&child.position, problem);
            placed.length
        });
        if let Err(problem) = placed.add(member, offset) {
            problems.add(&child.position, problem);
            return None;
        }
    }
    let Placed {
        members,
        length,
        depth,
        leaves,
    } = placed;
    Some(Composite::new(members, lost, length, depth, leaves))
}

/// Returns true if the member is encoded or has a constant value. A member cannot specify a constant enumeration value.
fn has_a_value(member: &Member, problems: &mut Problems) -> bool {
    let is_constant = member.kind.presence() == Presence::Constant;
    if is_constant && matches!(member.kind.kind, TypeKind::Enum(_)) {
        problems.add(&member.position, Problem::NoConstant);
        return false;
    }
    true
}

/// Member and its specified offset.
type Unplaced = (Member, Option<u32>);

fn nested<'tree>(
    element: &'tree Element,
    package: Option<&str>,
    types: &mut Types<'tree>,
    problems: &mut Problems,
) -> Option<Unplaced> {
    let kind = types.read(element, package, problems)?;
    if kind.name != "varData" {
        Attributes { element }.not_variable(problems);
    }
    let offset = kind.offset;
    let member = Member {
        name: kind.name.clone(),
        description: None,
        since: kind.since,
        deprecated: kind.deprecated,
        kind: Arc::new(kind),
        is_ref: false,
        offset: 0,
        position: element.position.clone(),
    };
    Some((member, offset))
}

fn reference(
    element: &Element,
    types: &mut Types<'_>,
    problems: &mut Problems,
) -> Option<Unplaced> {
    let attributes = Attributes::of(element, &["type", "offset", "semanticType"], problems);
    let name = attributes.name(problems);
    let common = attributes.common(problems);
    let offset = attributes.number("offset", problems);
    let kind = attributes.required("type", problems)?;
    let kind = types.find(kind, &element.position, problems)?;
    let offset = offset.or(kind.offset);
    let says_since = attributes.value("sinceVersion").is_some();
    let member = Member {
        name: name.unwrap_or(NAMELESS).to_owned(),
        description: common.description,
        since: if says_since { common.since } else { kind.since },
        deprecated: common.deprecated.or(kind.deprecated),
        kind,
        is_ref: true,
        offset: 0,
        position: element.position.clone(),
    };
    Some((member, offset))
}

/// Members with their offsets.
struct Placed {
    members: Vec<Member>,
    length: u32,
    depth: usize,
    leaves: u32,
}

impl Placed {
    /// Returns the offset of a member: the specified one, or the end of the preceding members.
    fn offset(&self, member: &Member, wanted: Option<u32>) -> Result<u32, Problem> {
        let end = self.length;
        match wanted {
            Some(offset) if offset < end => {
                let name = member.name.clone();
                Err(Problem::Overlap { name, offset, end })
            }
            Some(offset) => Ok(offset),
            None => Ok(end),
        }
    }

    /// Adds a member.
    fn add(&mut self, mut member: Member, offset: u32) -> Result<(), Problem> {
        member.offset = offset;
        let length = u64::from(member.offset) + u64::from(member.kind.encoded_length());
        self.length = u32::try_from(length)
            .ok()
            .filter(|length| *length <= MAX_LENGTH)
            .ok_or(Problem::TooLarge)?;
        let (depth, leaves) = size(&member.kind);
        self.depth = self.depth.max(depth + 1);
        self.leaves = self.leaves.saturating_add(leaves);
        if self.depth > MAX_DEPTH {
            return Err(Problem::TooDeep);
        }
        if self.leaves > MAX_LEAVES {
            return Err(Problem::TooManyLeaves);
        }
        self.members.push(member);
        Ok(())
    }
}

/// Returns the nesting depth and the number of values of a type.
fn size(kind: &Type) -> (usize, u32) {
    match &kind.kind {
        TypeKind::Composite(composite) => (composite.depth, composite.leaves.max(1)),
        TypeKind::Simple(_) | TypeKind::Enum(_) | TypeKind::Set(_) => (0, 1),
    }
}
