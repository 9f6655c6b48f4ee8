// SPDX-License-Identifier: Apache-2.0
//! Reads `<enum>` and `<set>`.

use std::collections::HashMap;

use super::NAMELESS;
use super::attributes::{self, Attributes};
use super::names_in_use::NamesInUse;
use super::types::{Types, wrong_kind};
use crate::model::{
    Choice, Enum, MAX_CHOICES, Presence, Primitive, Scalar, Set, Simple, TypeKind, ValidValue,
};
use crate::problem::{Problem, Problems};
use crate::xml::Element;

pub(super) fn enumeration(
    element: &Element,
    attributes: &Attributes<'_>,
    types: &mut Types<'_>,
    problems: &mut Problems,
) -> Option<Enum> {
    let encoding = encoding(element, attributes, types, problems)
        .filter(|(simple, _)| can_be_enumerated(simple.primitive, attributes, problems));
    if let Some((simple, None)) = &encoding
        && [Primitive::Uint32, Primitive::Int64, Primitive::Uint64].contains(&simple.primitive)
    {
        let problem = Problem::WideEnumeration(simple.primitive);
        attributes.at("encodingType", problems, problem);
    }
    let sent = encoding.as_ref().map(|(simple, _)| Sent {
        simple,
        null: null_value(element, attributes, simple, problems),
    });
    let mut values = Vec::new();
    let (mut names, mut numbers) = (NamesInUse::default(), NamesInUse::default());
    for child in &element.children {
        if child.name != "validValue" {
            attributes::unknown_element(child, element, problems);
            continue;
        }
        let value = valid_value(child, sent.as_ref(), problems);
        let mut is_new = true;
        // Also done for invalid elements, so that one pass reports every problem.
        if let Some(name) = (Attributes { element: child }).value("name") {
            is_new &= names.add("value", name, &child.position, problems);
        }
        if let Some(value) = &value {
            let number = value.value.to_string();
            is_new &= numbers.add("value", &number, &child.position, problems);
        }
        values.extend(value.filter(|_| is_new));
    }
    let presence = attributes.presence(problems).unwrap_or(Presence::Required);
    let null = sent?.null;
    let (simple, encoding_type) = encoding?;
    Some(Enum::new(
        simple.primitive,
        encoding_type,
        null,
        presence,
        values,
    ))
}

/// Encoding of the values of an enumeration.
struct Sent<'kind> {
    simple: &'kind Simple,
    null: Scalar,
}

fn can_be_enumerated(
    primitive: Primitive,
    attributes: &Attributes<'_>,
    problems: &mut Problems,
) -> bool {
    let can = primitive.is_integer() || primitive == Primitive::Char;
    if !can {
        let problem = Problem::WrongEncoding {
            what: "an enumeration",
            found: primitive.name().to_owned(),
            expected: "char or an integer",
        };
        attributes.at("encodingType", problems, problem);
    }
    can
}

fn null_value(
    element: &Element,
    attributes: &Attributes<'_>,
    simple: &Simple,
    problems: &mut Problems,
) -> Scalar {
    let Some(attribute) = element.attribute("nullValue") else {
        return simple.null;
    };
    Scalar::parse(&attribute.value, simple.primitive).unwrap_or_else(|| {
        let expected = format!("a value of {}", simple.primitive);
        attributes.bad("nullValue", &expected, problems);
        simple.null
    })
}

/// Reads a value; returns `None` if its encoding is unknown.
fn valid_value(
    element: &Element,
    sent: Option<&Sent<'_>>,
    problems: &mut Problems,
) -> Option<ValidValue> {
    let attributes = Attributes::of(element, &[], problems);
    let name = attributes.name(problems).unwrap_or(NAMELESS);
    let common = attributes.common(problems);
    let &Sent { simple, null } = sent?;
    let Some(Scalar::Integer(value)) = Scalar::parse(&element.text, simple.primitive) else {
        let problem = Problem::BadValue {
            attribute: name.to_owned(),
            value: element.text.trim().to_owned(),
            expected: format!("a value of {}", simple.primitive),
        };
        problems.add(&element.position, problem);
        return None;
    };
    if null == Scalar::Integer(value) {
        let name = name.to_owned();
        problems.add(&element.position, Problem::ValueIsNull { name, value });
    } else if let (Scalar::Integer(min), Scalar::Integer(max)) = (simple.min, simple.max)
        && !(min..=max).contains(&value)
    {
        let problem = Problem::ValueOutside {
            name: name.to_owned(),
            value,
            min: min.to_string(),
            max: max.to_string(),
        };
        problems.add(&element.position, problem);
    }
    Some(ValidValue {
        name: name.to_owned(),
        value,
        description: common.description,
        since: common.since,
        deprecated: common.deprecated,
        position: element.position.clone(),
    })
}

