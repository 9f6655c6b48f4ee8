// SPDX-License-Identifier: Apache-2.0
//! Reads `<type>`.

use super::attributes::Attributes;
use super::types::Types;
use crate::charset::Charset;
use crate::model::{Constant, Presence, Primitive, Scalar, Simple, ValueRef};
use crate::problem::{Problem, Problems};
use crate::xml::Element;

pub(super) fn simple(
    element: &Element,
    attributes: &Attributes<'_>,
    types: &mut Types<'_>,
    problems: &mut Problems,
) -> Option<Simple> {
    let primitive = primitive(attributes, problems);
    let said = attributes.presence(problems);
    let presence = said.unwrap_or(Presence::Required);
    let length = attributes.number("length", problems);
    let value_ref = attributes.value_ref(problems);
    // The check is skipped if the presence is invalid.
    if said.is_some() == attributes.value("presence").is_some() {
        if attributes.value("nullValue").is_some() && presence != Presence::Optional {
            attributes.at("nullValue", problems, Problem::NullNotOptional);
        }
        if value_ref.is_some() && presence != Presence::Constant {
            attributes.at("valueRef", problems, Problem::ValueRefNotConstant);
        }
    }
    let Some(primitive) = primitive else {
        if presence == Presence::Constant {
            constant_of_unknown(element, attributes, value_ref.as_ref(), types, problems);
        }
        return None;
    };
    let mut simple = Simple::plain(primitive);
    simple.presence = presence;
    if let Some(length) = length {
        simple.length = length;
        simple.is_array = length != 1;
    }
    if let Some(encoding) = attributes.text("characterEncoding") {
        if !encoding.is_empty() && Charset::named(&encoding).is_none() {
            let problem = Problem::UnknownCharset(encoding.clone());
            attributes.at("characterEncoding", problems, problem);
        }
        simple.character_encoding = Some(encoding).filter(|encoding| !encoding.is_empty());
    }
    let value = |name, problems: &mut Problems| {
        let text = &element.attribute(name)?.value;
        let value = Scalar::parse(text, primitive);
        if value.is_none() {
            attributes.bad(name, &format!("a value of {primitive}"), problems);
        }
        value
    };
    if let Some(min) = value("minValue", problems) {
        (simple.min, simple.explicit.min) = (min, true);
    }
    if let Some(max) = value("maxValue", problems) {
        (simple.max, simple.explicit.max) = (max, true);
    }
    if let Some(null) = value("nullValue", problems) {
        (simple.null, simple.explicit.null) = (null, true);
    }
    simple.value_ref = value_ref;
    if simple.presence == Presence::Constant {
        constant(element, attributes, &mut simple, types, problems);
        dubious(attributes, &simple, problems);
    }
    Some(simple)
}

fn primitive(attributes: &Attributes<'_>, problems: &mut Problems) -> Option<Primitive> {
    let primitive = Primitive::named(attributes.required("primitiveType", problems)?);
    if primitive.is_none() {
        attributes.bad(
            "primitiveType",
            "char, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float or double",
            problems,
        );
    }
    primitive
}

/// Checks the constant of an unknown type: whether it has a value.
fn constant_of_unknown(
    element: &Element,
    attributes: &Attributes<'_>,
    value_ref: Option<&ValueRef>,
    types: &mut Types<'_>,
    problems: &mut Problems,
) {
    if let Some(value_ref) = value_ref {
        types.referenced(value_ref, &element.position, problems);
    } else if attributes.value("valueRef").is_none() && element.text.is_empty() {
        problems.add(&element.position, Problem::NoConstant);
    }
}

