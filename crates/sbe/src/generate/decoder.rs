// SPDX-License-Identifier: Apache-2.0
//! Generation of decoders of messages and group entries.

use super::block::{DONE, GroupPlan, Plan, Tail, TailKind};
use super::code::{Code, named, prose};
use super::{group, number, range, value};
use crate::model::{ByteOrder, Data, Primitive};

const ERROR: &str = "runtime::DecodeError";

/// Attribute of the methods that advance a decoder. Inlined, they take a few instructions; as a call three times as
/// many, because the result is large. Without the attribute the compiler emits a call as soon as a program uses a
/// method twice.
pub(super) const ALWAYS: &str = "#[inline(always)]";

/// Writes the decoder of a block; `more` adds the items specific to messages.
pub(super) fn write(
    code: &mut Code,
    plan: &Plan<'_>,
    order: ByteOrder,
    more: impl FnOnce(&mut Code),
) {
    let name = &plan.decoder;
    structure(code, plan);
    code.blank();
    code.block(format!("impl<'a> {name}<'a> {{"), |code| {
        range::constants(code, &plan.values);
        more(code);
        wrap(code, plan);
    });
    let (declared, used) = generics(plan);
    code.blank();
    code.block(format!("impl{declared} {name}{used} {{"), |code| {
        code.doc("The acting version: the schema version of the sender.");
        code.line("#[inline]");
        code.line("#[must_use]");
        code.function("pub const fn acting_version", &["&self"], "u64", |code| {
            code.line("self.version");
        });
        code.blank();
        code.doc("The bytes that the block has in every version.");
        code.line("#[inline]");
        code.line("#[must_use]");
        let result = format!("&'a [u8; {}]", plan.fixed);
        code.function("pub const fn block_bytes", &["&self"], &result, |code| {
            code.line("self.block");
        });
        for value in plan.values.iter().filter(|value| value::is_shown(value)) {
            code.blank();
            value::getter(code, value, order);
        }
        if keeps_rest(plan) {
            code.blank();
            rest(code, "self.rest");
        }
        range::method(code, &plan.values);
        if plan.has_tails() {
            code.blank();
            moved(code, plan);
        }
    });
    for (index, tail) in plan.tails.iter().enumerate() {
        code.blank();
        let at = format!("impl<'a> {name}<'a, at::{}> {{", tail.marker);
        code.block(at, |code| {
            read_tail(code, plan, index, tail, order);
            if let TailKind::Group(group) = &tail.kind
                && group.entry.has_tails()
            {
                code.blank();
                read_each(code, plan, index, tail, group);
            }
        });
    }
    if plan.has_tails() {
        code.blank();
        if plan.parent.is_some() {
            code.block(format!("impl<'a> {name}<'a> {{"), |code| pass(code, plan));
        } else {
            let done = format!("impl<'a> {name}<'a, at::{DONE}> {{");
            code.block(done, |code| rest(code, "self.tail.rest()"));
        }
    }
    code.blank();
    let used = if plan.has_tails() { "<'_, At>" } else { "<'_>" };
    let declared = if plan.has_tails() { "<At>" } else { "" };
    value::show(
        code,
        name,
        (declared, used),
        plan.name,
        &plan.values,
        |code| show_tails(code, plan),
    );
}

fn generics(plan: &Plan<'_>) -> (&'static str, &'static str) {
    if plan.has_tails() {
        ("<'a, At>", "<'a, At>")
    } else {
        ("<'a>", "<'a>")
    }
}

/// Returns true for a message without groups and data, whose decoder would otherwise not know where the message ends.
/// Entries do not need this: their group knows the position of the next entry.
fn keeps_rest(plan: &Plan<'_>) -> bool {
    plan.parent.is_none() && !plan.has_tails()
}

fn rest(code: &mut Code, rest: &str) {
    code.doc("The bytes after the message in the input.");
    code.doc("\nThey begin with the groups and data that a newer schema version appends, whose length is unknown to");
    code.doc("this version.");
    code.line("#[inline]");
    code.line("#[must_use]");
    code.function("pub const fn rest", &["&self"], "&'a [u8]", |code| {
        code.line(rest);
    });
}

fn structure(code: &mut Code, plan: &Plan<'_>) {
    let name = &plan.decoder;
    code.line("#[derive(Clone, Copy)]");
    let generics = match plan.tails.first() {
        Some(first) => format!("<'a, At = at::{}>", first.marker),
        None => "<'a>".to_owned(),
    };
    code.block(format!("pub struct {name}{generics} {{"), |code| {
        code.line(format!("block: &'a [u8; {}],", plan.fixed));
        if plan.is_added_to() {
            code.line("added: &'a [u8],");
        }
        code.line("version: u64,");
        if keeps_rest(plan) {
            code.line("rest: &'a [u8],");
        }
        if plan.has_tails() {
            code.line("tail: runtime::Tail<'a>,");
            code.line("at: core::marker::PhantomData<At>,");
        }
    });
}

