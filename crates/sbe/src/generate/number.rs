// SPDX-License-Identifier: Apache-2.0
//! Rust types, byte conversions and literals of numbers.

use crate::model::{ByteOrder, Primitive, Scalar, Slot};

/// Returns the Rust type of a primitive.
pub(super) const fn rust_type(primitive: Primitive) -> &'static str {
    match primitive {
        Primitive::Char | Primitive::Uint8 => "u8",
        Primitive::Int8 => "i8",
        Primitive::Int16 => "i16",
        Primitive::Int32 => "i32",
        Primitive::Int64 => "i64",
        Primitive::Uint16 => "u16",
        Primitive::Uint32 => "u32",
        Primitive::Uint64 => "u64",
        Primitive::Float => "f32",
        Primitive::Double => "f64",
    }
}

/// Returns the path of a function such as `u32::from_le_bytes`.
pub(super) fn from_bytes(primitive: Primitive, order: ByteOrder) -> String {
    let (kind, end) = (rust_type(primitive), end(order));
    format!("{kind}::from_{end}_bytes")
}

/// Returns the path of a function such as `u32::to_le_bytes`.
pub(super) fn to_bytes(primitive: Primitive, order: ByteOrder) -> String {
    let (kind, end) = (rust_type(primitive), end(order));
    format!("{kind}::to_{end}_bytes")
}

/// Returns a method name such as `to_le_bytes`.
pub(super) fn to_bytes_method(order: ByteOrder) -> String {
    format!("to_{}_bytes", end(order))
}

const fn end(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Little => "le",
        ByteOrder::Big => "be",
    }
}

/// Returns a literal of the value.
pub(super) fn literal(value: Scalar, primitive: Primitive) -> String {
    let kind = rust_type(primitive);
    match value {
        Scalar::Integer(value) => value.to_string(),
        Scalar::Real(value) if value.is_nan() => format!("{kind}::NAN"),
        Scalar::Real(value) if value == f64::INFINITY => format!("{kind}::INFINITY"),
        Scalar::Real(value) if value == f64::NEG_INFINITY => format!("{kind}::NEG_INFINITY"),
        // Shortest representation that converts back to the same `f32`.
        #[expect(clippy::cast_possible_truncation, reason = "it was read as a float")]
        Scalar::Real(value) if primitive == Primitive::Float => format!("{:?}", value as f32),
        Scalar::Real(value) => format!("{value:?}"),
    }
}

/// Returns true if all bytes of the value are zero.
pub(super) fn is_zero(value: Scalar) -> bool {
    match value {
        Scalar::Integer(value) => value == 0,
        Scalar::Real(value) => value.to_bits() == 0,
    }
}

/// Returns an expression that reads a slot as a `u64`, or as a signed type if the slot is signed.
pub(super) fn read_slot(slot: &Slot, order: ByteOrder, from: &str) -> String {
    if let Some(constant) = slot.constant {
        return format!("{constant}_u64");
    }
    let (at, size) = (slot.offset, slot.primitive.size());
    let number = format!(
        "{}(*runtime::part::<{at}, {size}, _>({from}))",
        from_bytes(slot.primitive, order)
    );
    match slot.primitive {
        Primitive::Uint64
        | Primitive::Int8
        | Primitive::Int16
        | Primitive::Int32
        | Primitive::Int64 => number,
        _ => format!("u64::from({number})"),
    }
}

/// Writes a slot; does nothing if the slot is constant.
pub(super) fn write_slot(slot: &Slot, order: ByteOrder, to: &str, value: &str) -> String {
    if slot.constant.is_some() {
        return String::new();
    }
    let (at, size) = (slot.offset, slot.primitive.size());
    let method = to_bytes_method(order);
    format!("*runtime::part_mut::<{at}, {size}, _>({to}) = {value}.{method}();")
}
