//! Groups: iterators over their entries, and what writes one entry after the other.

use super::block::{GroupPlan, TailKind};
use super::code::Code;
use super::{decoder, encoder, number};
use crate::model::{ByteOrder, GroupLayout};

/// A group, and those inside of it.
pub(super) fn write(code: &mut Code, plan: &GroupPlan<'_>, is_added: bool, order: ByteOrder) {
    code.blank();
    read(code, plan, is_added, order);
    code.blank();
    code.doc(&format!("Reads an entry of `{}`.", plan.group.name));
    decoder::write(code, &plan.entry, order, |_| {});
    code.blank();
    begin(code, plan, order);
    code.blank();
    code.doc(&format!("Writes an entry of `{}`.", plan.group.name));
    encoder::write(code, &plan.entry, order, |_| {});
    for tail in &plan.entry.tails {
        if let TailKind::Group(group) = &tail.kind {
            write(code, group, tail.since.is_some(), order);
        }
    }
}

/// What the decoder of a group holds besides its entries.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    /// Blocks that take some bytes: they are where the entries end.
    Flat,
    /// Blocks that may take none, and have to be counted.
    Counted,
    /// Blocks with something behind them.
    Deep,
}

impl Shape {
    fn of(plan: &GroupPlan<'_>) -> Self {
        if plan.entry.has_tails() {
            Self::Deep
        } else if plan.entry.fixed > 0 {
            Self::Flat
        } else {
            Self::Counted
        }
    }

    /// The fields of the decoder, and their types.
    fn fields(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Flat => &[
                ("entries", "&'a [u8]"),
                ("block_length", "usize"),
                ("version", "u64"),
            ],
            Self::Counted => &[
                ("entries", "&'a [u8]"),
                ("block_length", "usize"),
                ("version", "u64"),
                ("left", "u64"),
            ],
            Self::Deep => &[
                ("entries", "&'a [u8]"),
                ("block_length", "u64"),
                ("version", "u64"),
                ("left", "u64"),
            ],
        }
    }
}

fn read(code: &mut Code, plan: &GroupPlan<'_>, is_added: bool, order: ByteOrder) {
    let name = &plan.decoder;
    let shape = Shape::of(plan);
    code.doc(&format!(
        "Reads the entries of `{}`, one after the other.",
        plan.group.name
    ));
    code.line("#[derive(Clone, Copy)]");
    code.block(format!("pub struct {name}<'a> {{"), |code| {
        for (field, kind) in shape.fields() {
            code.line(format!("{field}: {kind},"));
        }
    });
    code.blank();
    code.block(format!("impl<'a> {name}<'a> {{"), |code| {
        if is_added {
            code.line("#[inline]");
            code.function("const fn empty", &["version: u64"], "Self", |code| {
                let empty = |(field, _): &(&'static str, _)| match *field {
                    "entries" => "entries: &[]",
                    "block_length" => "block_length: 0",
                    "left" => "left: 0",
                    other => other,
                };
                let fields: Vec<&str> = shape.fields().iter().map(empty).collect();
                code.structure("Self", &fields, "");
            });
            code.blank();
        }
        open(code, plan, shape, order);
    });
    code.blank();
    code.block(format!("impl<'a> Iterator for {name}<'a> {{"), |code| {
        next(code, plan, shape);
    });
    code.blank();
    code.line(format!("impl ExactSizeIterator for {name}<'_> {{}}"));
    code.blank();
    code.line(format!(
        "impl core::iter::FusedIterator for {name}<'_> {{}}"
    ));
    for (what, body) in [
        ("Debug", "out.debug_list().entries(*self).finish()"),
        ("Display", "core::fmt::Debug::fmt(self, out)"),
    ] {
        code.blank();
        code.block(
            format!("impl core::fmt::{what} for {name}<'_> {{"),
            |code| {
                let arguments = ["&self", "out: &mut core::fmt::Formatter<'_>"];
                code.function("fn fmt", &arguments, "core::fmt::Result", |code| {
                    code.line(body);
                });
            },
        );
    }
}