fn fields(plan: &Plan<'_>, tail: &'static str) -> Vec<&'static str> {
    let mut fields = vec!["block"];
    if plan.is_added_to() {
        fields.push("added");
    }
    fields.push("version");
    if keeps_rest(plan) {
        fields.push("rest");
    }
    if plan.has_tails() {
        fields.push(tail);
        fields.push("at: core::marker::PhantomData");
    }
    fields
}

fn wrap(code: &mut Code, plan: &Plan<'_>) {
    code.blank();
    code.doc("Reads from bytes that begin with the block, given the block length and the acting version.");
    code.doc("\n# Errors\n\nIf there are fewer bytes than the block length, or the block is shorter than in its first version.");
    code.line(ALWAYS);
    let arguments = ["bytes: &'a [u8]", "block_length: u64", "version: u64"];
    let result = format!("Result<Self, {ERROR}>");
    code.function("pub fn wrap", &arguments, &result, |code| {
        let added = if plan.is_added_to() { "added" } else { "_" };
        let rest = if plan.has_tails() || keeps_rest(plan) {
            "rest"
        } else {
            "_"
        };
        let block = format!("let (block, {added}, {rest}) = runtime::block");
        let name = format!("{:?}", plan.name);
        code.call(&block, &["bytes", "block_length", &name], "?;");
        let fields = fields(plan, "tail: runtime::Tail::new(rest)");
        code.structure("Ok(Self", &fields, ")");
    });
}

fn moved(code: &mut Code, plan: &Plan<'_>) {
    code.line("#[inline]");
    let result = format!("{}<'a, Next>", plan.decoder);
    let arguments = ["&self", "tail: runtime::Tail<'a>"];
    code.function("const fn moved<Next>", &arguments, &result, |code| {
        let mut fields = vec!["block: self.block"];
        if plan.is_added_to() {
            fields.push("added: self.added");
        }
        fields.extend([
            "version: self.version",
            "tail",
            "at: core::marker::PhantomData",
        ]);
        code.structure(&plan.decoder, &fields, "");
    });
}

/// Writes the method that reads a group or data element and advances the decoder.
fn read_tail(code: &mut Code, plan: &Plan<'_>, index: usize, tail: &Tail<'_>, order: ByteOrder) {
    match tail.description {
        Some(text) => code.doc(&prose(text)),
        None => code.doc(&format!("Reads {}.", named(tail.name))),
    }
    if let Some(since) = tail.since {
        let nothing = match tail.kind {
            TailKind::Group(_) => "Empty",
            TailKind::Data(_) => "`None`",
        };
        code.doc(&format!(
            "\n{nothing} in messages of versions before {since}."
        ));
    }
    code.doc("\n# Errors\n\nWhen the message ends before it does, or it is larger than the schema allows.");
    if let Some(version) = tail.deprecated {
        value::deprecated(code, version);
    }
    let after = format!("{}<'a, at::{}>", plan.decoder, plan.after(index));
    let what = match &tail.kind {
        TailKind::Group(group) => format!("{}<'a>", group.decoder),
        TailKind::Data(data) if tail.since.is_some() => format!("Option<{}>", data_type(data)),
        TailKind::Data(data) => data_type(data).to_owned(),
    };
    code.line(ALWAYS);
    let name = format!("pub fn {}", tail.method);
    let result = format!("runtime::Then<{what}, {after}>");
    code.function(&name, &["self"], &result, |code| {
        if let Some(since) = tail.since {
            code.block(
                format!("if self.version < {since} {{"),
                |code| match &tail.kind {
                    TailKind::Group(group) => code.line(format!(
                        "return Ok(({}::empty(self.version), self.moved(self.tail)));",
                        group.decoder
                    )),
                    TailKind::Data(_) => code.line("return Ok((None, self.moved(self.tail)));"),
                },
            );
        }
        code.line("let mut tail = self.tail;");
        match &tail.kind {
            TailKind::Group(group) => {
                let read = format!("let group = {}::read", group.decoder);
                code.call(&read, &["&mut tail", "self.version"], "?;");
                code.line("Ok((group, self.moved(tail)))");
            }
            TailKind::Data(data) => {
                let lead = data.encoding.start.max(data.encoding.length.end());
                code.line(format!(
                    "let lead: &[u8; {lead}] = tail.chunk({:?})?;",
                    data.name
                ));
                let length = number::read_slot(&data.encoding.length, order, "lead");
                code.line(format!("let length = {length};"));
                let max = data.encoding.length.max;
                code.line(format!(
                    "let data = tail.data(length, {max}, {:?})?;",
                    data.name
                ));
                let mut value = match data_type(data) {
                    "&'a [u8]" => "data",
                    _ => "runtime::Text::new(data)",
                }
                .to_owned();
                if tail.since.is_some() {
                    value = format!("Some({value})");
                }
                code.line(format!("Ok(({value}, self.moved(tail)))"));
            }
        }
    });
}

