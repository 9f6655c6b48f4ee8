// SPDX-License-Identifier: Apache-2.0
//! Values as JSON.
//!
//! Text is a string and bytes are hexadecimal digits. An enumeration value is its name, or its number if it has no
//! name. A set is a list of the names of its choices and the numbers of unnamed bits. Numbers that JSON cannot
//! represent are strings.

use std::fmt::{self, Display};

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::{Message, Numbers, Value};

impl Serialize for Message<'_> {
    fn serialize<Out: Serializer>(&self, out: Out) -> Result<Out::Ok, Out::Error> {
        let mut map = out.serialize_map(None)?;
        map.serialize_entry("message", self.name)?;
        map.serialize_entry("templateId", &self.template_id)?;
        map.serialize_entry("schemaId", &self.schema_id)?;
        map.serialize_entry("version", &self.version)?;
        map.serialize_entry("blockLength", &self.block_length)?;
        map.serialize_entry("offset", &self.offset)?;
        map.serialize_entry("length", &self.length)?;
        map.serialize_entry("fields", &Object(&self.fields))?;
        map.end()
    }
}

struct Object<'value>(&'value [(&'value str, Value<'value>)]);

impl Serialize for Object<'_> {
    fn serialize<Out: Serializer>(&self, out: Out) -> Result<Out::Ok, Out::Error> {
        out.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl Serialize for Value<'_> {
    fn serialize<Out: Serializer>(&self, out: Out) -> Result<Out::Ok, Out::Error> {
        match self {
            Self::Null => out.serialize_unit(),
            Self::Integer(value) => integer(*value, out),
            Self::Float(value) if value.is_finite() => out.serialize_f32(*value),
            Self::Float(value) => out.collect_str(value),
            Self::Double(value) if value.is_finite() => out.serialize_f64(*value),
            Self::Double(value) => out.collect_str(value),
            Self::Text(text) => out.serialize_str(text),
            Self::Bytes(bytes) => out.collect_str(&Hex(bytes)),
            Self::NotText { encoding, bytes } => {
                let mut map = out.serialize_map(Some(2))?;
                map.serialize_entry("not", encoding)?;
                map.serialize_entry("hex", &Hex(bytes).to_string())?;
                map.end()
            }
            Self::Numbers(numbers) => numbers.serialize(out),
            Self::Named(name) => out.serialize_str(name),
            Self::Flags { named, unknown } => {
                let mut list = out.serialize_seq(Some(named.len() + unknown.len()))?;
                for name in named {
                    list.serialize_element(name)?;
                }
                for bit in unknown {
                    list.serialize_element(bit)?;
                }
                list.end()
            }
            Self::Object(fields) => Object(fields).serialize(out),
            Self::List(values) => out.collect_seq(values),
        }
    }
}

impl Serialize for Numbers<'_> {
    fn serialize<Out: Serializer>(&self, out: Out) -> Result<Out::Ok, Out::Error> {
        out.collect_seq(self.iter())
    }
}

/// All encoded integers fit into `i64` or `u64`.
fn integer<Out: Serializer>(value: i128, out: Out) -> Result<Out::Ok, Out::Error> {
    match (u64::try_from(value), i64::try_from(value)) {
        (Ok(value), _) => out.serialize_u64(value),
        (_, Ok(value)) => out.serialize_i64(value),
        _ => out.serialize_i128(value),
    }
}

/// Bytes serialized as hexadecimal digits.
struct Hex<'data>(&'data [u8]);

impl Display for Hex<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}
