// SPDX-License-Identifier: Apache-2.0
//! Generation of the accessors of one value of a block or a composite.

use super::code::{Code, named, prose};
use super::number;
use crate::model::{
    ByteOrder, Constant, Presence, Primitive, Scalar, Simple, Type, TypeKind, ValueRef,
};

/// Value of a block or a composite, encoded or constant.
pub(super) struct Value<'a> {
    /// Name in the schema.
    pub(super) name: &'a str,
    /// Method name.
    pub(super) method: String,
    pub(super) description: Option<&'a str>,
    pub(super) deprecated: Option<u32>,
    pub(super) kind: &'a Type,
    /// Rust type of an enumeration or a set; for composites the type name without `Decoder` or `Encoder`.
    pub(super) path: String,
    pub(super) presence: Presence,
    pub(super) constant: Option<&'a Constant>,
    /// Variant of a constant enumeration value, if it has a name.
    pub(super) variant: Option<String>,
    pub(super) offset: u32,
    /// Position for decoders.
    pub(super) place: Place,
}

/// Position of a value in a block.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// In the part of the block that exists in every version.
    Fixed,
    /// Added in version `since`, at offset `at` after the fixed part.
    Added { since: u32, at: u32 },
    /// In the fixed part, but valid only from this version on.
    FixedSince(u32),
}

