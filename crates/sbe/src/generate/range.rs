// SPDX-License-Identifier: Apache-2.0
//! Generation of value ranges: constants, and a method that checks a block.

use super::code::{Code, named};
use super::value::{Place, Value};
use super::{names, number};
use crate::model::{Presence, Simple, Type, TypeKind};

/// Writes the constants of a decoder for the minimum and maximum values given in the schema.
pub(super) fn constants(code: &mut Code, values: &[Value<'_>]) {
    for value in values {
        let Some(simple) = ranged(value) else {
            continue;
        };
        let (kind, name) = (
            number::rust_type(simple.primitive),
            names::shouted(&value.method),
        );
        for (what, end, limit) in [
            ("least", "MIN", simple.min),
            ("greatest", "MAX", simple.max),
        ] {
            let limit = number::literal(limit, simple.primitive);
            let of = named(value.name);
            code.doc(&format!("The {what} value that {of} should have."));
            code.line(format!("pub const {name}_{end}: {kind} = {limit};"));
        }
    }
}

/// Writes the method that finds a value outside its range, if any value has a range.
pub(super) fn method(code: &mut Code, values: &[Value<'_>]) {
    let checks: Vec<Check> = values.iter().filter_map(Check::of).collect();
    if checks.is_empty() {
        return;
    }
    code.blank();
    code.doc("The first field of the block whose value is outside its range in the schema.");
    code.doc("\nGetters do not check ranges. Null and absent values are in range.");
    code.line("#[must_use]");
    let result = "Option<&'static str>";
    code.function("pub fn out_of_range", &["&self"], result, |code| {
        for check in &checks {
            check.write(code);
        }
        code.line("None");
    });
}

/// Returns the type of a number or array with an explicit range.
fn ranged<'a>(value: &Value<'a>) -> Option<&'a Simple> {
    match &value.kind.kind {
        TypeKind::Simple(simple) if value.presence != Presence::Constant => {
            is_ranged(value.kind).then_some(simple)
        }
        _ => None,
    }
}

/// Returns true if a type, or a type nested in it, has a range.
fn is_ranged(kind: &Type) -> bool {
    match &kind.kind {
        TypeKind::Simple(simple) => {
            let is_given = simple.explicit.min || simple.explicit.max;
            let is_sent = simple.presence != Presence::Constant;
            is_given && is_sent && !simple.is_text()
        }
        TypeKind::Composite(composite) => composite
            .members
            .iter()
            .any(|member| is_ranged(&member.kind)),
        TypeKind::Enum(_) | TypeKind::Set(_) => false,
    }
}

/// Range check of a value.
struct Check<'a> {
    name: &'a str,
    method: &'a str,
    is_option: bool,
    /// Range as source text; empty for composites, whose members have the ranges.
    range: String,
    what: What,
}

enum What {
    Number,
    /// Check of each element of an array, except those equal to the null value.
    Numbers(Option<String>),
    Composite,
}

impl<'a> Check<'a> {
    fn of(value: &'a Value<'a>) -> Option<Self> {
        let mut range = String::new();
        let what = match &value.kind.kind {
            TypeKind::Composite(_) if is_ranged(value.kind) => What::Composite,
            _ => {
                let simple = ranged(value)?;
                let [min, max] =
                    [simple.min, simple.max].map(|end| number::literal(end, simple.primitive));
                range = format!("({min}..={max})");
                let null = value
                    .is_nullable()
                    .then(|| super::value::unequal("*each", simple));
                if simple.is_array {
                    What::Numbers(null)
                } else {
                    What::Number
                }
            }
        };
        Some(Self {
            name: value.name,
            method: &value.method,
            is_option: value.is_nullable() || !matches!(value.place, Place::Fixed),
            range,
            what,
        })
    }

    fn write(&self, code: &mut Code) {
        if self.is_option {
            code.open(format!("if let Some(value) = self.{}() {{", self.method));
        } else {
            code.line(format!("let value = self.{}();", self.method));
        }
        let range = &self.range;
        let found = |code: &mut Code, condition: &str| {
            code.block(format!("if {condition} {{"), |code| {
                code.line(format!("return Some({:?});", self.name));
            });
        };
        match &self.what {
            What::Number => found(code, &format!("!{range}.contains(&value)")),
            What::Numbers(null) => {
                code.block("for each in &value[..] {", |code| {
                    let outside = format!("!{range}.contains(each)");
                    let condition = match null {
                        Some(is_there) => format!("{is_there} && {outside}"),
                        None => outside,
                    };
                    found(code, &condition);
                });
            }
            What::Composite => found(code, "value.out_of_range().is_some()"),
        }
        if self.is_option {
            code.close("}");
        }
    }
}
