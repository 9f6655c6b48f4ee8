// SPDX-License-Identifier: Apache-2.0
//! Generation of encoders of messages and group entries.

use super::block::{DONE, Plan, Tail, TailKind};
use super::code::{Code, named, prose};
use super::{number, value};
use crate::model::{ByteOrder, Data, Presence};

const ERROR: &str = "runtime::EncodeError";

/// Writes the encoder of a block; `more` adds the items specific to messages.
pub(super) fn write(
    code: &mut Code,
    plan: &Plan<'_>,
    order: ByteOrder,
    more: impl FnOnce(&mut Code),
) {
    let name = &plan.encoder;
    structure(code, plan);
    code.blank();
    code.block(format!("impl<'a> {name}<'a> {{"), |code| {
        more(code);
        start(code, plan);
        let blanks: Vec<String> = plan.values.iter().filter_map(value::blank).collect();
        if !blanks.is_empty() {
            code.blank();
            code.line("#[inline]");
            code.function("fn blank", &["&mut self"], "", |code| {
                for blank in blanks {
                    code.line(blank);
                }
            });
        }
    });
    let generics = if plan.has_tails() { "<'a, At>" } else { "<'a>" };
    code.blank();
    code.block(format!("impl{generics} {name}{generics} {{"), |code| {
        code.doc("The bytes of the block.");
        code.line("#[inline]");
        let result = format!("&mut [u8; {}]", plan.length);
        code.function(
            "pub const fn block_bytes",
            &["&mut self"],
            &result,
            |code| {
                code.line("self.block");
            },
        );
        for value in &plan.values {
            if value.presence != Presence::Constant {
                code.blank();
                value::setter(code, value, order);
            }
        }
        if plan.has_tails() {
            code.blank();
            let is_message = plan.parent.is_none();
            writer(
                code,
                if is_message {
                    "&mut self.tail"
                } else {
                    "self.parent.writer()"
                },
            );
            code.blank();
            remaining(
                code,
                if is_message {
                    "self.tail.remaining()"
                } else {
                    "self.parent.remaining()"
                },
            );
            code.blank();
            moved(code, plan);
        }
    });
    for (index, tail) in plan.tails.iter().enumerate() {
        code.blank();
        let at = format!("impl<'a> {name}<'a, at::{}> {{", tail.marker);
        code.block(at, |code| write_tail(code, plan, index, tail, order));
    }
    end(code, plan);
    code.blank();
    let (declared, used) = if plan.has_tails() {
        ("<At>", "<'_, At>")
    } else {
        ("", "<'_>")
    };
    code.block(
        format!("impl{declared} core::fmt::Debug for {name}{used} {{"),
        |code| {
            let arguments = ["&self", "out: &mut core::fmt::Formatter<'_>"];
            code.function("fn fmt", &arguments, "core::fmt::Result", |code| {
                code.line(format!("let mut shown = out.debug_struct({name:?});"));
                code.line("shown.finish_non_exhaustive()");
            });
        },
    );
}

fn structure(code: &mut Code, plan: &Plan<'_>) {
    let name = &plan.encoder;
    let generics = match plan.tails.first() {
        Some(first) => format!("<'a, At = at::{}>", first.marker),
        None => "<'a>".to_owned(),
    };
    if plan.has_tails() || plan.parent.is_none() {
        code.line("#[must_use = \"the message is not complete\"]");
    }
    code.block(format!("pub struct {name}{generics} {{"), |code| {
        code.line(format!("block: &'a mut [u8; {}],", plan.length));
        match &plan.parent {
            None => code.line("tail: runtime::Writer<'a>,"),
            Some(parent) if plan.has_tails() => code.line(format!("parent: {parent},")),
            Some(_) => {}
        }
        if plan.has_tails() {
            code.line("at: core::marker::PhantomData<At>,");
        }
    });
}

/// Writes the method that returns the underlying writer.
pub(super) fn writer(code: &mut Code, path: &str) {
    code.line("#[inline]");
    let result = "&mut runtime::Writer<'a>";
    code.function("const fn writer", &["&mut self"], result, |code| {
        code.line(path);
    });
}

/// Writes the method that returns the remaining capacity.
pub(super) fn remaining(code: &mut Code, path: &str) {
    code.doc("The number of bytes left in the buffer.");
    code.line("#[inline]");
    code.line("#[must_use]");
    code.function("pub const fn remaining", &["&self"], "usize", |code| {
        code.line(path);
    });
}