/// Category of the Rust type.
enum Shape<'a> {
    Number(&'a Simple),
    Text(&'a Simple),
    Bytes(&'a Simple),
    Numbers(&'a Simple),
    Enum(Primitive, Scalar),
    Set(Primitive),
    Composite,
}

impl<'a> Value<'a> {
    fn shape(&self) -> Shape<'a> {
        match &self.kind.kind {
            TypeKind::Simple(simple) if !simple.is_array => Shape::Number(simple),
            TypeKind::Simple(simple) if simple.is_text() => Shape::Text(simple),
            TypeKind::Simple(simple) if simple.primitive == Primitive::Uint8 => {
                Shape::Bytes(simple)
            }
            TypeKind::Simple(simple) => Shape::Numbers(simple),
            TypeKind::Enum(kind) => Shape::Enum(kind.encoding, kind.null),
            TypeKind::Set(set) => Shape::Set(set.encoding),
            TypeKind::Composite(_) => Shape::Composite,
        }
    }

    fn is_constant(&self) -> bool {
        self.presence == Presence::Constant
    }

    /// Returns true if the value has a null value.
    pub(super) fn is_nullable(&self) -> bool {
        let can = !matches!(self.shape(), Shape::Set(_) | Shape::Composite);
        can && self.presence == Presence::Optional
    }

    fn doc(&self, code: &mut Code, verb: &str, more: &str) {
        match self.description {
            Some(text) => code.doc(&prose(text)),
            None => code.doc(&format!("{verb} {}.", named(self.name))),
        }
        if !more.is_empty() {
            code.doc(&format!("\n{more}"));
        }
        if let Some(version) = self.deprecated {
            deprecated(code, version);
        }
    }

    fn encoded_length(&self) -> u32 {
        self.kind.encoded_length()
    }
}

/// Writes the `deprecated` attribute.
pub(super) fn deprecated(code: &mut Code, version: u32) {
    code.line(format!(
        "#[deprecated(note = \"since version {version} of the schema\")]"
    ));
}

/// Writes the getter.
pub(super) fn getter(code: &mut Code, value: &Value<'_>, order: ByteOrder) {
    if value.is_constant() {
        constant(code, value);
        return;
    }
    let rust = rust_type(value);
    let nullable = value.is_nullable();
    let added = !matches!(value.place, Place::Fixed);
    let more = match (value.place, nullable) {
        (Place::Fixed, false) => String::new(),
        (Place::Fixed, true) => "`None` when it is null.".to_owned(),
        (Place::Added { since, .. } | Place::FixedSince(since), nullable) => format!(
            "`None` {}in messages of versions before {since}.",
            if nullable {
                "when it is null, and "
            } else {
                ""
            }
        ),
    };
    value.doc(code, "Reads", &more);
    code.line("#[inline]");
    code.line("#[must_use]");
    let result = if nullable || added {
        format!("Option<{rust}>")
    } else {
        rust
    };
    let name = format!("pub fn {}", value.method);
    code.function(&name, &["&self"], &result, |code| {
        let (at, size) = (value.offset, value.encoded_length());
        let bytes = match value.place {
            Place::Fixed => format!("runtime::part::<{at}, {size}, _>(self.block)"),
            Place::Added { since, at } => {
                code.line(format!(
                    "let bytes: &[u8; {size}] = runtime::added(self.version, {since}, self.added, {at})?;"
                ));
                "bytes".to_owned()
            }
            Place::FixedSince(since) => {
                code.line(format!(
                    "let bytes: &[u8; {size}] = runtime::added(self.version, {since}, self.block, {at})?;"
                ));
                "bytes".to_owned()
            }
        };
        let mut read = read(value, order, &bytes);
        let statement = "let value = ".len() + read.len() + ";".len();
        if matches!(value.place, Place::Fixed) && !code.fits(statement) {
            code.line(format!("let bytes: &[u8; {size}] = {bytes};"));
            read = self::read(value, order, "bytes");
        }
        if nullable {
            code.line(format!("let value = {read};"));
            code.line(format!("({}).then_some(value)", is_there(value)));
        } else if added {
            if read.len() > 60 {
                code.line(format!("let value = {read};"));
                read = "value".to_owned();
            }
            code.line(format!("Some({read})"));
        } else {
            code.line(read);
        }
    });
}

fn rust_type(value: &Value<'_>) -> String {
    match value.shape() {
        Shape::Number(simple) => number::rust_type(simple.primitive).to_owned(),
        Shape::Text(simple) => format!("runtime::FixedText<'a, {}>", simple.length),
        Shape::Bytes(simple) => format!("&'a [u8; {}]", simple.length),
        Shape::Numbers(simple) => {
            format!(
                "[{}; {}]",
                number::rust_type(simple.primitive),
                simple.length
            )
        }
        Shape::Enum(..) | Shape::Set(_) => value.path.clone(),
        Shape::Composite => format!("{}Decoder<'a>", value.path),
    }
}

/// Returns the expression that converts a reference to the encoded bytes to a value.
fn read(value: &Value<'_>, order: ByteOrder, bytes: &str) -> String {
    match value.shape() {
        Shape::Number(simple) => {
            format!("{}(*{bytes})", number::from_bytes(simple.primitive, order))
        }
        Shape::Text(_) => format!("runtime::FixedText::new({bytes})"),
        Shape::Bytes(_) => bytes.to_owned(),
        Shape::Numbers(simple) => format!(
            "runtime::numbers({bytes}, {})",
            number::from_bytes(simple.primitive, order)
        ),
        Shape::Enum(primitive, _) | Shape::Set(primitive) => format!(
            "{}::from_raw({}(*{bytes}))",
            value.path,
            number::from_bytes(primitive, order)
        ),
        Shape::Composite => format!("{}Decoder::wrap({bytes})", value.path),
    }
}

/// Returns the condition that `value` is not null.
fn is_there(value: &Value<'_>) -> String {
    match value.shape() {
        Shape::Number(simple) => unequal("value", simple),
        Shape::Text(simple) | Shape::Bytes(simple) => {
            let bytes = if simple.is_text() {
                "value.field()"
            } else {
                "value"
            };
            format!("{bytes}.iter().any(|each| {})", unequal("*each", simple))
        }
        Shape::Numbers(simple) => {
            format!("value.iter().any(|each| {})", unequal("*each", simple))
        }
        Shape::Enum(..) => format!("value != {}::NULL", value.path),
        Shape::Set(_) | Shape::Composite => "true".to_owned(),
    }
}

pub(super) fn unequal(value: &str, simple: &Simple) -> String {
    match simple.null {
        Scalar::Real(null) if null.is_nan() => {
            format!("!{}.is_nan()", value.trim_start_matches('*'))
        }
        null => format!("{value} != {}", number::literal(null, simple.primitive)),
    }
}

/// Returns the schema name of a constant enumeration value.
pub(super) fn variant<'a>(
    kind: &'a Type,
    constant: Option<&Constant>,
    value_ref: Option<&ValueRef>,
) -> Option<&'a str> {
    let TypeKind::Enum(kind) = &kind.kind else {
        return None;
    };
    let constant = constant?;
    let by_name = value_ref.and_then(|value_ref| kind.value(&value_ref.value));
    let named = by_name.or_else(|| match constant {
        Constant::Scalar(Scalar::Integer(constant)) => kind.sent_as(*constant),
        _ => None,
    });
    named.map(|value| value.name.as_str())
}