fn constant(
    element: &Element,
    attributes: &Attributes<'_>,
    simple: &mut Simple,
    types: &mut Types<'_>,
    problems: &mut Problems,
) {
    if let Some(value_ref) = &simple.value_ref {
        let Some((encoding, constant)) = types.referenced(value_ref, &element.position, problems)
        else {
            return;
        };
        if encoding == simple.primitive {
            simple.constant = Some(constant);
        } else {
            let problem = Problem::ValueRefMismatch {
                enumeration: value_ref.enumeration.clone(),
                found: encoding,
                name: attributes.text("name").unwrap_or_default(),
                expected: simple.primitive.name().to_owned(),
            };
            attributes.at("valueRef", problems, problem);
        }
    } else if attributes.value("valueRef").is_some() {
        // The invalid length was already reported.
    } else if simple.primitive == Primitive::Char {
        characters(element, attributes, simple, problems);
    } else if element.text.trim().is_empty() {
        problems.add(&element.position, Problem::NoConstant);
    } else {
        let value = Scalar::parse(&element.text, simple.primitive);
        if value.is_none() {
            let problem = Problem::BadValue {
                attribute: "the constant".to_owned(),
                value: element.text.trim().to_owned(),
                expected: format!("a value of {}", simple.primitive),
            };
            problems.add(&element.position, problem);
        }
        simple.constant = value.map(Constant::Scalar);
    }
}

/// Reports a constant that violates the limits of its type.
fn dubious(attributes: &Attributes<'_>, simple: &Simple, problems: &mut Problems) {
    let Some(Constant::Scalar(value)) = simple.constant else {
        return;
    };
    let is_below = simple.explicit.min && is_less(value, simple.min);
    if is_below || (simple.explicit.max && is_less(simple.max, value)) {
        let problem = Problem::ConstantOutside {
            value: value.to_string(),
            min: simple.min.to_string(),
            max: simple.max.to_string(),
        };
        problems.add(&attributes.element.position, problem);
    }
    if simple.length > 1 {
        let length = simple.length;
        attributes.at("length", problems, Problem::ConstantOfMany { length });
    }
}

fn is_less(one: Scalar, other: Scalar) -> bool {
    match (one, other) {
        (Scalar::Integer(one), Scalar::Integer(other)) => one < other,
        (Scalar::Real(one), Scalar::Real(other)) => one < other,
        _ => false,
    }
}

/// Reads one character, or a text that makes the type an array of its length.
fn characters(
    element: &Element,
    attributes: &Attributes<'_>,
    simple: &mut Simple,
    problems: &mut Problems,
) {
    let text = match element.text.trim() {
        "" => element.text.as_str(),
        trimmed => trimmed,
    };
    if text.is_empty() {
        problems.add(&element.position, Problem::NoConstant);
        return;
    }
    let Some(mut bytes) = encode(text, simple.character_encoding.as_deref()) else {
        let problem = Problem::BadValue {
            attribute: "the constant".to_owned(),
            value: text.to_owned(),
            expected: format!(
                "a text in {}",
                simple.character_encoding.as_deref().unwrap_or("US-ASCII")
            ),
        };
        problems.add(&element.position, problem);
        return;
    };
    // An invalid length was already reported, so the length of the text is not checked.
    let length = attributes.value("length");
    let given = length.is_some_and(|length| length.parse::<u32>().is_ok());
    if !given {
        simple.length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        simple.is_array = simple.length != 1;
    } else if bytes.len() > simple.length as usize {
        let problem = Problem::ConstantTooLong {
            found: bytes.len(),
            length: simple.length,
        };
        attributes.at("length", problems, problem);
        return;
    }
    if let ([byte], false) = (bytes.as_slice(), simple.is_array) {
        simple.constant = Some(Constant::Scalar(Scalar::Integer((*byte).into())));
        return;
    }
    if simple.length > LONGEST_CONSTANT {
        problems.add(&element.position, Problem::LongConstant(LONGEST_CONSTANT));
        return;
    }
    bytes.resize(simple.length as usize, 0);
    simple.constant = Some(Constant::Bytes(bytes.into()));
}

/// Maximum length of a constant. Constants are padded with zeros, so the length must be bounded.
const LONGEST_CONSTANT: u32 = 1_024;

fn encode(text: &str, encoding: Option<&str>) -> Option<Vec<u8>> {
    match encoding.and_then(Charset::named) {
        Some(Charset::Utf8) => Some(text.as_bytes().to_vec()),
        Some(Charset::Latin1) => text
            .chars()
            .map(|character| u8::try_from(character).ok())
            .collect(),
        _ => text.is_ascii().then(|| text.as_bytes().to_vec()),
    }
}