/// The function that reads the dimensions, and finds the end of the entries.
fn open(code: &mut Code, plan: &GroupPlan<'_>, shape: Shape, order: ByteOrder) {
    let tail = "tail: &mut runtime::Tail<'a>";
    code.line("#[inline]");
    if shape == Shape::Deep {
        let result = "Result<(u64, u64), runtime::DecodeError>";
        code.function("fn dimensions", &[tail], result, |code| {
            dimensions(code, plan, order);
            code.line("Ok((left, block_length))");
        });
        code.blank();
        code.line("#[inline]");
    }
    let result = "Result<Self, runtime::DecodeError>";
    code.function("fn read", &[tail, "version: u64"], result, |code| {
        if shape == Shape::Deep {
            code.line("let (left, block_length) = Self::dimensions(tail)?;");
            code.line("let entries = tail.rest();");
            code.line("let mut rest = entries;");
            let entry = &plan.entry.decoder;
            code.block("for _ in 0..left {", |code| {
                code.line(format!(
                    "rest = {entry}::wrap(rest, block_length, version)?.pass()?;"
                ));
            });
            code.line("tail.leave(rest);");
        } else {
            dimensions(code, plan, order);
            let least = plan.entry.fixed.to_string();
            let name = format!("{:?}", plan.group.name);
            let arguments = ["tail", "left", "block_length", &least, &name];
            code.call("let cut = runtime::entries", &arguments, "?;");
            code.line("let (entries, block_length) = cut;");
        }
        let fields: Vec<&str> = shape.fields().iter().map(|(field, _)| *field).collect();
        code.structure("Ok(Self", &fields, ")");
    });
}

fn next(code: &mut Code, plan: &GroupPlan<'_>, shape: Shape) {
    let entry = &plan.entry.decoder;
    code.line(format!("type Item = {entry}<'a>;"));
    code.blank();
    code.line("#[inline]");
    code.function("fn next", &["&mut self"], "Option<Self::Item>", |code| {
        if shape != Shape::Flat {
            code.line("self.left = self.left.checked_sub(1)?;");
        }
        if shape == Shape::Deep {
            code.line(format!(
                "let entry = {entry}::wrap(self.entries, self.block_length, self.version);"
            ));
            code.line("let entry = entry.ok()?;");
            code.line("self.entries = entry.pass().ok()?;");
            code.line("Some(entry)");
        } else {
            code.line("let (entry, rest) = self.entries.split_at_checked(self.block_length)?;");
            code.line("self.entries = rest;");
            let added = plan.entry.is_added_to();
            let rest = if added { "added" } else { "_" };
            code.line(format!("let (block, {rest}) = entry.split_first_chunk()?;"));
            let mut fields = vec!["block", "added", "version: self.version"];
            fields.retain(|field| *field != "added" || added);
            code.structure(&format!("Some({entry}"), &fields, ")");
        }
    });
    code.blank();
    code.line("#[inline]");
    code.function(
        "fn size_hint",
        &["&self"],
        "(usize, Option<usize>)",
        |code| {
            if shape == Shape::Flat {
                code.line("let left = self.entries.len().checked_div(self.block_length);");
                code.line("(left.unwrap_or(0), left.or(Some(0)))");
            } else {
                code.line("let left = usize::try_from(self.left).ok();");
                code.line("(left.unwrap_or(usize::MAX), left)");
            }
        },
    );
}

fn dimensions(code: &mut Code, plan: &GroupPlan<'_>, order: ByteOrder) {
    let layout = &plan.group.dimensions;
    let name = format!("{:?}", plan.group.name);
    code.line(format!(
        "let dimensions: &[u8; {}] = tail.chunk({name})?;",
        layout.length
    ));
    let block_length = number::read_slot(&layout.block_length, order, "dimensions");
    code.line(format!("let block_length = {block_length};"));
    let count = number::read_slot(&layout.count, order, "dimensions");
    code.line(format!("let left = {count};"));
    if !layout.count.primitive.is_unsigned() {
        // Below zero is more than any group may have.
        code.line("let left = u64::try_from(left).unwrap_or(u64::MAX);");
    }
    let limits = format!("({}, {})", layout.min_count, layout.count.max);
    // Blocks that take some bytes are held to that where they are read.
    let least = if plan.entry.fixed > 0 {
        "1"
    } else {
        "block_length"
    };
    let arguments = ["left", &limits, least, "*tail", &name];
    code.call("let left = runtime::count", &arguments, "?;");
}