fn constant(code: &mut Code, value: &Value<'_>) {
    let (rust, literal) = match (&value.kind.kind, value.constant) {
        (TypeKind::Enum(_), Some(Constant::Scalar(Scalar::Integer(constant)))) => {
            let literal = value.variant.as_ref().map_or_else(
                || format!("{}::from_raw({constant})", value.path),
                |variant| format!("{}::{variant}", value.path),
            );
            (value.path.clone(), literal)
        }
        (TypeKind::Simple(simple), Some(Constant::Scalar(constant))) => (
            number::rust_type(simple.primitive).to_owned(),
            number::literal(*constant, simple.primitive),
        ),
        (_, Some(Constant::Bytes(bytes))) => {
            let end = bytes.iter().position(|byte| *byte == 0);
            let text = &bytes[..end.unwrap_or(bytes.len())];
            match str::from_utf8(text) {
                Ok(text) => ("&'static str".to_owned(), format!("{text:?}")),
                Err(_) => (
                    "&'static [u8]".to_owned(),
                    format!("b\"{}\"", text.escape_ascii()),
                ),
            }
        }
        // Unreachable: validation rejects constants without a value.
        _ => return,
    };
    value.doc(code, "The constant", "It is constant, and not sent.");
    code.line("#[inline]");
    code.line("#[must_use]");
    let name = format!("pub const fn {}", value.method);
    code.function(&name, &["&self"], &rust, |code| code.line(literal));
}

/// Returns true if the value has a getter. Constants without a value have none.
pub(super) fn is_shown(value: &Value<'_>) -> bool {
    !value.is_constant()
        || matches!(
            (&value.kind.kind, value.constant),
            (TypeKind::Enum(_) | TypeKind::Simple(_), Some(_))
        )
}

/// Writes the setter; constants have none.
pub(super) fn setter(code: &mut Code, value: &Value<'_>, order: ByteOrder) {
    if value.is_constant() {
        return;
    }
    let (at, size) = (value.offset, value.encoded_length());
    let part = format!("runtime::part_mut::<{at}, {size}, _>(self.block)");
    let name = format!("pub fn {}", value.method);
    let more = match value.shape() {
        Shape::Text(_) if value.is_nullable() => {
            "`None::<&str>` makes it null.\n\n# Errors\n\nWhen the text is longer than the field; a shorter one is filled up with zeros."
        }
        Shape::Number(_) | Shape::Enum(..) | Shape::Bytes(_) | Shape::Numbers(_)
            if value.is_nullable() =>
        {
            "`None` makes it null."
        }
        Shape::Text(_) => {
            "# Errors\n\nWhen the text is longer than the field; a shorter one is filled up with zeros."
        }
        _ => "",
    };
    value.doc(code, "Writes", more);
    code.line("#[inline]");
    let store = |code: &mut Code, argument: &str, before: &str, raw: &str| {
        let arguments = ["&mut self", argument];
        code.function(&name, &arguments, "&mut Self", |code| {
            if !before.is_empty() {
                code.line(before);
            }
            code.line(format!(
                "*{part} = {raw}.{}();",
                number::to_bytes_method(order)
            ));
            code.line("self");
        });
    };
    let nullable = value.is_nullable();
    match value.shape() {
        Shape::Number(simple) if nullable => {
            let rust = number::rust_type(simple.primitive);
            let null = number::literal(simple.null, simple.primitive);
            let argument = format!("value: impl Into<Option<{rust}>>");
            let before = format!("let value = value.into().unwrap_or({null});");
            store(code, &argument, &before, "value");
        }
        Shape::Number(simple) => {
            let argument = format!("value: {}", number::rust_type(simple.primitive));
            store(code, &argument, "", "value");
        }
        Shape::Enum(..) if nullable => {
            let path = &value.path;
            let argument = format!("value: impl Into<Option<{path}>>");
            let before = format!("let value = value.into().unwrap_or({path}::NULL);");
            store(code, &argument, &before, "value.raw()");
        }
        Shape::Enum(..) | Shape::Set(_) => {
            let argument = format!("value: {}", value.path);
            store(code, &argument, "", "value.raw()");
        }
        Shape::Text(simple) => {
            let argument = if nullable {
                "value: impl runtime::TextOrNull"
            } else {
                "value: impl AsRef<[u8]>"
            };
            let result = "Result<&mut Self, runtime::EncodeError>";
            code.function(&name, &["&mut self", argument], result, |code| {
                code.line(format!("let field = {part};"));
                let what = format!("{:?}", value.name);
                if nullable {
                    code.block("match value.bytes() {", |code| {
                        let fill = ["field", "value", &what];
                        code.call("Some(value) => runtime::fill", &fill, "?,");
                        let null = number::literal(simple.null, simple.primitive);
                        code.line(format!("None => field.fill({null}),"));
                    });
                } else {
                    code.call("runtime::fill", &["field", "value.as_ref()", &what], "?;");
                }
                code.line("Ok(self)");
            });
        }
        Shape::Bytes(simple) | Shape::Numbers(simple) => {
            let rust = number::rust_type(simple.primitive);
            let array = format!("[{rust}; {}]", simple.length);
            let mut head = name.clone();
            let argument = if nullable {
                head += "<'v>";
                format!("value: impl Into<Option<&'v {array}>>")
            } else {
                format!("value: &{array}")
            };
            code.function(&head, &["&mut self", &argument], "&mut Self", |code| {
                if nullable {
                    let null = number::literal(simple.null, simple.primitive);
                    let length = simple.length;
                    code.line(format!(
                        "let value = value.into().unwrap_or(&[{null}; {length}]);"
                    ));
                }
                if simple.primitive == Primitive::Uint8 {
                    code.line(format!("*{part} = *value;"));
                } else {
                    code.line(format!("let field = {part};"));
                    code.line(format!(
                        "runtime::set_numbers(field, value, {});",
                        number::to_bytes(simple.primitive, order)
                    ));
                }
                code.line("self");
            });
        }
        Shape::Composite => {
            let result = format!("{}Encoder<'_>", value.path);
            code.function(&name, &["&mut self"], &result, |code| {
                code.line(format!("{}Encoder::wrap({part})", value.path));
            });
        }
    }
}

