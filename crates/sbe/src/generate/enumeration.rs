// SPDX-License-Identifier: Apache-2.0
//! Generation of enumerations.

use super::code::{Code, named, prose};
use super::number;
use super::type_names::TypeNames;
use super::value::deprecated;
use crate::model::{Enum, Scalar, Type};

pub(super) fn write(
    code: &mut Code,
    kind: &Type,
    enumeration: &Enum,
    name: &str,
    names: &TypeNames<'_>,
) {
    let raw = number::rust_type(enumeration.encoding);
    let null = match enumeration.null {
        Scalar::Integer(null) => null,
        Scalar::Real(_) => 0,
    };
    let values: Vec<_> = enumeration
        .values
        .iter()
        .map(|value| (names.part(name, &value.name), value))
        .collect();
    super::composite::documented(
        code,
        kind,
        &format!("The enumeration {}.", named(&kind.name)),
    );
    code.line("#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]");
    code.block(format!("pub enum {name} {{"), |code| {
        for (variant, value) in &values {
            match &value.description {
                Some(text) => code.doc(&prose(text)),
                None => code.doc(&format!("{}.", named(&value.name))),
            }
            if let Some(version) = value.deprecated {
                deprecated(code, version);
            }
            code.line(format!("{variant},"));
        }
        code.doc("A value without a name in this version of the schema.");
        code.line(format!("Unknown({raw}),"));
    });
    code.blank();
    code.block(format!("impl {name} {{"), |code| {
        code.doc("The null value.");
        code.line(format!("pub const NULL: Self = Self::from_raw({null});"));
        code.blank();
        code.doc("The value encoded as `raw`.");
        code.line("#[inline]");
        code.line("#[must_use]");
        code.function(
            "pub const fn from_raw",
            &[&format!("raw: {raw}")],
            "Self",
            |code| {
                code.block("match raw {", |code| {
                    for (variant, value) in &values {
                        code.line(format!("{} => Self::{variant},", value.value));
                    }
                    code.line("_ => Self::Unknown(raw),");
                });
            },
        );
        code.blank();
        code.doc("The encoding of the value.");
        code.line("#[inline]");
        code.line("#[must_use]");
        code.function("pub const fn raw", &["self"], raw, |code| {
            code.block("match self {", |code| {
                for (variant, value) in &values {
                    code.line(format!("Self::{variant} => {},", value.value));
                }
                code.line("Self::Unknown(raw) => raw,");
            });
        });
    });
    code.blank();
    code.block(format!("impl core::fmt::Display for {name} {{"), |code| {
        let arguments = ["&self", "out: &mut core::fmt::Formatter<'_>"];
        code.function("fn fmt", &arguments, "core::fmt::Result", |code| {
            code.line("core::fmt::Debug::fmt(self, out)");
        });
    });
}
