// SPDX-License-Identifier: Apache-2.0
//! Validates the composites used for message headers, group dimensions and data.

use std::collections::HashMap;
use std::sync::Arc;

use super::types::{Types, wrong_kind};
use crate::model::{
    Composite, Constant, DataLayout, GroupLayout, HeaderLayout, MAX_LENGTH, Position, Presence,
    Primitive, Scalar, Simple, Slot, Type, TypeKind,
};
use crate::problem::{Problem, Problems};
use crate::xml::Element;

const HEADER: &str = "the message header";
const DIMENSIONS: &str = "the dimensions of a group";
const DATA: &str = "the encoding of data";

/// Reads the layout of the message header.
pub(super) fn header(
    root: &Element,
    name: &str,
    types: &mut Types<'_>,
    problems: &mut Problems,
) -> Option<HeaderLayout> {
    let kind = composite(name, &root.position, types, problems)?;
    let mut frame = Frame::of(&kind, HEADER, problems)?;
    let block_length = frame.unsigned("blockLength");
    let template_id = frame.unsigned("templateId");
    let schema_id = frame.unsigned("schemaId");
    let version = frame.unsigned("version");
    let (groups, data) = frame.counts();
    for (slot, what) in [
        (block_length, "blockLength of the message header"),
        (template_id, "templateId of the message header"),
        (schema_id, "schemaId of the message header"),
        (version, "version of the message header"),
    ] {
        frame.usually(slot, what, &[Primitive::Uint16], "uint16");
    }
    let length = frame.composite.length;
    Some(HeaderLayout {
        length,
        block_length: block_length?,
        template_id: template_id?,
        schema_id: schema_id?,
        version: version?,
        groups,
        data,
        kind,
    })
}

/// Gives a constant schema id of a header the value of the schema's own id, and reports a difference. Messages carry neither.
pub(super) fn with_schema_id(
    mut header: HeaderLayout,
    id: u64,
    position: &Position,
    problems: &mut Problems,
) -> HeaderLayout {
    if let Some(constant) = &mut header.schema_id.constant
        && *constant != id
    {
        let composite = header.kind.name.clone();
        let constant = std::mem::replace(constant, id);
        let problem = Problem::OtherSchemaId {
            id,
            composite,
            constant,
        };
        problems.add(position, problem);
    }
    header
}

/// Placeholder slot without limits.
const ANY: Slot = Slot {
    offset: 0,
    primitive: Primitive::Uint64,
    max: u64::MAX,
    constant: None,
};

/// Placeholder dimensions for a group without valid ones.
pub(super) fn no_dimensions(types: &Types<'_>) -> GroupLayout {
    GroupLayout {
        kind: types.built_in(Primitive::Uint64),
        length: 0,
        block_length: ANY,
        count: ANY,
        min_count: 0,
        groups: None,
        data: None,
    }
}

/// Placeholder header for a schema without a valid one.
pub(super) fn placeholder(types: &Types<'_>) -> HeaderLayout {
    HeaderLayout {
        kind: types.built_in(Primitive::Uint64),
        length: 0,
        block_length: ANY,
        template_id: ANY,
        schema_id: ANY,
        version: ANY,
        groups: None,
        data: None,
    }
}

/// Layouts of group dimensions and data by composite name. Many elements share a composite, whose problems are reported
/// once.
#[derive(Default)]
pub(super) struct Frames {
    dimensions: HashMap<String, Option<GroupLayout>>,
    data: HashMap<String, Option<DataLayout>>,
}

/// Returns the layout of group dimensions.
pub(super) fn dimensions(
    name: &str,
    position: &Position,
    types: &mut Types<'_>,
    problems: &mut Problems,
) -> Option<GroupLayout> {
    let kind = composite(name, position, types, problems)?;
    if let Some(known) = types.frames.dimensions.get(name) {
        return known.clone();
    }
    let layout = read_dimensions(kind, problems);
    let known = &mut types.frames.dimensions;
    known.insert(name.to_owned(), layout.clone());
    layout
}

