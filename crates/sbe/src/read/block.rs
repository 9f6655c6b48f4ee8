// SPDX-License-Identifier: Apache-2.0
//! Reads the content of messages and groups (`<field>`, `<group>`, `<data>`) and lays out the fields.

use super::NAMELESS;
use super::attributes::{self, Attributes};
use super::frame;
use super::message;
use super::names_in_use::NamesInUse;
use super::types::Types;
use crate::model::{Block, Constant, Data, Field, MAX_LENGTH, Presence, Type, TypeKind, ValueRef};
use crate::problem::GREATEST_ID;
use crate::problem::{Problem, Problems};
use crate::xml::Element;

/// Reads the block of a message (`depth` 0) or of a group nested in `depth - 1` others.
pub(super) fn block(
    element: &Element,
    attributes: &Attributes<'_>,
    depth: usize,
    types: &mut Types<'_>,
    problems: &mut Problems,
) -> Option<Block> {
    let given = attributes
        .number("blockLength", problems)
        .filter(|length| *length > 0);
    let mut block = Block {
        length: 0,
        explicit_length: given.is_some(),
        fields: Vec::new(),
        groups: Vec::new(),
        data: Vec::new(),
    };
    let (mut names, mut ids) = (NamesInUse::default(), NamesInUse::default());
    let mut last = "field";
    for child in &element.children {
        match child.name.as_str() {
            "field" => {
                in_order("field", &mut last, child, problems);
                let field = field(child, types, problems);
                place(&mut block, field, child, problems);
            }
            "group" => {
                in_order("group", &mut last, child, problems);
                let group = message::group(child, depth, types, problems);
                block.groups.extend(group);
            }
            "data" => {
                in_order("data", &mut last, child, problems);
                block.data.extend(data(child, types, problems));
            }
            _ => {
                attributes::unknown_element(child, element, problems);
                continue;
            }
        }
        // Also done for invalid elements, so that one pass reports every problem.
        let attributes = Attributes { element: child };
        if let Some(name) = attributes.value("name") {
            names.add("name", name, &child.position, problems);
        }
        if let Some(Ok(id)) = attributes.value("id").map(str::parse::<u32>) {
            ids.add("id", &id.to_string(), &child.position, problems);
            if id > GREATEST_ID.into() {
                let element = child.name.clone();
                let id = id.into();
                attributes.at("id", problems, Problem::GreatId { element, id });
            }
        }
    }
    if let Some(given) = given {
        if given < block.length {
            let needed = block.length;
            let problem = Problem::BlockTooShort { given, needed };
            attributes.at("blockLength", problems, problem);
        }
        block.length = block.length.max(given);
    }
    if block.length > MAX_LENGTH {
        problems.add(&element.position, Problem::TooLarge);
        return None;
    }
    Some(block)
}

fn in_order(
    element: &'static str,
    last: &mut &'static str,
    child: &Element,
    problems: &mut Problems,
) {
    let rank = |name| {
        ["field", "group", "data"]
            .iter()
            .position(|known| *known == name)
    };
    if rank(element) < rank(*last) {
        let problem = Problem::WrongOrder {
            element,
            after: last,
        };
        problems.add(&child.position, problem);
    } else {
        *last = element;
    }
}

const KNOWN: &[&str] = &[
    "id",
    "semanticType",
    "type",
    "offset",
    "presence",
    "valueRef",
    "epoch",
    "timeUnit",
];

fn field(element: &Element, types: &mut Types<'_>, problems: &mut Problems) -> Option<Field> {
    let attributes = Attributes::of(element, KNOWN, problems);
    let name = attributes.name(problems);
    let id = attributes.required_number("id", problems);
    let common = attributes.common(problems);
    let said = attributes.presence(problems);
    let value_ref = attributes.value_ref(problems);
    let kind = attributes
        .required("type", problems)
        .and_then(|kind| types.find(kind, &element.position, problems));
    let Some(kind) = kind else {
        if let Some(value_ref) = &value_ref {
            // The reference is checked independently of the type.
            types.referenced(value_ref, &element.position, problems);
        }
        return None;
    };
    if let TypeKind::Composite(composite) = &kind.kind
        && let Some(name) = composite.data_in(&kind.name)
    {
        // As in the official tool.
        let problem = Problem::VarDataInField {
            composite: name.to_owned(),
            length: composite.length,
        };
        problems.add(&element.position, problem);
    }
    let presence = match (said, kind.presence()) {
        (said, Presence::Constant) => {
            if said.is_some_and(|said| said != Presence::Constant) {
                attributes.at("presence", problems, Problem::TypeIsConstant);
            }
            Presence::Constant
        }
        (said, of_type) => said.unwrap_or(of_type),
    };
    let constant = if presence == Presence::Constant {
        let value_ref = value_ref.as_ref();
        constant(element, &attributes, &kind, value_ref, types, problems)
    } else {
        // The check is skipped if the presence is invalid.
        if value_ref.is_some() && said.is_some() == attributes.value("presence").is_some() {
            attributes.at("valueRef", problems, Problem::ValueRefNotConstant);
        }
        None
    };
    let (of_field, of_type) = (common.since, kind.since);
    // A `deprecated` earlier than the field's own `sinceVersion` is reported by the version check.
    let is_later = |deprecated: &u32| (of_field..of_type).contains(deprecated);
    if let Some(deprecated) = common.deprecated.filter(is_later) {
        let since = of_type;
        let problem = Problem::DeprecatedBefore { deprecated, since };
        problems.add(&element.position, problem);
    }
    let semantic_type = semantic_type(&attributes, common.semantic_type, &kind, problems);
    let of_kind = match &kind.kind {
        TypeKind::Simple(simple) if presence == Presence::Constant => simple.value_ref.clone(),
        _ => None,
    };
    Some(Field {
        name: name.unwrap_or(NAMELESS).to_owned(),
        id: id.unwrap_or(0),
        description: common.description,
        // As in the official tool: a sender that does not know the type does not have the field.
        since: of_field.max(of_type),
        deprecated: common.deprecated,
        semantic_type,
        kind,
        presence,
        offset: 0,
        constant,
        value_ref: value_ref.or(of_kind),
        epoch: attributes.text("epoch"),
        time_unit: attributes.text("timeUnit"),
        position: element.position.clone(),
    })
}

