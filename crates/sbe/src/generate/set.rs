// SPDX-License-Identifier: Apache-2.0
//! Generation of sets.

use super::code::{Code, named, prose};
use super::number;
use super::type_names::TypeNames;
use super::value::deprecated;
use crate::model::{Set, Type};

pub(super) fn write(code: &mut Code, kind: &Type, set: &Set, name: &str, names: &TypeNames<'_>) {
    let raw = number::rust_type(set.encoding);
    super::composite::documented(code, kind, &format!("The set {}.", named(&kind.name)));
    code.line("#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]");
    code.line(format!("pub struct {name}({raw});"));
    code.blank();
    code.block(format!("impl {name} {{"), |code| {
        code.doc("No flag.");
        code.line("pub const NONE: Self = Self(0);");
        for choice in &set.choices {
            let constant = names.part(name, &choice.name);
            match &choice.description {
                Some(text) => code.doc(&prose(text)),
                None => code.doc(&format!("{}.", named(&choice.name))),
            }
            if let Some(version) = choice.deprecated {
                deprecated(code, version);
            }
            code.line(format!(
                "pub const {constant}: Self = Self(1 << {});",
                choice.bit
            ));
        }
        let mut method = |doc: &str, name: &str, arguments: &[&str], result: &str, body: &str| {
            code.blank();
            code.doc(doc);
            code.line("#[inline]");
            code.line("#[must_use]");
            code.function(&format!("pub const fn {name}"), arguments, result, |code| {
                code.line(body);
            });
        };
        let argument = format!("raw: {raw}");
        method(
            "The choices whose bits are set in `raw`, including unnamed ones.",
            "from_raw",
            &[&argument],
            "Self",
            "Self(raw)",
        );
        method("One bit for each flag.", "raw", &["self"], raw, "self.0");
        let other = ["self", "other: Self"];
        method(
            "Whether all of those flags are set.",
            "contains",
            &other,
            "bool",
            "self.0 & other.0 == other.0",
        );
        method(
            "These flags, and those.",
            "with",
            &other,
            "Self",
            "Self(self.0 | other.0)",
        );
        method(
            "These flags, but none of those.",
            "without",
            &other,
            "Self",
            "Self(self.0 & !other.0)",
        );
        method(
            "Whether no flag is set.",
            "is_empty",
            &["self"],
            "bool",
            "self.0 == 0",
        );
    });
    code.blank();
    code.block(format!("impl core::ops::BitOr for {name} {{"), |code| {
        code.line("type Output = Self;");
        code.blank();
        code.line("#[inline]");
        code.function("fn bitor", &["self", "other: Self"], "Self", |code| {
            code.line("self.with(other)");
        });
    });
    code.blank();
    shown(code, set, name, names);
}

/// Writes the `Debug` and `Display` implementations, which show the names of the choices that are set and the unnamed
/// bits.
fn shown(code: &mut Code, set: &Set, name: &str, names: &TypeNames<'_>) {
    let arguments = ["&self", "out: &mut core::fmt::Formatter<'_>"];
    code.block(format!("impl core::fmt::Debug for {name} {{"), |code| {
        code.function("fn fmt", &arguments, "core::fmt::Result", |code| {
            // A set without choices has no names to show.
            let shown = if set.choices.is_empty() {
                "shown"
            } else {
                "mut shown"
            };
            code.line(format!(
                "let {shown} = runtime::SetDisplay::new(self.0.into(), out);"
            ));
            for choice in &set.choices {
                let constant = names.part(name, &choice.name);
                let arguments = [
                    format!("{:?}", choice.name),
                    format!("Self::{constant}.0.into()"),
                ];
                code.call("shown.flag", &arguments.each_ref().map(String::as_str), ";");
            }
            code.line("shown.finish()");
        });
    });
    code.blank();
    code.block(format!("impl core::fmt::Display for {name} {{"), |code| {
        code.function("fn fmt", &arguments, "core::fmt::Result", |code| {
            code.line("core::fmt::Debug::fmt(self, out)");
        });
    });
}