/// Writes the method that reads all entries of a group with a callback. Entries of variable length are otherwise
/// traversed three times: to find the end of the group, to find each next entry, and by the caller.
fn read_each(
    code: &mut Code,
    plan: &Plan<'_>,
    index: usize,
    tail: &Tail<'_>,
    plan_of: &GroupPlan<'_>,
) {
    let entry = &plan_of.entry.decoder;
    code.doc(&format!(
        "Reads all entries of {}: `each` must read an entry to its end.",
        named(tail.name)
    ));
    code.doc("\nThis is faster than the iterator, which must find the end of every entry first.");
    code.doc("\n# Errors\n\nErrors of `each`; also if the message ends too early, or the group is larger than the schema allows.");
    if let Some(version) = tail.deprecated {
        value::deprecated(code, version);
    }
    code.line("#[inline]");
    let name = format!("pub fn {}<E: From<{ERROR}>>", plan_of.each);
    let result = format!("Result<{entry}<'a, at::{DONE}>, E>");
    let mut each = format!("mut each: impl FnMut({entry}<'a>) -> {result}");
    if !code.fits(each.len()) {
        each = format!("mut each: impl FnMut(\n    {entry}<'a>,\n) -> {result}");
    }
    let result = format!("Result<{}<'a, at::{}>, E>", plan.decoder, plan.after(index));
    code.function(&name, &["self", &each], &result, |code| {
        code.line("let mut tail = self.tail;");
        if let Some(since) = tail.since {
            code.block(format!("if self.version < {since} {{"), |code| {
                code.line("return Ok(self.moved(tail));");
            });
        }
        group::opened(code, plan_of, &plan_of.decoder, "&mut tail", "self.version");
        code.line("let mut rest = tail.rest();");
        code.block("for _ in 0..left {", |code| {
            let wrap = format!("let entry = {entry}::wrap");
            code.call(&wrap, &["rest", "block_length", "self.version"], "?;");
            code.line("rest = each(entry)?.tail.rest();");
        });
        code.line("tail.leave(rest);");
        code.line("Ok(self.moved(tail))");
    });
}

fn data_type(data: &Data) -> &'static str {
    if data.encoding.primitive == Primitive::Char || data.encoding.character_encoding.is_some() {
        "runtime::Text<'a>"
    } else {
        "&'a [u8]"
    }
}

/// Writes the method that skips to the end of an entry.
fn pass(code: &mut Code, plan: &Plan<'_>) {
    code.line("#[inline]");
    let result = format!("Result<&'a [u8], {ERROR}>");
    code.function("fn pass", &["self"], &result, |code| {
        code.line("let entry = self;");
        for tail in &plan.tails {
            code.line(format!("let (_, entry) = entry.{}()?;", tail.method));
        }
        code.line("Ok(entry.tail.rest())");
    });
}

/// Writes the part of the `Debug` implementation that shows all groups and data, whatever the state of the decoder.
fn show_tails(code: &mut Code, plan: &Plan<'_>) {
    let Some(first) = plan.tails.first() else {
        return;
    };
    let moved = format!("let here = self.moved::<at::{}>", first.marker);
    code.call(&moved, &["self.tail.from_start()"], ";");
    for (index, tail) in plan.tails.iter().enumerate() {
        let next = if index + 1 < plan.tails.len() {
            "here"
        } else {
            "_"
        };
        code.block(
            format!("let (value, {next}) = match here.{}() {{", tail.method),
            |code| {
                code.line("Ok(read) => read,");
                code.block("Err(error) => {", |code| {
                    code.line(format!("shown.field({:?}, &error);", tail.name));
                    code.line("return shown.finish_non_exhaustive();");
                });
            },
        );
        // A `match` after a `let` ends in a semicolon.
        code.semicolon();
        code.line(format!("shown.field({:?}, &value);", tail.name));
    }
}