/// Returns the statement that initializes an optional value to null, unless zeros already represent null.
pub(super) fn blank(value: &Value<'_>) -> Option<String> {
    if value.is_constant() {
        return None;
    }
    let method = &value.method;
    let (at, size) = (value.offset, value.encoded_length());
    match value.shape() {
        Shape::Enum(_, null) if number::is_zero(null) => None,
        Shape::Enum(..) if value.is_nullable() => Some(format!("self.{method}(None);")),
        Shape::Enum(..) => Some(format!("self.{method}({}::NULL);", value.path)),
        Shape::Composite if !is_blank(value.kind) => Some(format!("self.{method}().blank();")),
        _ if !value.is_nullable() => None,
        Shape::Number(simple) if !number::is_zero(simple.null) => {
            Some(format!("self.{method}(None);"))
        }
        Shape::Text(simple) | Shape::Bytes(simple) if !number::is_zero(simple.null) => {
            let null = number::literal(simple.null, simple.primitive);
            Some(format!(
                "runtime::part_mut::<{at}, {size}, _>(self.block).fill({null});"
            ))
        }
        Shape::Numbers(simple) if !number::is_zero(simple.null) => {
            Some(format!("self.{method}(None);"))
        }
        _ => None,
    }
}

/// Returns true if zero bytes are the initial value of this type, so that no further initialization is needed.
pub(super) fn is_blank(kind: &Type) -> bool {
    match &kind.kind {
        TypeKind::Simple(simple) => {
            simple.presence != Presence::Optional || number::is_zero(simple.null)
        }
        TypeKind::Enum(kind) => kind.presence == Presence::Constant || number::is_zero(kind.null),
        TypeKind::Set(_) => true,
        TypeKind::Composite(composite) => composite
            .members
            .iter()
            .all(|member| is_blank(&member.kind)),
    }
}

/// Writes `Debug` for a decoder, which shows every value and then what `more` adds, and a `Display` with the same
/// output.
pub(super) fn show(
    code: &mut Code,
    rust: &str,
    generics: (&str, &str),
    title: &str,
    values: &[Value<'_>],
    more: impl FnOnce(&mut Code),
) {
    let (declared, used) = generics;
    code.block(
        format!("impl{declared} core::fmt::Debug for {rust}{used} {{"),
        |code| {
            let arguments = ["&self", "out: &mut core::fmt::Formatter<'_>"];
            code.function("fn fmt", &arguments, "core::fmt::Result", |code| {
                code.line(format!("let mut shown = out.debug_struct({title:?});"));
                for value in values.iter().filter(|value| is_shown(value)) {
                    let (name, method) = (&value.name, &value.method);
                    let arguments = [format!("{name:?}"), format!("&self.{method}()")];
                    code.call(
                        "shown.field",
                        &arguments.each_ref().map(String::as_str),
                        ";",
                    );
                }
                more(code);
                code.line("shown.finish()");
            });
        },
    );
    code.blank();
    code.block(
        format!("impl{declared} core::fmt::Display for {rust}{used} {{"),
        |code| {
            let arguments = ["&self", "out: &mut core::fmt::Formatter<'_>"];
            code.function("fn fmt", &arguments, "core::fmt::Result", |code| {
                code.line("core::fmt::Debug::fmt(self, out)");
            });
        },
    );
}