fn semantic_type(
    attributes: &Attributes<'_>,
    of_field: Option<String>,
    kind: &Type,
    problems: &mut Problems,
) -> Option<String> {
    match (of_field, &kind.semantic_type) {
        (Some(field), Some(kind)) if field != *kind => {
            let problem = Problem::SemanticTypes {
                field: field.clone(),
                kind: kind.clone(),
            };
            attributes.at("semanticType", problems, problem);
            Some(field)
        }
        (of_field, of_type) => of_field.or_else(|| of_type.clone()),
    }
}

/// Returns the value of a constant field: an enumeration value, or the constant of its type.
fn constant(
    element: &Element,
    attributes: &Attributes<'_>,
    kind: &Type,
    value_ref: Option<&ValueRef>,
    types: &mut Types<'_>,
    problems: &mut Problems,
) -> Option<Constant> {
    let Some(value_ref) = value_ref else {
        match &kind.kind {
            // An invalid type was already reported.
            TypeKind::Simple(simple) if simple.presence == Presence::Constant => {
                return simple.constant.clone();
            }
            // An invalid reference was already reported.
            _ if attributes.value("valueRef").is_some() => {}
            _ => problems.add(&element.position, Problem::NoConstant),
        }
        return None;
    };
    let (encoding, constant) = types.referenced(value_ref, &element.position, problems)?;
    let expected = match &kind.kind {
        TypeKind::Enum(_) if kind.name == value_ref.enumeration => return Some(constant),
        TypeKind::Simple(simple) if simple.primitive == encoding => return Some(constant),
        TypeKind::Simple(simple) => simple.primitive.name().to_owned(),
        _ => kind.name.clone(),
    };
    let problem = Problem::ValueRefMismatch {
        enumeration: value_ref.enumeration.clone(),
        found: encoding,
        name: attributes.text("name").unwrap_or_default(),
        expected,
    };
    attributes.at("valueRef", problems, problem);
    None
}

/// Adds a field after the others or at its specified offset. For an invalid field, only the offset is checked.
fn place(block: &mut Block, field: Option<Field>, element: &Element, problems: &mut Problems) {
    let end = block.length;
    let attributes = Attributes { element };
    let name = || attributes.value("name").unwrap_or(NAMELESS).to_owned();
    let offset = match attributes.number("offset", problems) {
        None => end,
        Some(0) if end > 0 => {
            let name = name();
            problems.add(&element.position, Problem::OffsetZero { name, end });
            end
        }
        Some(offset) if offset < end => {
            let name = name();
            problems.add(&element.position, Problem::Overlap { name, offset, end });
            offset
        }
        Some(offset) => offset,
    };
    let length = field.as_ref().map_or(0, Field::encoded_length);
    match offset.checked_add(length) {
        Some(length) if length <= MAX_LENGTH => {
            block.length = length;
            block
                .fields
                .extend(field.map(|field| Field { offset, ..field }));
        }
        _ => problems.add(&element.position, Problem::TooLarge),
    }
}

fn data(element: &Element, types: &mut Types<'_>, problems: &mut Problems) -> Option<Data> {
    let attributes = Attributes::of(element, KNOWN, problems);
    let name = attributes.name(problems);
    let id = attributes.required_number("id", problems);
    let common = attributes.common(problems);
    match attributes.presence(problems) {
        None | Some(Presence::Required) => {}
        Some(Presence::Optional) => attributes.at("presence", problems, Problem::DataOptional),
        Some(Presence::Constant) => attributes.at("presence", problems, Problem::DataConstant),
    }
    let kind = attributes.required("type", problems)?;
    let encoding = frame::data(kind, &element.position, types, problems)?;
    let semantic_type = semantic_type(&attributes, common.semantic_type, &encoding.kind, problems);
    Some(Data {
        name: name.unwrap_or(NAMELESS).to_owned(),
        id: id.unwrap_or(0),
        description: common.description,
        since: common.since,
        deprecated: common.deprecated,
        semantic_type,
        encoding,
        position: element.position.clone(),
    })
}