pub(super) fn set(
    element: &Element,
    attributes: &Attributes<'_>,
    types: &mut Types<'_>,
    problems: &mut Problems,
) -> Option<Set> {
    let encoding = encoding(element, attributes, types, problems)
        .map(|(simple, encoding_type)| (simple.primitive, encoding_type));
    let primitive = encoding.as_ref().map(|(primitive, _)| *primitive);
    if let Some(primitive) = primitive.filter(|primitive| !primitive.is_unsigned()) {
        let problem = Problem::WrongEncoding {
            what: "a set",
            found: primitive.name().to_owned(),
            expected: "an unsigned integer",
        };
        attributes.at("encodingType", problems, problem);
    }
    let mut choices = Vec::new();
    let mut names = NamesInUse::default();
    let mut bits: HashMap<u8, String> = HashMap::new();
    for child in &element.children {
        if child.name != "choice" {
            attributes::unknown_element(child, element, problems);
            continue;
        }
        let choice = choice(child, primitive, problems);
        // Also done for invalid elements, so that one pass reports every problem.
        let name = Attributes { element: child }.value("name");
        let is_new = name.is_none_or(|name| names.add("choice", name, &child.position, problems));
        let Some(choice) = choice.filter(|_| is_new) else {
            continue;
        };
        if choices.len() == MAX_CHOICES {
            problems.add(&child.position, Problem::TooManyChoices);
            return None;
        }
        let name = choice.name.clone();
        if let Some(other) = bits.insert(choice.bit, name.clone()) {
            problems.add(&child.position, Problem::SameBit { name, other });
        }
        choices.push(choice);
    }
    let (encoding, encoding_type) = encoding?;
    Some(Set {
        encoding,
        encoding_type,
        choices,
    })
}

fn choice(
    element: &Element,
    encoding: Option<Primitive>,
    problems: &mut Problems,
) -> Option<Choice> {
    let attributes = Attributes::of(element, &[], problems);
    let name = attributes.name(problems).unwrap_or(NAMELESS);
    let common = attributes.common(problems);
    // No primitive has more than 64 bits.
    let bits = encoding.map_or(64, |encoding| encoding.size() * 8);
    let bit = element.text.trim().parse::<u32>().ok();
    let Some(bit) = bit.filter(|bit| *bit < bits || encoding.is_some()) else {
        let problem = Problem::BadValue {
            attribute: name.to_owned(),
            value: element.text.trim().to_owned(),
            expected: format!("the number of a bit, from 0 to {}", bits - 1),
        };
        problems.add(&element.position, problem);
        return None;
    };
    if let Some(encoding) = encoding.filter(|_| bit >= bits) {
        let problem = Problem::NoSuchBit {
            name: name.to_owned(),
            bit,
            encoding,
            bits,
        };
        problems.add(&element.position, problem);
        return None;
    }
    Some(Choice {
        name: name.to_owned(),
        // Less than 64.
        bit: bit as u8,
        description: common.description,
        since: common.since,
        deprecated: common.deprecated,
        position: element.position.clone(),
    })
}

/// Resolves `encodingType`: a primitive, or a type that is one, together with its name.
fn encoding(
    element: &Element,
    attributes: &Attributes<'_>,
    types: &mut Types<'_>,
    problems: &mut Problems,
) -> Option<(Simple, Option<String>)> {
    let name = attributes.required("encodingType", problems)?;
    if let Some(primitive) = Primitive::named(name) {
        return Some((Simple::plain(primitive), None));
    }
    let kind = types.find(name, &element.position, problems)?;
    match &kind.kind {
        TypeKind::Simple(simple) if !simple.is_array => {
            Some((simple.clone(), Some(name.to_owned())))
        }
        _ => {
            let problem = wrong_kind(&kind, "a single value");
            attributes.at("encodingType", problems, problem);
            None
        }
    }
}
