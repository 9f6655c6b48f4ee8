// SPDX-License-Identifier: Apache-2.0
//! Decoding of numbers.

use super::Value;
use crate::model::{ByteOrder, Primitive, Scalar};

/// Decodes a number; `bytes` has exactly the size of the primitive.
pub(super) fn scalar(bytes: &[u8], primitive: Primitive, order: ByteOrder) -> Scalar {
    let bits = bits(bytes, order);
    match primitive {
        Primitive::Char | Primitive::Uint8 => Scalar::Integer((bits as u8).into()),
        Primitive::Int8 => Scalar::Integer((bits as i8).into()),
        Primitive::Int16 => Scalar::Integer((bits as i16).into()),
        Primitive::Uint16 => Scalar::Integer((bits as u16).into()),
        Primitive::Int32 => Scalar::Integer((bits as i32).into()),
        Primitive::Uint32 => Scalar::Integer((bits as u32).into()),
        Primitive::Int64 => Scalar::Integer((bits as i64).into()),
        Primitive::Uint64 => Scalar::Integer(bits.into()),
        Primitive::Float => Scalar::Real(f32::from_bits(bits as u32).into()),
        Primitive::Double => Scalar::Real(f64::from_bits(bits)),
    }
}

/// Decodes a number to a value, which is `Null` if the number equals `null`.
pub(super) fn value<'data>(
    bytes: &[u8],
    primitive: Primitive,
    order: ByteOrder,
    null: Option<Scalar>,
) -> Value<'data> {
    let scalar = scalar(bytes, primitive, order);
    if null == Some(scalar) {
        return Value::Null;
    }
    from_scalar(scalar, primitive)
}

/// Converts a scalar of a primitive other than `char` to a value.
pub(super) fn from_scalar<'data>(scalar: Scalar, primitive: Primitive) -> Value<'data> {
    match (scalar, primitive) {
        (Scalar::Integer(value), _) => Value::Integer(value),
        // Lossless: the value was widened from an `f32`.
        (Scalar::Real(value), Primitive::Float) => Value::Float(value as f32),
        (Scalar::Real(value), _) => Value::Double(value),
    }
}

fn bits(bytes: &[u8], order: ByteOrder) -> u64 {
    let join = |bits: u64, byte: &u8| bits << 8 | u64::from(*byte);
    match order {
        ByteOrder::Little => bytes.iter().rev().fold(0, join),
        ByteOrder::Big => bytes.iter().fold(0, join),
    }
}