fn read_dimensions(kind: Arc<Type>, problems: &mut Problems) -> Option<GroupLayout> {
    let mut frame = Frame::of(&kind, DIMENSIONS, problems)?;
    let block_length = frame.unsigned("blockLength");
    let count = frame.count("numInGroup");
    let (groups, data) = frame.counts();
    let small = [Primitive::Uint8, Primitive::Uint16];
    frame.usually(
        block_length,
        "blockLength of a group",
        &small,
        "uint8 or uint16",
    );
    let slot = count.map(|(slot, _)| slot);
    frame.usually(slot, "numInGroup of a group", &small, "uint8 or uint16");
    frame.bounded("numInGroup");
    frame.bounded("blockLength");
    let length = frame.composite.length;
    let (count, min_count) = count?;
    Some(GroupLayout {
        length,
        block_length: block_length?,
        count,
        min_count,
        groups,
        data,
        kind,
    })
}

/// Returns the layout of variable-length data.
pub(super) fn data(
    name: &str,
    position: &Position,
    types: &mut Types<'_>,
    problems: &mut Problems,
) -> Option<DataLayout> {
    let kind = composite(name, position, types, problems)?;
    if let Some(known) = types.frames.data.get(name) {
        return known.clone();
    }
    let layout = read_data(kind, problems);
    types.frames.data.insert(name.to_owned(), layout.clone());
    layout
}

fn read_data(kind: Arc<Type>, problems: &mut Problems) -> Option<DataLayout> {
    let mut frame = Frame::of(&kind, DATA, problems)?;
    let length = frame.sent("length").and_then(|()| frame.unsigned("length"));
    frame.usually(
        length,
        "the length of data",
        &[Primitive::Uint8, Primitive::Uint16, Primitive::Uint32],
        "uint8, uint16 or uint32",
    );
    frame.bounded("length");
    let bytes = frame.simple("varData").map(|(simple, offset)| {
        let primitive = simple.primitive;
        (primitive, offset, simple.character_encoding.clone())
    });
    let last = frame.composite.members.last();
    if let (Some(length), Some((_, start, _))) = (&length, &bytes)
        && *start < length.end()
    {
        problems.add(&kind.position, Problem::LengthBehindData(kind.name.clone()));
        return None;
    }
    if let Some(last) = last.filter(|last| last.name != "varData" && bytes.is_some()) {
        let problem = Problem::BehindVarData {
            what: last.name.clone(),
            composite: kind.name.clone(),
        };
        problems.add(&last.position, problem);
    }
    let (primitive, start, character_encoding) = bytes?;
    if primitive.size() != 1 {
        let problem = Problem::WrongEncoding {
            what: "varData",
            found: primitive.name().to_owned(),
            expected: "char, uint8 or int8",
        };
        problems.add(&kind.position, problem);
        return None;
    }
    Some(DataLayout {
        length: length?,
        start,
        primitive,
        character_encoding,
        kind,
    })
}

/// Returns the composite with this name; reports a problem at `position` if it does not exist or is another type.
fn composite(
    name: &str,
    position: &Position,
    types: &mut Types<'_>,
    problems: &mut Problems,
) -> Option<Arc<Type>> {
    let kind = types.find(name, position, problems)?;
    if matches!(kind.kind, TypeKind::Composite(_)) {
        return Some(kind);
    }
    problems.add(position, wrong_kind(&kind, "a composite"));
    None
}

/// Composite that is checked for required members.
struct Frame<'kind, 'problems> {
    kind: &'kind Type,
    composite: &'kind Composite,
    purpose: &'static str,
    problems: &'problems mut Problems,
}

impl<'kind, 'problems> Frame<'kind, 'problems> {
    /// Begins the check of a type; returns `None` if it is not a composite.
    fn of(
        kind: &'kind Type,
        purpose: &'static str,
        problems: &'problems mut Problems,
    ) -> Option<Self> {
        let TypeKind::Composite(composite) = &kind.kind else {
            return None;
        };
        Some(Self {
            kind,
            composite,
            purpose,
            problems,
        })
    }

    /// Returns a member that is a number or a character, and its offset.
    fn simple(&mut self, name: &'static str) -> Option<(&'kind Simple, u32)> {
        let Some(member) = self.composite.member(name) else {
            // An invalid member was already reported.
            if !self.composite.may_have_lost(name) {
                let problem = Problem::FrameMember {
                    composite: self.kind.name.clone(),
                    member: name,
                    purpose: self.purpose,
                };
                self.problems.add(&self.kind.position, problem);
            }
            return None;
        };
        let TypeKind::Simple(simple) = &member.kind.kind else {
            let problem = wrong_kind(&member.kind, "a simple type");
            self.problems.add(&member.position, problem);
            return None;
        };
        Some((simple, member.offset))
    }