fn begin(code: &mut Code, plan: &GroupPlan<'_>, order: ByteOrder) {
    let name = &plan.encoder;
    let layout = &plan.group.dimensions;
    code.doc(&format!(
        "Writes the entries of `{}`, one after the other.",
        plan.group.name
    ));
    code.line("#[must_use = \"the group ends with `done`\"]");
    code.block(format!("pub struct {name}<'a> {{"), |code| {
        code.line(format!("dimensions: &'a mut [u8; {}],", layout.length));
        code.line("count: u64,");
        code.line(format!("parent: {},", plan.parent));
    });
    code.blank();
    code.block(format!("impl<'a> {name}<'a> {{"), |code| {
        start(code, plan, layout, order);
        code.blank();
        entry(code, plan, layout);
        if plan.entry.has_tails() {
            code.blank();
            encoder::writer(code, "self.parent.writer()");
        }
        code.blank();
        encoder::remaining(code, "self.parent.remaining()");
        code.blank();
        done(code, plan, layout, order);
    });
    code.blank();
    code.block(format!("impl core::fmt::Debug for {name}<'_> {{"), |code| {
        let arguments = ["&self", "out: &mut core::fmt::Formatter<'_>"];
        code.function("fn fmt", &arguments, "core::fmt::Result", |code| {
            code.line(format!("let mut shown = out.debug_struct({name:?});"));
            code.line("shown.field(\"count\", &self.count);");
            code.line("shown.finish_non_exhaustive()");
        });
    });
}

fn start(code: &mut Code, plan: &GroupPlan<'_>, layout: &GroupLayout, order: ByteOrder) {
    let group = plan.group;
    let argument = format!("mut parent: {}", plan.parent);
    code.line("#[inline]");
    code.function(
        "fn start",
        &[&argument],
        "Result<Self, runtime::EncodeError>",
        |code| {
            let length = layout.length;

            code.line(format!(
                "let dimensions: &mut [u8; {length}] = parent.writer().chunk({:?})?;",
                group.name
            ));
            code.line(format!("*dimensions = [0; {length}];"));
            let mut slot = |slot, value: u64| {
                code.line(number::write_slot(
                    slot,
                    order,
                    "dimensions",
                    &typed(value, slot),
                ));
            };
            slot(&layout.block_length, group.block.length.into());
            if let Some(groups) = &layout.groups {
                slot(groups, group.block.groups.len() as u64);
            }
            if let Some(data) = &layout.data {
                slot(data, group.block.data.len() as u64);
            }
            code.structure("Ok(Self", &["dimensions", "count: 0", "parent"], ")");
        },
    );
}

/// A number of the type of a slot.
pub(super) fn typed(value: u64, slot: &crate::model::Slot) -> String {
    format!("{value}_{}", number::rust_type(slot.primitive))
}

fn entry(code: &mut Code, plan: &GroupPlan<'_>, layout: &GroupLayout) {
    let is_flat = !plan.entry.has_tails();
    let entry = &plan.entry.encoder;
    code.doc("Writes the next entry.");
    if !is_flat {
        code.doc(
            "\nThe entry gives the group back when it is done; an error does not, see `remaining`.",
        );
    }
    code.doc(
        "\n# Errors\n\nWhen the buffer is too small, or the group has as many entries as it can.",
    );
    code.line("#[inline]");
    let this = if is_flat { "&mut self" } else { "mut self" };
    let result = format!("Result<{entry}<'a>, runtime::EncodeError>");
    code.function("pub fn entry", &[this], &result, |code| {
        let max = layout.count.max;
        code.block(format!("if self.count == {max} {{"), |code| {
            code.open("return Err(runtime::EncodeError::TooManyEntries {");
            code.line(format!("what: {:?},", plan.group.name));
            code.line(format!("max: {max},"));
            code.close("});");
        });
        if is_flat {
            // An entry that finds no room is none: the group can end without it.
            code.line(format!(
                "let entry = {entry}::start(self.parent.writer())?;"
            ));
            code.line("self.count += 1;");
            code.line("Ok(entry)");
        } else {
            code.line("self.count += 1;");
            code.line(format!("{entry}::start(self)"));
        }
    });
}

fn done(code: &mut Code, plan: &GroupPlan<'_>, layout: &GroupLayout, order: ByteOrder) {
    code.doc("Ends the group, and goes on with what follows it.");
    let count = encoder::cast("self.count", layout.count.primitive);
    let store = number::write_slot(&layout.count, order, "self.dimensions", &count);
    if layout.min_count == 0 {
        code.line("#[inline]");
        code.function("pub fn done", &["self"], &plan.parent, |code| {
            code.line(store);
            code.line("self.parent");
        });
        return;
    }
    code.doc("\n# Errors\n\nWhen it has fewer entries than the schema wants.");
    code.line("#[inline]");
    let result = format!("Result<{}, runtime::EncodeError>", plan.parent);
    code.function("pub fn done", &["self"], &result, |code| {
        let min = layout.min_count;
        code.block(format!("if self.count < {min} {{"), |code| {
            code.open("return Err(runtime::EncodeError::TooFewEntries {");
            code.line(format!("what: {:?},", plan.group.name));
            code.line(format!("min: {min},"));
            code.line("actual: self.count,");
            code.close("});");
        });
        code.line(store);
        code.line("Ok(self.parent)");
    });
}
