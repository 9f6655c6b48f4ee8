// SPDX-License-Identifier: Apache-2.0
//! Generation of the module of a message.

use super::block::{DONE, Plan, Plans, TailKind};
use super::code::{Code, named, prose};
use super::names;
use super::scope::Scope;
use super::type_names::TypeNames;
use super::{decoder, encoder, extra_members, group, number, value};
use crate::model::{Message, Schema};
use crate::problem::Problems;

/// Writes the module under the given name.
pub(super) fn write(code: &mut Code, schema: &Schema, name: &Name<'_>, types: &TypeNames<'_>) {
    let (order, message) = (schema.byte_order, name.message);
    // Name conflicts were reported by `names`.
    let mut problems = Problems::default();
    let plan = Plan::message(message, &mut Plans::new(types, &mut problems));
    let extended_header = extra_members::header(&schema.header.kind, types);
    code.doc(&format!("The message {}.", named(&message.name)));
    code.line(super::root::ALLOWED);
    code.block(format!("pub mod {} {{", name.module), |code| {
        code.line("use super::types;");
        code.line("use taran_sbe::runtime;");
        code.blank();
        documented(code, message, "Reads");
        decoder::write(code, &plan, order, |code| decode(code, message));
        code.blank();
        documented(code, message, "Writes");
        encoder::write(code, &plan, order, |code| {
            encode(code, schema, message, extended_header);
        });
        for tail in &plan.tails {
            if let TailKind::Group(inner) = &tail.kind {
                group::write(code, inner, tail.since.is_some(), order);
            }
        }
        if plan.has_tails() {
            code.blank();
            markers(code, &plan);
        }
    });
}

fn documented(code: &mut Code, message: &Message, verb: &str) {
    code.doc(&format!("{verb} the message {}.", named(&message.name)));
    if let Some(text) = &message.description {
        code.doc(&format!("\n{}", prose(text)));
    }
    if let Some(version) = message.deprecated {
        super::value::deprecated(code, version);
    }
}

fn decode(code: &mut Code, message: &Message) {
    code.doc("The template id of the message.");
    code.line(format!("pub const TEMPLATE_ID: u64 = {};", message.id));
    code.doc("The block length in this version of the schema.");
    code.line(format!(
        "pub const BLOCK_LENGTH: u64 = {};",
        message.block.length
    ));
    code.blank();
    code.doc("Reads a message that begins with its header.");
    code.doc("\n# Errors\n\nIf it is another message, or ends too early.");
    code.line(decoder::ALWAYS);
    let result = "Result<Self, runtime::DecodeError>";
    code.function("pub fn decode", &["bytes: &'a [u8]"], result, |code| {
        code.line("let (header, bytes) = super::header(bytes)?;");
        code.line("runtime::schema_is(super::SCHEMA_ID, &header)?;");
        code.line("runtime::template_is(Self::TEMPLATE_ID, &header)?;");
        code.line("Self::wrap(bytes, header.block_length, header.version)");
    });
}

fn encode(code: &mut Code, schema: &Schema, message: &Message, extended: Option<String>) {
    let result = "Result<Self, runtime::EncodeError>";
    let argument = "buffer: &'a mut [u8]";
    code.doc("Writes a message that begins with its header.");
    code.doc("\nUnset fields are null if optional, otherwise zero.");
    code.doc("\n# Errors\n\nWhen the buffer is too small.");
    code.line("#[inline]");
    match extended {
        None => code.function("pub fn encode", &[argument], result, |code| {
            header(code, schema, message, None);
        }),
        Some(extended) => {
            let extended = format!("{extended}Encoder");
            code.function("pub fn encode", &[argument], result, |code| {
                code.line("Self::encode_with(buffer, |_| {})");
            });
            code.blank();
            code.doc("Writes a message that begins with its header; `additional` writes the additional members of the header.");
            code.doc(
                "\nThe standard members are written afterwards and override what `additional` writes.",
            );
            code.doc("\n# Errors\n\nWhen the buffer is too small.");
            code.line("#[inline]");
            let with = format!("additional: impl FnOnce(&mut {extended}<'_>)");
            code.function("pub fn encode_with", &[argument, &with], result, |code| {
                header(code, schema, message, Some(&extended));
            });
        }
    }
    code.blank();
    code.doc("Writes a message without its header.");
    code.doc("\n# Errors\n\nWhen the buffer is too small.");
    code.line("#[inline]");
    code.function("pub fn wrap", &[argument], result, |code| {
        code.line("Self::start(runtime::Writer::new(buffer))");
    });
}

/// Writes the statements that encode the header and continue after it.
fn header(code: &mut Code, schema: &Schema, message: &Message, extended: Option<&str>) {
    let header = &schema.header;
    let length = header.length;
    code.line("let mut tail = runtime::Writer::new(buffer);");
    code.line(format!(
        "let header: &mut [u8; {length}] = tail.chunk({:?})?;",
        header.kind.name
    ));
    code.line(format!("*header = [0; {length}];"));
    if let Some(extended) = extended {
        code.line(format!("let mut all = {extended}::wrap(header);"));
        if !value::is_blank(&header.kind) {
            code.line("all.blank();");
        }
        code.line("additional(&mut all);");
    }
    for (slot, value) in [
        (Some(&header.block_length), message.block.length.into()),
        (Some(&header.template_id), message.id),
        (Some(&header.schema_id), schema.id),
        (Some(&header.version), schema.version.into()),
        (header.groups.as_ref(), message.block.groups.len() as u64),
        (header.data.as_ref(), message.block.data.len() as u64),
    ] {
        if let Some(slot) = slot {
            let value = group::typed(value, slot);
            let order = schema.byte_order;
            code.line(number::write_slot(slot, order, "header", &value));
        }
    }
    code.line("Self::start(tail)");
}

/// Writes the marker types of the decoder and encoder states.
fn markers(code: &mut Code, plan: &Plan<'_>) {
    code.doc("States of decoders and encoders, each named after the element that is next.");
    code.block("pub mod at {", |code| {
        each_marker(code, plan);
        code.doc("Behind everything.");
        code.line("#[derive(Debug, Clone, Copy)]");
        code.line(format!("pub enum {DONE} {{}}"));
    });
}

fn each_marker(code: &mut Code, plan: &Plan<'_>) {
    for tail in &plan.tails {
        code.doc(&format!("Before {}.", named(tail.name)));
        code.line("#[derive(Debug, Clone, Copy)]");
        code.line(format!("pub enum {} {{}}", tail.marker));
        code.blank();
        if let TailKind::Group(inner) = &tail.kind {
            each_marker(code, &inner.entry);
        }
    }
}

/// Rust names of a message.
pub(super) struct Name<'a> {
    pub(super) message: &'a Message,
    pub(super) module: String,
    /// Variant of the `Message` enum.
    pub(super) variant: String,
    /// Path of the decoder.
    pub(super) decoder: String,
}

/// Returns the names of all messages, in schema order.
pub(super) fn all<'a>(schema: &'a Schema, problems: &mut Problems) -> Vec<Name<'a>> {
    let (mut modules, mut variants) = (Scope::of_words(), Scope::of_types());
    let name = |message: &'a Message| {
        let thing = (message.name.as_str(), &message.position);
        let module = modules.take(names::module(thing.0), thing, problems);
        Name {
            message,
            decoder: format!("{module}::{}Decoder", names::part(thing.0)),
            module,
            variant: variants.take(names::kind(thing.0), thing, problems),
        }
    };
    schema.messages.iter().map(name).collect()
}
