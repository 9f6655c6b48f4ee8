//! `<enum>` and `<set>`: values that have names.

use std::collections::HashMap;

use super::attributes::{self, Attributes};
use super::taken::Taken;
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
    let (simple, encoding_type) = encoding(element, attributes, types, problems)?;
    if !simple.primitive.is_integer() && simple.primitive != Primitive::Char {
        let problem = Problem::WrongEncoding {
            what: "an enumeration",
            found: simple.primitive.name().to_owned(),
            expected: "char or an integer",
        };
        attributes.at("encodingType", problems, problem);
        return None;
    }
    let mut null = simple.null;
    if let Some(attribute) = element.attribute("nullValue") {
        match Scalar::parse(&attribute.value, simple.primitive) {
            Some(value) => null = value,
            None => attributes.bad(
                "nullValue",
                &format!("a value of {}", simple.primitive),
                problems,
            ),
        }
    }
    let mut values = Vec::new();
    let (mut names, mut numbers) = (Taken::default(), Taken::default());
    for child in &element.children {
        if child.name != "validValue" {
            attributes::unknown_element(child, element, problems);
            continue;
        }
        let Some(value) = valid_value(child, &simple, null, problems) else {
            continue;
        };
        let (name, number) = (value.name.clone(), value.value.to_string());
        if names.take("value", &name, &child.position, problems)
            && numbers.take("value", &number, &child.position, problems)
        {
            values.push(value);
        }
    }
    let presence = attributes.presence(problems).unwrap_or(Presence::Required);
    Some(Enum::new(
        simple.primitive,
        encoding_type,
        null,
        presence,
        values,
    ))
}

fn valid_value(
    element: &Element,
    simple: &Simple,
    null: Scalar,
    problems: &mut Problems,
) -> Option<ValidValue> {
    let attributes = Attributes::of(element, &[], problems);
    let name = attributes.name(problems)?;
    let common = attributes.common(problems);
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
    let (simple, encoding_type) = encoding(element, attributes, types, problems)?;
    if !simple.primitive.is_unsigned() {
        let problem = Problem::WrongEncoding {
            what: "a set",
            found: simple.primitive.name().to_owned(),
            expected: "an unsigned integer",
        };
        attributes.at("encodingType", problems, problem);
    }
    let mut choices = Vec::new();
    let mut names = Taken::default();
    let mut bits: HashMap<u8, String> = HashMap::new();
    for child in &element.children {
        if child.name != "choice" {
            attributes::unknown_element(child, element, problems);
            continue;
        }
        let Some(choice) = choice(child, simple.primitive, problems) else {
            continue;
        };
        if !names.take("choice", &choice.name, &child.position, problems) {
            continue;
        }
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
    Some(Set {
        encoding: simple.primitive,
        encoding_type,
        choices,
    })
}

fn choice(element: &Element, encoding: Primitive, problems: &mut Problems) -> Option<Choice> {
    let attributes = Attributes::of(element, &[], problems);
    let name = attributes.name(problems)?;
    let common = attributes.common(problems);
    let bits = encoding.size() * 8;
    let Ok(bit) = element.text.trim().parse::<u32>() else {
        let problem = Problem::BadValue {
            attribute: name.to_owned(),
            value: element.text.trim().to_owned(),
            expected: format!("the number of a bit, from 0 to {}", bits - 1),
        };
        problems.add(&element.position, problem);
        return None;
    };
    if bit >= bits {
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
        // There are at most 64.
        bit: bit as u8,
        description: common.description,
        since: common.since,
        deprecated: common.deprecated,
        position: element.position.clone(),
    })
}

/// What `encodingType` names: a primitive, or a type that is one, which then has a name of its own.
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
