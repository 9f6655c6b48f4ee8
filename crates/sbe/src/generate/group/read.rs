// SPDX-License-Identifier: Apache-2.0
//! Generation of group decoders, which are iterators over entries.

use crate::generate::block::GroupPlan;
use crate::generate::code::{Code, named};
use crate::generate::decoder::ALWAYS;
use crate::generate::number;
use crate::model::ByteOrder;

/// State of a group decoder besides the entry bytes.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    /// Entries are blocks of at least one byte; the byte length gives their number.
    Flat,
    /// Entries are blocks that can be empty, so that they must be counted.
    Counted,
    /// Entries contain groups or data.
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

    /// Returns the fields of the decoder and their types.
    fn fields(self, plan: &GroupPlan<'_>, is_added: bool) -> Vec<(&'static str, String)> {
        let block_length = match self {
            Self::Flat | Self::Counted => "usize",
            Self::Deep => "u64",
        };
        let mut fields = vec![
            ("entries", "&'a [u8]".to_owned()),
            ("block_length", block_length.to_owned()),
            ("version", "u64".to_owned()),
        ];
        if self != Self::Flat {
            fields.push(("left", "u64".to_owned()));
        }
        if plan.extended_dimensions.is_some() {
            let dimensions = format!("&'a [u8; {}]", plan.group.dimensions.length);
            let or_none = if is_added {
                format!("Option<{dimensions}>")
            } else {
                dimensions
            };
            fields.push(("dimensions", or_none));
        }
        fields
    }
}

/// Writes the iterator over the entries.
pub(super) fn entries(code: &mut Code, plan: &GroupPlan<'_>, is_added: bool, order: ByteOrder) {
    let name = &plan.decoder;
    let shape = Shape::of(plan);
    let fields = shape.fields(plan, is_added);
    let of = named(&plan.group.name);
    code.doc(&format!("Reads the entries of {of}, one after the other."));
    code.line("#[derive(Clone, Copy)]");
    code.block(format!("pub struct {name}<'a> {{"), |code| {
        for (field, kind) in &fields {
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
                    "dimensions" => "dimensions: None",
                    other => other,
                };
                let fields: Vec<&str> = fields.iter().map(empty).collect();
                code.structure("Self", &fields, "");
            });
            code.blank();
        }
        open(code, plan, shape, is_added, order);
        if let Some(extended) = &plan.extended_dimensions {
            code.blank();
            dimensions_method(code, extended, is_added);
        }
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

/// Writes the function that reads the dimensions and finds the end of the entries.
fn open(code: &mut Code, plan: &GroupPlan<'_>, shape: Shape, is_added: bool, order: ByteOrder) {
    let tail = "tail: &mut runtime::Tail<'a>";
    if shape == Shape::Deep {
        code.line("#[inline]");
        let (kind, value) = match &plan.extended_dimensions {
            Some(_) => {
                let dimensions = format!("&'a [u8; {}]", plan.group.dimensions.length);
                (
                    format!("(u64, u64, {dimensions})"),
                    "(left, block_length, dimensions)",
                )
            }
            None => ("(u64, u64)".to_owned(), "(left, block_length)"),
        };
        let mut arguments = vec![tail];
        arguments.extend(plan.empty_before.map(|_| "version: u64"));
        let result = format!("Result<{kind}, runtime::DecodeError>");
        code.function("fn open", &arguments, &result, |code| {
            dimensions(code, plan, order);
            code.line(format!("Ok({value})"));
        });
        code.blank();
        code.line("#[inline]");
    } else {
        code.line(ALWAYS);
    }
    let result = "Result<Self, runtime::DecodeError>";
    code.function("fn read", &[tail, "version: u64"], result, |code| {
        if shape == Shape::Deep {
            opened(code, plan, "Self", "tail", "version");
            code.line("let entries = tail.rest();");
            code.line("let mut rest = entries;");
            let entry = &plan.entry.decoder;
            code.block("for _ in 0..left {", |code| {
                let wrap = format!("let entry = {entry}::wrap");
                code.call(&wrap, &["rest", "block_length", "version"], "?;");
                code.line("rest = entry.pass()?;");
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
        let value = |(field, _): &(&'static str, _)| match *field {
            "dimensions" if is_added => "dimensions: Some(dimensions)",
            other => other,
        };
        let fields = shape.fields(plan, is_added);
        let fields: Vec<&str> = fields.iter().map(value).collect();
        code.structure("Ok(Self", &fields, ")");
    });
}

/// Writes the statement that reads the dimensions of a group whose entries contain groups or data.
pub(in super::super) fn opened(
    code: &mut Code,
    plan: &GroupPlan<'_>,
    decoder: &str,
    tail: &str,
    version: &str,
) {
    let names = match (&plan.extended_dimensions, decoder) {
        (Some(_), "Self") => "left, block_length, dimensions",
        (Some(_), _) => "left, block_length, _",
        (None, _) => "left, block_length",
    };
    let mut arguments = vec![tail];
    arguments.extend(plan.empty_before.map(|_| version));
    let open = format!("let ({names}) = {decoder}::open");
    code.call(&open, &arguments, "?;");
}

/// Writes the method that returns the dimensions, for dimensions with members beyond those of the standard.
fn dimensions_method(code: &mut Code, extended: &str, is_added: bool) {
    code.doc("The dimensions of the group, including their additional members.");
    if is_added {
        code.doc("\n`None` if the acting version does not include the group.");
    }
    code.line("#[inline]");
    code.line("#[must_use]");
    if is_added {
        let result = format!("Option<{extended}Decoder<'a>>");
        code.function("pub fn dimensions", &["&self"], &result, |code| {
            code.line(format!("self.dimensions.map({extended}Decoder::wrap)"));
        });
    } else {
        let result = format!("{extended}Decoder<'a>");
        code.function("pub const fn dimensions", &["&self"], &result, |code| {
            code.line(format!("{extended}Decoder::wrap(self.dimensions)"));
        });
    }
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
            let wrap = format!("let entry = {entry}::wrap");
            let arguments = ["self.entries", "self.block_length", "self.version"];
            code.call(&wrap, &arguments, ";");
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
        // A negative count becomes greater than any limit.
        code.line("let left = u64::try_from(left).unwrap_or(u64::MAX);");
    }
    let limits = format!("({}, {})", layout.min_count, layout.count.max);
    let are_empty = are_empty(plan);
    let arguments = ["left", &limits, &are_empty, &name];
    code.call("let left = runtime::count", &arguments, "?;");
}

/// Returns the condition under which entries take no bytes, so that only the count bounds their number.
fn are_empty(plan: &GroupPlan<'_>) -> String {
    match plan.empty_before {
        Some(version) => format!("block_length == 0 && version < {version}"),
        None if plan.entry.fixed == 0 && !plan.entry.has_tails() => "block_length == 0".to_owned(),
        // Non-empty blocks, groups and data are bounded by the available bytes.
        None => "false".to_owned(),
    }
}
