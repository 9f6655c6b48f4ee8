// SPDX-License-Identifier: Apache-2.0
//! Generation of group encoders.

use super::typed;
use crate::generate::block::GroupPlan;
use crate::generate::code::{Code, named};
use crate::generate::{encoder, number, value};
use crate::model::{ByteOrder, GroupLayout};
use crate::runtime::MAX_EMPTY_ENTRIES;

/// Writes the encoder of the entries.
pub(super) fn entries(code: &mut Code, plan: &GroupPlan<'_>, order: ByteOrder) {
    let name = &plan.encoder;
    let layout = &plan.group.dimensions;
    let of = named(&plan.group.name);
    code.doc(&format!("Writes the entries of {of}, one after the other."));
    code.line("#[must_use = \"the group ends with `done`\"]");
    code.block(format!("pub struct {name}<'a> {{"), |code| {
        code.line(format!("dimensions: &'a mut [u8; {}],", layout.length));
        code.line("count: u64,");
        code.line(format!("parent: {},", plan.parent));
    });
    code.blank();
    code.block(format!("impl<'a> {name}<'a> {{"), |code| {
        start(code, plan, layout, order);
        if let Some(extended) = &plan.extended_dimensions {
            code.blank();
            dimensions_method(code, extended);
        }
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
            match &plan.extended_dimensions {
                // The standard members are written when the group ends.
                Some(extended) if !value::is_blank(&layout.kind) => {
                    code.line(format!("{extended}Encoder::wrap(dimensions).blank();"));
                }
                Some(_) => {}
                None => slots(code, plan, layout, order, "dimensions"),
            }
            code.structure("Ok(Self", &["dimensions", "count: 0", "parent"], ")");
        },
    );
}

/// Writes the members of the dimensions that are known before the entries.
fn slots(code: &mut Code, plan: &GroupPlan<'_>, layout: &GroupLayout, order: ByteOrder, to: &str) {
    let block = &plan.group.block;
    let known = [
        (Some(&layout.block_length), block.length.into()),
        (layout.groups.as_ref(), block.groups.len() as u64),
        (layout.data.as_ref(), block.data.len() as u64),
    ];
    for (slot, value) in known {
        if let Some(slot) = slot {
            code.line(number::write_slot(slot, order, to, &typed(value, slot)));
        }
    }
}

/// Writes the method that returns the dimensions, for dimensions with members beyond those of the standard.
fn dimensions_method(code: &mut Code, extended: &str) {
    code.doc("The dimensions of the group, for writing their additional members.");
    code.doc("\nThe standard members are written when the group is done, overriding what is written here.");
    code.line("#[inline]");
    let result = format!("{extended}Encoder<'_>");
    code.function("pub const fn dimensions", &["&mut self"], &result, |code| {
        code.line(format!("{extended}Encoder::wrap(self.dimensions)"));
    });
}

/// Returns the maximum number of entries. For empty entries this is the limit that decoders apply.
fn most(plan: &GroupPlan<'_>, layout: &GroupLayout) -> u64 {
    if plan.group.block.length == 0 && !plan.entry.has_tails() {
        layout.count.max.min(MAX_EMPTY_ENTRIES)
    } else {
        layout.count.max
    }
}

fn entry(code: &mut Code, plan: &GroupPlan<'_>, layout: &GroupLayout) {
    let is_flat = !plan.entry.has_tails();
    let entry = &plan.entry.encoder;
    code.doc("Writes the next entry.");
    if !is_flat {
        code.doc(
            "\nThe entry returns the group when it is done; an error does not, see `remaining`.",
        );
    }
    code.doc(
        "\n# Errors\n\nWhen the buffer is too small, or the group has as many entries as it can.",
    );
    code.line("#[inline]");
    let this = if is_flat { "&mut self" } else { "mut self" };
    let result = format!("Result<{entry}<'a>, runtime::EncodeError>");
    code.function("pub fn entry", &[this], &result, |code| {
        let max = most(plan, layout);
        code.block(format!("if self.count == {max} {{"), |code| {
            code.open("return Err(runtime::EncodeError::TooManyEntries {");
            code.line(format!("what: {:?},", plan.group.name));
            code.line(format!("max: {max},"));
            code.close("});");
        });
        if is_flat {
            // An entry that does not fit is not counted, so that the group can end without it.
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
    code.doc("Ends the group and continues with the next element.");
    let count = encoder::cast("self.count", layout.count.primitive);
    let store = |code: &mut Code| {
        if plan.extended_dimensions.is_some() {
            slots(code, plan, layout, order, "self.dimensions");
        }
        code.line(number::write_slot(
            &layout.count,
            order,
            "self.dimensions",
            &count,
        ));
    };
    if layout.min_count == 0 {
        code.line("#[inline]");
        code.function("pub fn done", &["self"], &plan.parent, |code| {
            store(code);
            code.line("self.parent");
        });
        return;
    }
    code.doc("\n# Errors\n\nIf it has fewer entries than the schema requires.");
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
        store(code);
        code.line("Ok(self.parent)");
    });
}
