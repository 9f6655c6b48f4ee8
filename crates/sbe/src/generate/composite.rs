// SPDX-License-Identifier: Apache-2.0
//! Generation of composites and the types nested in them.

use super::code::{Code, named, prose};
use super::type_names::TypeNames;
use super::value::{self, Place, Value};
use super::{enumeration, range, set};
use crate::model::{ByteOrder, Composite, Constant, Member, Presence, Type, TypeKind, ValueRef};

/// Adds the description and the deprecation of a type; `otherwise` is the default description.
pub(super) fn documented(code: &mut Code, kind: &Type, otherwise: &str) {
    match &kind.description {
        Some(text) => code.doc(&prose(text)),
        None => code.doc(otherwise),
    }
    if let Some(version) = kind.deprecated {
        value::deprecated(code, version);
    }
}

/// Generator of the types of a schema, in schema order.
pub(super) struct Types<'a> {
    pub(super) code: &'a mut Code,
    pub(super) order: ByteOrder,
    pub(super) names: &'a TypeNames<'a>,
}

impl Types<'_> {
    /// Writes a type under the Rust name `name`. Simple types need no code.
    pub(super) fn write(&mut self, kind: &Type, name: &str) {
        match &kind.kind {
            TypeKind::Simple(_) => {}
            TypeKind::Enum(kind_of) => {
                self.code.blank();
                enumeration::write(self.code, kind, kind_of, name, self.names);
            }
            TypeKind::Set(kind_of) => {
                self.code.blank();
                set::write(self.code, kind, kind_of, name, self.names);
            }
            TypeKind::Composite(composite) => {
                for member in composite.members.iter().filter(|member| !member.is_ref) {
                    self.write(&member.kind, self.names.inside(name, &member.kind.name));
                }
                self.composite(kind, composite, name);
            }
        }
    }

    fn composite(&mut self, kind: &Type, composite: &Composite, name: &str) {
        let values = values(composite, name, self.names);
        let length = composite.length;
        let order = self.order;
        let code = &mut *self.code;
        let decoder = format!("{name}Decoder");
        code.blank();
        documented(
            code,
            kind,
            &format!("Reads the composite {}.", named(&kind.name)),
        );
        code.line("#[derive(Clone, Copy)]");
        code.block(format!("pub struct {decoder}<'a> {{"), |code| {
            code.line(format!("block: &'a [u8; {length}],"));
        });
        code.blank();
        code.block(format!("impl<'a> {decoder}<'a> {{"), |code| {
            code.doc("The encoded length in bytes.");
            code.line(format!("pub const ENCODED_LENGTH: usize = {length};"));
            range::constants(code, &values);
            code.blank();
            code.doc("Reads from these bytes.");
            code.line("#[inline]");
            code.line("#[must_use]");
            let argument = format!("block: &'a [u8; {length}]");
            code.function("pub const fn wrap", &[&argument], "Self", |code| {
                code.line("Self { block }");
            });
            code.blank();
            code.doc("All its bytes.");
            code.line("#[inline]");
            code.line("#[must_use]");
            let result = format!("&'a [u8; {length}]");
            code.function("pub const fn block_bytes", &["&self"], &result, |code| {
                code.line("self.block");
            });
            for value in values.iter().filter(|value| value::is_shown(value)) {
                code.blank();
                value::getter(code, value, order);
            }
            range::method(code, &values);
        });
        code.blank();
        value::show(code, &decoder, ("", "<'_>"), &kind.name, &values, |_| {});
        encoder(code, kind, name, length, &values, order);
    }
}

fn values<'k>(composite: &'k Composite, name: &str, names: &TypeNames<'_>) -> Vec<Value<'k>> {
    let value = |member: &'k Member| {
        let kind = &*member.kind;
        let path = if member.is_ref {
            names.top(&kind.name)
        } else {
            names.inside(name, &kind.name)
        };
        let (constant, value_ref) = constant(kind);
        Value {
            name: &member.name,
            method: names.part(name, &member.name).to_owned(),
            description: member
                .description
                .as_deref()
                .or(kind.description.as_deref()),
            deprecated: member.deprecated,
            kind,
            path: path.to_owned(),
            presence: kind.presence(),
            constant,
            variant: value::variant(kind, constant, value_ref)
                .map(|variant| names.part(path, variant).to_owned()),
            offset: member.offset,
            place: Place::Fixed,
        }
    };
    composite.members.iter().map(value).collect()
}

fn constant(kind: &Type) -> (Option<&Constant>, Option<&ValueRef>) {
    match &kind.kind {
        TypeKind::Simple(simple) if simple.presence == Presence::Constant => {
            (simple.constant.as_ref(), simple.value_ref.as_ref())
        }
        _ => (None, None),
    }
}

fn encoder(
    code: &mut Code,
    kind: &Type,
    name: &str,
    length: u32,
    values: &[Value<'_>],
    order: ByteOrder,
) {
    let encoder = format!("{name}Encoder");
    code.blank();
    documented(
        code,
        kind,
        &format!("Writes the composite {}.", named(&kind.name)),
    );
    code.block(format!("pub struct {encoder}<'a> {{"), |code| {
        code.line(format!("block: &'a mut [u8; {length}],"));
    });
    code.blank();
    code.block(format!("impl<'a> {encoder}<'a> {{"), |code| {
        code.doc("Writes to these bytes.");
        code.line("#[inline]");
        code.line("#[must_use]");
        let argument = format!("block: &'a mut [u8; {length}]");
        code.function("pub const fn wrap", &[&argument], "Self", |code| {
            code.line("Self { block }");
        });
        code.blank();
        code.doc("All its bytes.");
        code.line("#[inline]");
        let result = format!("&mut [u8; {length}]");
        code.function(
            "pub const fn block_bytes",
            &["&mut self"],
            &result,
            |code| {
                code.line("self.block");
            },
        );
        for value in values {
            if value.presence == Presence::Constant {
                continue;
            }
            code.blank();
            value::setter(code, value, order);
        }
        let blanks: Vec<String> = values.iter().filter_map(value::blank).collect();
        if !blanks.is_empty() {
            code.blank();
            code.doc("Initializes the optional members whose null value is not zero.");
            code.line("#[inline]");
            code.function("pub(super) fn blank", &["&mut self"], "", |code| {
                for blank in blanks {
                    code.line(blank);
                }
            });
        }
    });
}