/// Writes the function that reserves the block.
fn start(code: &mut Code, plan: &Plan<'_>) {
    let is_blank = plan.values.iter().filter_map(value::blank).next().is_none();
    let (argument, writer) = match &plan.parent {
        None => (
            "mut tail: runtime::Writer<'a>".to_owned(),
            "tail".to_owned(),
        ),
        Some(parent) if plan.has_tails() => (
            format!("mut parent: {parent}"),
            "parent.writer()".to_owned(),
        ),
        Some(_) => (
            "writer: &mut runtime::Writer<'a>".to_owned(),
            "writer".to_owned(),
        ),
    };
    code.blank();
    code.line("#[inline]");
    code.function(
        "fn start",
        &[&argument],
        &format!("Result<Self, {ERROR}>"),
        |code| {
            let length = plan.length;
            code.line(format!(
                "let block: &mut [u8; {length}] = {writer}.chunk({:?})?;",
                plan.name
            ));
            if length > 0 {
                code.line(format!("*block = [0; {length}];"));
            }
            let mut fields = vec!["block"];
            match &plan.parent {
                None => fields.push("tail"),
                Some(_) if plan.has_tails() => fields.push("parent"),
                Some(_) => {}
            }
            if plan.has_tails() {
                fields.push("at: core::marker::PhantomData");
            }
            if is_blank {
                code.structure("Ok(Self", &fields, ")");
            } else {
                code.structure("let mut started = Self", &fields, ";");
                code.line("started.blank();");
                code.line("Ok(started)");
            }
        },
    );
}

fn moved(code: &mut Code, plan: &Plan<'_>) {
    code.line("#[inline]");
    let result = format!("{}<'a, Next>", plan.encoder);
    code.function("fn moved<Next>", &["self"], &result, |code| {
        let tail = if plan.parent.is_none() {
            "tail: self.tail"
        } else {
            "parent: self.parent"
        };
        let fields = ["block: self.block", tail, "at: core::marker::PhantomData"];
        code.structure(&plan.encoder, &fields, "");
    });
}

/// Writes the method that writes a group or data element and advances the encoder.
fn write_tail(code: &mut Code, plan: &Plan<'_>, index: usize, tail: &Tail<'_>, order: ByteOrder) {
    match tail.description {
        Some(text) => code.doc(&prose(text)),
        None => code.doc(&format!("Writes {}.", named(tail.name))),
    }
    code.doc("\n# Errors\n\nWhen the buffer is too small, or it is larger than the schema allows.");
    if let Some(version) = tail.deprecated {
        value::deprecated(code, version);
    }
    code.line("#[inline]");
    let name = format!("pub fn {}", tail.method);
    match &tail.kind {
        TailKind::Group(group) => {
            let result = format!("Result<{}<'a>, {ERROR}>", group.encoder);
            code.function(&name, &["self"], &result, |code| {
                code.line(format!("{}::start(self.moved())", group.encoder));
            });
        }
        TailKind::Data(data) => {
            let after = format!("{}<'a, at::{}>", plan.encoder, plan.after(index));
            let arguments = ["mut self", "data: impl AsRef<[u8]>"];
            let result = format!("Result<{after}, {ERROR}>");
            code.function(&name, &arguments, &result, |code| {
                write_data(code, data, order);
                code.line("Ok(self.moved())");
            });
        }
    }
}

fn write_data(code: &mut Code, data: &Data, order: ByteOrder) {
    let encoding = &data.encoding;
    let lead = encoding.start.max(encoding.length.end());
    let (name, max) = (&data.name, encoding.length.max);
    code.line("let data = data.as_ref();");
    code.line(format!(
        "let length = runtime::length(data, {max}, {name:?})?;"
    ));
    code.line(format!(
        "let lead: &mut [u8; {lead}] = self.writer().chunk({name:?})?;"
    ));
    if lead > encoding.length.primitive.size() {
        code.line(format!("*lead = [0; {lead}];"));
    }
    let length = cast("length", encoding.length.primitive);
    code.line(number::write_slot(&encoding.length, order, "lead", &length));
    code.line(format!("self.writer().bytes(data, {name:?})?;"));
}

/// Returns an expression that converts a `u64`, which is known to fit, to the type of a slot.
pub(super) fn cast(value: &str, primitive: crate::model::Primitive) -> String {
    match number::rust_type(primitive) {
        "u64" => value.to_owned(),
        other => format!("({value} as {other})"),
    }
}

/// Writes the methods of the final state.
fn end(code: &mut Code, plan: &Plan<'_>) {
    let name = &plan.encoder;
    let generics = if plan.has_tails() {
        format!("<'a, at::{DONE}>")
    } else {
        "<'a>".to_owned()
    };
    match &plan.parent {
        None => {
            code.blank();
            let elided = generics.replace("'a", "'_");
            code.block(format!("impl {name}{elided} {{"), |code| {
                code.doc(
                    "The length of the message in bytes, including its header if that was written.",
                );
                code.line("#[inline]");

                code.function("pub const fn finish", &["self"], "usize", |code| {
                    code.line("self.tail.written()");
                });
            });
        }
        Some(parent) if plan.has_tails() => {
            code.blank();
            code.block(format!("impl<'a> {name}{generics} {{"), |code| {
                code.doc("Ends the entry and returns to its group.");
                code.line("#[inline]");
                code.function("pub fn done", &["self"], parent, |code| {
                    code.line("self.parent");
                });
            });
        }
        Some(_) => {}
    }
}
