// SPDX-License-Identifier: Apache-2.0
//! Rust types of values, and the code that prints them.

use taran_sbe::model::{
    Constant, Field, Member, Presence, Primitive, Scalar, Simple, Type, TypeKind,
};

/// Field or member of a composite.
pub(super) struct Item<'a> {
    pub(super) name: &'a str,
    pub(super) kind: &'a Type,
    pub(super) presence: Presence,
    pub(super) constant: Option<&'a Constant>,
    pub(super) since: u32,
    /// Rust type, if the schema type has one.
    pub(super) path: String,
}

impl<'a> Item<'a> {
    pub(super) fn field(field: &'a Field) -> Self {
        Self {
            name: &field.name,
            kind: &field.kind,
            presence: field.presence,
            constant: field.constant.as_ref(),
            since: field.since,
            path: field.kind.name.clone(),
        }
    }

    /// Returns a member of the composite with this path.
    pub(super) fn member(member: &'a Member, composite: &str) -> Self {
        let constant = match &member.kind.kind {
            TypeKind::Simple(simple) => simple.constant.as_ref(),
            _ => None,
        };
        let name = &member.kind.name;
        Self {
            name: &member.name,
            kind: &member.kind,
            presence: member.kind.presence(),
            constant,
            since: member.since,
            path: if member.is_ref {
                name.clone()
            } else {
                format!("{composite}{name}")
            },
        }
    }

    pub(super) fn method(&self) -> String {
        self.name.to_lowercase()
    }

    pub(super) fn is_constant(&self) -> bool {
        self.presence == Presence::Constant
    }

    /// Returns true if the type is an `Option` because the value is optional.
    pub(super) fn is_nullable(&self) -> bool {
        let can = matches!(self.kind.kind, TypeKind::Simple(_) | TypeKind::Enum(_));
        can && self.presence == Presence::Optional
    }
}

/// Returns the Rust type as documented. Independent of the generator, so that errors there are detected.
pub(super) fn rust(primitive: Primitive) -> &'static str {
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

pub(super) fn is_text(simple: &Simple) -> bool {
    let has_encoding = simple.character_encoding.is_some();
    simple.is_array
        && (simple.primitive == Primitive::Char
            || simple.primitive == Primitive::Uint8 && has_encoding)
}

/// Returns a literal of the value.
pub(super) fn literal(scalar: Scalar, primitive: Primitive) -> String {
    let kind = rust(primitive);
    match scalar {
        Scalar::Real(value) if value.is_nan() => format!("{kind}::NAN"),
        Scalar::Real(value) => format!("{value:?}_{kind}"),
        Scalar::Integer(value) => format!("({value}_{kind})"),
    }
}

/// Returns the condition that the number `value` is null.
pub(super) fn is_null(simple: &Simple) -> String {
    match simple.null {
        Scalar::Real(null) if null.is_nan() => "value.is_nan()".to_owned(),
        null => format!("value == {}", literal(null, simple.primitive)),
    }
}

/// Returns the condition that all elements of the array or text `value` are null.
pub(super) fn is_null_array(simple: &Simple) -> String {
    if is_text(simple) {
        let null = literal(simple.null, simple.primitive);
        return format!("is_null_text(&value, {}, {null})", simple.length);
    }
    let is_null = is_null(simple);
    format!("value.iter().all(|value| {{ let value = *value; {is_null} }})")
}

/// Returns the statement that prints `value`, which is not null as a whole.
pub(super) fn show(item: &Item<'_>) -> String {
    match &item.kind.kind {
        TypeKind::Simple(simple) if is_text(simple) => "out.text(&value);".to_owned(),
        TypeKind::Simple(simple) if simple.is_array => {
            let is_null = if item.is_nullable() {
                is_null(simple)
            } else {
                "false".to_owned()
            };
            format!("out.numbers(&value[..], |value| {is_null});")
        }
        TypeKind::Simple(simple) if simple.primitive == Primitive::Char => {
            "out.character(value);".to_owned()
        }
        TypeKind::Simple(_) => "out.number(value);".to_owned(),
        TypeKind::Enum(kind) => {
            let names: Vec<_> = kind
                .values
                .iter()
                .map(|value| (value.value, value.name.as_str()))
                .collect();
            let null = kind.null.as_integer().unwrap_or_default();
            format!("out.named(value.raw().into(), &{names:?}, {null});")
        }
        TypeKind::Set(set) => {
            let names: Vec<_> = set
                .choices
                .iter()
                .map(|choice| (choice.bit, choice.name.as_str()))
                .collect();
            format!("out.flags(value.raw().into(), &{names:?});")
        }
        TypeKind::Composite(_) => String::new(),
    }
}

/// Returns a constant as JSON.
pub(super) fn constant(item: &Item<'_>) -> String {
    match (item.constant, &item.kind.kind) {
        (Some(Constant::Scalar(Scalar::Integer(raw))), TypeKind::Enum(kind)) => {
            let named = kind.values.iter().find(|value| value.value == *raw);
            format!("{:?}", named.map(|value| &value.name).unwrap())
        }
        (Some(Constant::Scalar(Scalar::Integer(character))), TypeKind::Simple(simple))
            if simple.primitive == Primitive::Char =>
        {
            format!("\"\\u{character:04x}\"")
        }
        (Some(Constant::Scalar(Scalar::Real(value))), _) => format!("{value:?}"),
        (Some(Constant::Scalar(Scalar::Integer(value))), _) => value.to_string(),
        (Some(Constant::Bytes(bytes)), _) => format!("{:?}", str::from_utf8(bytes).unwrap()),
        (None, _) => panic!("{} has no value", item.name),
    }
}
