//! Single values.

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
        // As generated codecs have it, each byte of it is null then.
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
        // So it is with text, and in generated code: an array is null where all that is in it is.
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

/// The flags that are set: those that have names, and the bits that have none.
pub(super) fn set<'data>(
    set: &'data Set,
    bytes: &[u8],
    order: ByteOrder,
) -> (Vec<&'data str>, Vec<u8>) {
    let found = number::scalar(bytes, set.encoding, order);
    // Sets are unsigned: the schema was held to that.
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

/// The value of an enumeration that has a name.
fn named(enumeration: &Enum, found: Scalar) -> Option<Value<'_>> {
    let value = enumeration.sent_as(found.as_integer()?)?;
    Some(Value::Named(&value.name))
}

impl<'data> Reader<'data> {
    /// What is not sent.
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
                // No message pays for them with its bytes.
                self.step(bytes.len() / 64)?;
                let encoding = simple.character_encoding.as_deref().unwrap_or("US-ASCII");
                text::value(text::until_zero(bytes, encoding), encoding)
            }
            // Schemas whose constants have no value are refused.
            _ => Value::Null,
        })
    }
}