    /// Reports a constant member that must be encoded.
    fn sent(&mut self, name: &'static str) -> Option<()> {
        let (simple, _) = self.simple(name)?;
        if simple.presence == Presence::Constant {
            let problem = Problem::NotConstant { what: name };
            self.problems.add(&self.kind.position, problem);
            return None;
        }
        Some(())
    }

    fn unsigned(&mut self, name: &'static str) -> Option<Slot> {
        let (simple, offset) = self.simple(name)?;
        if !simple.primitive.is_unsigned() || simple.is_array {
            self.wrong(name, simple, "one unsigned integer");
            return None;
        }
        Some(slot(simple, offset))
    }

    /// Returns a count, which can be signed if its minimum value is not negative.
    fn count(&mut self, name: &'static str) -> Option<(Slot, u64)> {
        self.sent(name)?;
        let (simple, offset) = self.simple(name)?;
        let min = u64::try_from(simple.min.as_integer().unwrap_or(-1));
        match min {
            Ok(min) if simple.primitive.is_integer() && !simple.is_array => {
                Some((slot(simple, offset), min))
            }
            _ => {
                self.wrong(
                    name,
                    simple,
                    "one unsigned integer, or a signed one with a minValue of 0 or more",
                );
                None
            }
        }
    }

    /// Returns the numbers of groups and data elements, which exist in later versions of the standard.
    fn counts(&mut self) -> (Option<Slot>, Option<Slot>) {
        let mut find = |name| {
            self.composite.member(name)?;
            self.unsigned(name)
        };
        (find("numGroups"), find("numVarDataFields"))
    }

    fn wrong(&mut self, what: &'static str, simple: &Simple, expected: &'static str) {
        let primitive = simple.primitive;
        let found = if simple.is_array {
            format!("{} of {primitive}", simple.length)
        } else {
            primitive.name().to_owned()
        };
        let problem = Problem::WrongEncoding {
            what,
            found,
            expected,
        };
        self.problems.add(&self.kind.position, problem);
    }

    fn usually(
        &mut self,
        slot: Option<Slot>,
        what: &'static str,
        usual: &[Primitive],
        expected: &'static str,
    ) {
        if let Some(slot) = slot.filter(|slot| !usual.contains(&slot.primitive)) {
            let problem = Problem::UnusualEncoding {
                what,
                found: slot.primitive,
                expected,
            };
            self.problems.add(&self.kind.position, problem);
        }
    }

    /// Reports a four-byte length without a maximum value, and a maximum value that is the null value; the official
    /// tool rejects both.
    fn bounded(&mut self, name: &'static str) {
        let Some(member) = self.composite.member(name) else {
            return;
        };
        let TypeKind::Simple(simple) = &member.kind.kind else {
            return;
        };
        let bounded = simple.explicit.max
            && matches!(simple.max, Scalar::Integer(max) if max <= MAX_LENGTH.into());
        if simple.primitive == Primitive::Uint32 && !bounded {
            let problem = Problem::NoMaxValue {
                composite: self.kind.name.clone(),
                member: name,
                primitive: simple.primitive,
            };
            self.problems.add(&member.position, problem);
        }
        let greatest = simple.primitive.max_value();
        if simple.explicit.max
            && [Primitive::Uint8, Primitive::Uint16].contains(&simple.primitive)
            && let (Scalar::Integer(max), Scalar::Integer(greatest)) = (simple.max, greatest)
            && max > greatest
        {
            let problem = Problem::MaxValueIsNull {
                composite: self.kind.name.clone(),
                member: name,
                max,
                greatest,
            };
            self.problems.add(&member.position, problem);
        }
    }
}

fn slot(simple: &Simple, offset: u32) -> Slot {
    let max = simple.max.as_integer().unwrap_or(0);
    let constant = match simple.constant {
        Some(Constant::Scalar(Scalar::Integer(value))) => u64::try_from(value).ok(),
        _ => None,
    };
    Slot {
        offset,
        primitive: simple.primitive,
        max: u64::try_from(max).unwrap_or(0),
        constant,
    }
}
