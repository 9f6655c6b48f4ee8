//! What a value is in Rust, and how it is shown.

use taran_sbe::model::{
    Constant, Field, Member, Presence, Primitive, Scalar, Simple, Type, TypeKind,
};

/// A field, or a member of a composite.
pub(super) struct Item<'a> {
    pub(super) name: &'a str,
    pub(super) kind: &'a Type,
    pub(super) presence: Presence,
    pub(super) constant: Option<&'a Constant>,
    pub(super) since: u32,
    /// Its type in Rust, where it has one of its own.
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

    /// A member of a composite that has that path.
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

    /// Whether it is an `Option` because it may be null.
    pub(super) fn is_nullable(&self) -> bool {
        let can = matches!(self.kind.kind, TypeKind::Simple(_) | TypeKind::Enum(_));
        can && self.presence == Presence::Optional
    }
}

/// Its type in Rust, as the documentation has it: said here once more rather than asked of the generator, so that what is
/// wrong there is not right here.
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

/// A value as it stands in source.
pub(super) fn literal(scalar: Scalar, primitive: Primitive) -> String {
    let kind = rust(primitive);
    match scalar {
        Scalar::Real(value) if value.is_nan() => format!("{kind}::NAN"),
        Scalar::Real(value) => format!("{value:?}_{kind}"),
        Scalar::Integer(value) => format!("({value}_{kind})"),
    }
}

/// Whether the number `value` is null.
pub(super) fn is_null(simple: &Simple) -> String {
    match simple.null {
        Scalar::Real(null) if null.is_nan() => "value.is_nan()".to_owned(),
        null => format!("value == {}", literal(null, simple.primitive)),
    }
}

/// Whether all that is in the array `value`, or in the field that it is a text for, is null.
pub(super) fn is_null_array(simple: &Simple) -> String {
    if is_text(simple) {
        let null = literal(simple.null, simple.primitive);
        return format!("is_null_text(&value, {}, {null})", simple.length);
    }
    let is_null = is_null(simple);
    format!("value.iter().all(|value| {{ let value = *value; {is_null} }})")
}

/// The statement that shows `value`, which is not null as a whole.
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

/// What a constant is in JSON.
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
