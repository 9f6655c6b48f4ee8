// SPDX-License-Identifier: Apache-2.0
//! Decoding of single values.

use super::reader::Reader;
use super::{DecodeError, Numbers, Value, number, text};
use crate::model::{
    ByteOrder, Constant, Enum, Presence, Primitive, Scalar, Set, Simple, Type, TypeKind,
};

pub(super) fn simple<'data>(
    simple: &'data Simple,
    presence: Presence,
    bytes: &'data [u8],
    order: ByteOrder,
) -> Value<'data> {
    let null = (presence == Presence::Optional).then_some(simple.null);
    let encoding = simple.character_encoding.as_deref().unwrap_or("US-ASCII");
    let character = |byte: &u8| Scalar::Integer((*byte).into());
    if simple.is_text() {
        // As in generated codecs, text is null if each of its bytes is null.
        if null.is_some() && bytes.iter().all(|byte| null == Some(character(byte))) {
            return Value::Null;
        }
        return text::value(text::until_zero(bytes, encoding), encoding);
    }
    if simple.is_array {
        let numbers = Numbers {
            primitive: simple.primitive,
            byte_order: order,
            null,
            bytes,
        };
        // As with text and in generated codecs, an array is null if all of its elements are null.
        if null.is_some() && numbers.iter().all(|number| number == Value::Null) {
            return Value::Null;
        }
        return Value::Numbers(numbers);
    }
    if simple.primitive == Primitive::Char && null != bytes.first().map(character) {
        return text::value(bytes, encoding);
    }
    number::value(bytes, simple.primitive, order, null)
}

pub(super) fn enumeration<'data>(
    enumeration: &'data Enum,
    bytes: &[u8],
    order: ByteOrder,
) -> Value<'data> {
    let found = number::scalar(bytes, enumeration.encoding, order);
    if let Some(value) = named(enumeration, found) {
        return value;
    }
    if found == enumeration.null {
        return Value::Null;
    }
    number::from_scalar(found, enumeration.encoding)
}

/// Returns the names of the choices that are set, and the unnamed bits.
pub(super) fn set<'data>(
    set: &'data Set,
    bytes: &[u8],
    order: ByteOrder,
) -> (Vec<&'data str>, Vec<u8>) {
    let found = number::scalar(bytes, set.encoding, order);
    // Unreachable default: validation guarantees that sets are unsigned.
    let bits = found.as_integer().unwrap_or(0);
    let mut unknown = bits;
    let mut names = Vec::new();
    for choice in &set.choices {
        if bits >> choice.bit & 1 == 1 {
            names.push(choice.name.as_str());
            unknown &= !(1 << choice.bit);
        }
    }
    let unknown = (0..64).filter(|bit| unknown >> bit & 1 == 1).collect();
    (names, unknown)
}

/// Returns the named value of an enumeration that has this encoding.
fn named(enumeration: &Enum, found: Scalar) -> Option<Value<'_>> {
    let value = enumeration.sent_as(found.as_integer()?)?;
    Some(Value::Named(&value.name))
}

impl<'data> Reader<'data> {
    /// Returns the value of a constant, which is not in the message.
    pub(super) fn constant(
        &mut self,
        constant: Option<&'data Constant>,
        kind: &'data Type,
    ) -> Result<Value<'data>, DecodeError> {
        Ok(match (constant, &kind.kind) {
            (Some(Constant::Scalar(value)), TypeKind::Enum(enumeration)) => {
                named(enumeration, *value).unwrap_or(Value::Null)
            }
            (Some(Constant::Scalar(Scalar::Integer(value))), TypeKind::Simple(simple))
                if simple.primitive == Primitive::Char =>
            {
                let character = u8::try_from(*value).map(char::from);
                character.map_or(Value::Null, |character| {
                    Value::Text(character.to_string().into())
                })
            }
            (Some(Constant::Scalar(value)), TypeKind::Simple(simple)) => {
                number::from_scalar(*value, simple.primitive)
            }
            (Some(Constant::Bytes(bytes)), TypeKind::Simple(simple)) => {
                // Constants take no bytes of the message, so their size is charged here.
                self.step(bytes.len() / 64)?;
                let encoding = simple.character_encoding.as_deref().unwrap_or("US-ASCII");
                text::value(text::until_zero(bytes, encoding), encoding)
            }
            // Unreachable: validation rejects constants without a value.
            _ => Value::Null,
        })
    }
}
