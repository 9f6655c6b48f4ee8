//! The walk through a message.

use std::fmt::Write;

use super::{DecodeError, Message, Numbers, Reason, Value, number, text};
use crate::model::{
    Block, Constant, Data, Enum, Field, Group, Presence, Primitive, Scalar, Schema, Set, Simple,
    Slot, Type, TypeKind,
};

/// What is read, how far, and on behalf of whom.
pub(super) struct Reader<'data> {
    schema: &'data Schema,
    bytes: &'data [u8],
    offset: usize,
    version: u64,
    path: String,
    values: usize,
    limit: usize,
}

/// Some bytes that lie together, and where they start in the message.
#[derive(Clone, Copy)]
struct Part<'data> {
    bytes: &'data [u8],
    start: usize,
}

type Fields<'data> = Vec<(&'data str, Value<'data>)>;

impl<'data> Reader<'data> {
    pub(super) const fn new(schema: &'data Schema, bytes: &'data [u8], limit: usize) -> Self {
        Self {
            schema,
            bytes,
            offset: 0,
            version: 0,
            path: String::new(),
            values: 0,
            limit,
        }
    }

    pub(super) fn message(mut self) -> Result<Message<'data>, DecodeError> {
        let schema = self.schema;
        let layout = &schema.header;
        let header = self.take(layout.length.into(), "the header of a message")?;
        let schema_id = self.slot(header, layout.schema_id);
        if schema_id != schema.id {
            let (found, expected) = (schema_id, schema.id);
            return Err(self.error(0, Reason::SchemaId { found, expected }));
        }
        let template_id = self.slot(header, layout.template_id);
        let Some(message) = schema.message(template_id) else {
            return Err(self.error(0, Reason::TemplateId(template_id)));
        };
        self.version = self.slot(header, layout.version);
        self.path.push_str(&message.name);
        let block_length = self.slot(header, layout.block_length);
        let fields = self.block(&message.block, block_length)?;
        Ok(Message {
            name: &message.name,
            template_id,
            schema_id,
            version: self.version,
            block_length,
            offset: 0,
            length: self.offset,
            fields,
        })
    }

    /// The fields of a block, and the groups and data behind it.
    fn block(&mut self, block: &'data Block, length: u64) -> Result<Fields<'data>, DecodeError> {
        let part = self.take(length, "a block")?;
        let mut fields = Vec::new();
        for field in self.known(&block.fields, |field| field.since) {
            let value = self.within(&field.name, |reader| reader.field(field, part))?;
            fields.push((field.name.as_str(), value));
        }
        for group in self.known(&block.groups, |group| group.since) {
            let value = self.within(&group.name, |reader| reader.group(group))?;
            fields.push((group.name.as_str(), value));
        }
        for data in self.known(&block.data, |data| data.since) {
            let value = self.within(&data.name, |reader| reader.data(data))?;
            fields.push((data.name.as_str(), value));
        }
        Ok(fields)
    }

    /// Those that the sender knew.
    fn known<Thing>(
        &self,
        things: &'data [Thing],
        since: fn(&Thing) -> u32,
    ) -> impl Iterator<Item = &'data Thing> + use<'data, Thing> {
        let version = self.version;
        things
            .iter()
            .filter(move |thing| u64::from(since(thing)) <= version)
    }

    fn group(&mut self, group: &'data Group) -> Result<Value<'data>, DecodeError> {
        let dimensions = &group.dimensions;
        let part = self.take(dimensions.length.into(), "the dimensions of a group")?;
        let block_length = self.slot(part, dimensions.block_length);
        let slot = dimensions.count;
        let count = match self.scalar(part, slot.offset, slot.primitive) {
            Scalar::Integer(count) => count,
            // Counts are integers: the schema was held to that.
            Scalar::Real(_) => 0,
        };
        let Ok(count) = u64::try_from(count) else {
            let count = i64::try_from(count).unwrap_or(i64::MIN);
            return Err(self.error(part.start, Reason::NegativeCount(count)));
        };
        let mut entries = Vec::new();
        for index in 0..count {
            self.count_value()?;
            let entry =
                self.within_entry(index, |reader| reader.block(&group.block, block_length))?;
            entries.push(Value::Object(entry));
        }
        Ok(Value::List(entries))
    }

    fn data(&mut self, data: &'data Data) -> Result<Value<'data>, DecodeError> {
        self.count_value()?;
        let encoding = &data.encoding;
        let part = self.take(encoding.start.into(), "the length of data")?;
        let length = self.slot(part, encoding.length);
        let bytes = self.take(length, "data")?.bytes;
        Ok(match &encoding.character_encoding {
            Some(encoding) => text::value(bytes, encoding),
            None if encoding.primitive == Primitive::Char => text::value(bytes, "US-ASCII"),
            None => Value::Bytes(bytes),
        })
    }

    fn field(
        &mut self,
        field: &'data Field,
        part: Part<'data>,
    ) -> Result<Value<'data>, DecodeError> {
        if field.presence == Presence::Constant {
            self.count_value()?;
            return Ok(constant(field.constant.as_ref(), &field.kind));
        }
        self.value(&field.kind, field.presence, part, field.offset.into())
    }

    /// A value that starts so far behind the start of its block.
    fn value(
        &mut self,
        kind: &'data Type,
        presence: Presence,
        part: Part<'data>,
        offset: u64,
    ) -> Result<Value<'data>, DecodeError> {
        self.count_value()?;
        let composite = match &kind.kind {
            TypeKind::Composite(composite) => composite,
            TypeKind::Simple(simple) if simple.presence == Presence::Constant => {
                return Ok(constant(simple.constant.as_ref(), kind));
            }
            TypeKind::Enum(_) | TypeKind::Simple(_) | TypeKind::Set(_) => {
                let bytes = self.leaf(kind, part, offset)?;
                return Ok(match &kind.kind {
                    TypeKind::Simple(simple) => self.simple(simple, presence, bytes),
                    TypeKind::Enum(enumeration) => self.enumeration(enumeration, bytes),
                    TypeKind::Set(set) => self.set(set, bytes),
                    TypeKind::Composite(_) => Value::Null,
                });
            }
        };
        let mut members = Vec::new();
        for member in self.known(&composite.members, |member| member.since) {
            let offset = offset + u64::from(member.offset);
            let presence = member.kind.presence();
            let value = self.within(&member.name, |reader| {
                reader.value(&member.kind, presence, part, offset)
            })?;
            members.push((member.name.as_str(), value));
        }
        Ok(Value::Object(members))
    }

    fn leaf(
        &self,
        kind: &Type,
        part: Part<'data>,
        offset: u64,
    ) -> Result<&'data [u8], DecodeError> {
        let needed = offset + u64::from(kind.encoded_length());
        let range = usize::try_from(offset)
            .ok()
            .zip(usize::try_from(needed).ok());
        range
            .and_then(|(from, to)| part.bytes.get(from..to))
            .ok_or_else(|| {
                let reason = Reason::BlockTooShort {
                    block: part.bytes.len(),
                    version: self.version,
                    needed,
                };
                self.error(part.start, reason)
            })
    }

    fn simple(
        &self,
        simple: &'data Simple,
        presence: Presence,
        bytes: &'data [u8],
    ) -> Value<'data> {
        let order = self.schema.byte_order;
        let null = (presence == Presence::Optional).then_some(simple.null);
        let encoding = simple.character_encoding.as_deref().unwrap_or("US-ASCII");
        let character = |byte: &u8| Scalar::Integer((*byte).into());
        if simple.is_text() {
            // As generated codecs have it, each byte of it is null then.
            if null.is_some() && bytes.iter().all(|byte| null == Some(character(byte))) {
                return Value::Null;
            }
            return text::value(text::until_zero(bytes, encoding), encoding);
        }
        if simple.is_array {
            return Value::Numbers(Numbers {
                primitive: simple.primitive,
                byte_order: order,
                null,
                bytes,
            });
        }
        if simple.primitive == Primitive::Char && null != bytes.first().map(character) {
            return text::value(bytes, encoding);
        }
        number::value(bytes, simple.primitive, order, null)
    }

    fn enumeration(&self, enumeration: &'data Enum, bytes: &[u8]) -> Value<'data> {
        let order = self.schema.byte_order;
        let found = number::scalar(bytes, enumeration.encoding, order);
        if let Some(value) = named(enumeration, found) {
            return value;
        }
        if found == enumeration.null {
            return Value::Null;
        }
        number::from_scalar(found, enumeration.encoding)
    }

    fn set(&self, set: &'data Set, bytes: &[u8]) -> Value<'data> {
        let found = number::scalar(bytes, set.encoding, self.schema.byte_order);
        // Sets are unsigned: the schema was held to that.
        let bits = found.as_integer().unwrap_or(0);
        let is_set = |bit: u8| bits >> bit & 1 == 1;
        let named: Vec<_> = set
            .choices
            .iter()
            .filter(|choice| is_set(choice.bit))
            .map(|choice| choice.name.as_str())
            .collect();
        let unknown = (0..64)
            .filter(|bit| is_set(*bit) && set.choices.iter().all(|choice| choice.bit != *bit))
            .collect();
        Value::Flags { named, unknown }
    }

    fn scalar(&self, part: Part<'_>, offset: u32, primitive: Primitive) -> Scalar {
        let from = offset as usize;
        let bytes = part.bytes.get(from..from + primitive.size() as usize);
        number::scalar(bytes.unwrap_or_default(), primitive, self.schema.byte_order)
    }

    fn slot(&self, part: Part<'_>, slot: Slot) -> u64 {
        if let Some(constant) = slot.constant {
            return constant;
        }
        let value = self.scalar(part, slot.offset, slot.primitive).as_integer();
        // Slots are unsigned, but for counts, which are not read here.
        u64::try_from(value.unwrap_or(0)).unwrap_or(0)
    }

    /// The next bytes of the message.
    fn take(&mut self, length: u64, what: &'static str) -> Result<Part<'data>, DecodeError> {
        let left = &self.bytes[self.offset..];
        let start = self.offset;
        let taken = usize::try_from(length)
            .ok()
            .and_then(|length| left.get(..length));
        let Some(bytes) = taken else {
            let reason = Reason::Truncated {
                what,
                needed: length,
                left: left.len(),
            };
            return Err(self.error(start, reason));
        };
        self.offset += bytes.len();
        Ok(Part { bytes, start })
    }

    fn count_value(&mut self) -> Result<(), DecodeError> {
        self.values += 1;
        if self.values > self.limit {
            return Err(self.error(self.offset, Reason::TooManyValues(self.limit)));
        }
        Ok(())
    }

    fn within<Found>(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut Self) -> Result<Found, DecodeError>,
    ) -> Result<Found, DecodeError> {
        let length = self.path.len();
        self.path.push('.');
        self.path.push_str(name);
        let found = read(self);
        self.path.truncate(length);
        found
    }

    fn within_entry<Found>(
        &mut self,
        index: u64,
        read: impl FnOnce(&mut Self) -> Result<Found, DecodeError>,
    ) -> Result<Found, DecodeError> {
        let length = self.path.len();
        // A `String` takes whatever is written to it.
        let _ = write!(self.path, "[{index}]");
        let found = read(self);
        self.path.truncate(length);
        found
    }

    fn error(&self, offset: usize, reason: Reason) -> DecodeError {
        DecodeError {
            offset,
            path: self.path.clone(),
            reason,
        }
    }
}

/// The value of an enumeration that has a name.
fn named<'data>(enumeration: &'data Enum, found: Scalar) -> Option<Value<'data>> {
    let found = found.as_integer()?;
    let mut values = enumeration.values.iter();
    let value = values.find(|value| value.value == found)?;
    Some(Value::Named(&value.name))
}

/// What is not sent.
fn constant<'data>(constant: Option<&'data Constant>, kind: &'data Type) -> Value<'data> {
    match (constant, &kind.kind) {
        (Some(Constant::Scalar(value)), TypeKind::Enum(enumeration)) => {
            named(enumeration, *value).unwrap_or(Value::Null)
        }
        (Some(Constant::Scalar(Scalar::Integer(value))), TypeKind::Simple(simple))
            if simple.primitive == Primitive::Char =>
        {
            let character = u8::try_from(*value).map(char::from);
            character.map_or(Value::Null, |character| {
                Value::Text(character.to_string().into())
            })
        }
        (Some(Constant::Scalar(value)), TypeKind::Simple(simple)) => {
            number::from_scalar(*value, simple.primitive)
        }
        (Some(Constant::Bytes(bytes)), TypeKind::Simple(simple)) => {
            let encoding = simple.character_encoding.as_deref().unwrap_or("US-ASCII");
            text::value(text::until_zero(bytes, encoding), encoding)
        }
        // Schemas whose constants have no value are refused.
        _ => Value::Null,
    }
}
