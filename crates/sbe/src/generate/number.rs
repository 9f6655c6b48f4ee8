//! Numbers: their Rust types, how they lie in bytes, and how they are written in source.

use crate::model::{ByteOrder, Primitive, Scalar, Slot};

/// The Rust type of a primitive.
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

/// `u32::from_le_bytes`.
pub(super) fn from_bytes(primitive: Primitive, order: ByteOrder) -> String {
    let (kind, end) = (rust_type(primitive), end(order));
    format!("{kind}::from_{end}_bytes")
}

/// `u32::to_le_bytes`.
pub(super) fn to_bytes(primitive: Primitive, order: ByteOrder) -> String {
    let (kind, end) = (rust_type(primitive), end(order));
    format!("{kind}::to_{end}_bytes")
}

/// `to_le_bytes`.
pub(super) fn to_bytes_method(order: ByteOrder) -> String {
    format!("to_{}_bytes", end(order))
}

const fn end(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Little => "le",
        ByteOrder::Big => "be",
    }
}

/// A value as it stands in source.
pub(super) fn literal(value: Scalar, primitive: Primitive) -> String {
    let kind = rust_type(primitive);
    match value {
        Scalar::Integer(value) => value.to_string(),
        Scalar::Real(value) if value.is_nan() => format!("{kind}::NAN"),
        Scalar::Real(value) if value == f64::INFINITY => format!("{kind}::INFINITY"),
        Scalar::Real(value) if value == f64::NEG_INFINITY => format!("{kind}::NEG_INFINITY"),
        // The shortest form that gives the same number again, in the type that it has.
        #[expect(clippy::cast_possible_truncation, reason = "it was read as a float")]
        Scalar::Real(value) if primitive == Primitive::Float => format!("{:?}", value as f32),
        Scalar::Real(value) => format!("{value:?}"),
    }
}

/// Whether a value is all zeros in bytes.
pub(super) fn is_zero(value: Scalar) -> bool {
    match value {
        Scalar::Integer(value) => value == 0,
        Scalar::Real(value) => value.to_bits() == 0,
    }
}

/// Reads a number that frames something: as a `u64`, unless it has a sign.
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

/// Writes a number that frames something; nothing where it is not sent.
pub(super) fn write_slot(slot: &Slot, order: ByteOrder, to: &str, value: &str) -> String {
    if slot.constant.is_some() {
        return String::new();
    }
    let (at, size) = (slot.offset, slot.primitive.size());
    let method = to_bytes_method(order);
    format!("*runtime::part_mut::<{at}, {size}, _>({to}) = {value}.{method}();")
}
