// SPDX-License-Identifier: Apache-2.0
//! Decoding of messages, blocks, groups and data.

use super::reader::{Part, Reader};
use super::{DecodeError, Message, Reason, Value, leaf, text};
use crate::model::{
    Block, Composite, Data, Field, Group, Presence, Primitive, Scalar, Type, TypeKind,
};
use crate::runtime::MAX_EMPTY_ENTRIES;

type Fields<'data> = Vec<(&'data str, Value<'data>)>;

impl<'data> Reader<'data> {
    pub(super) fn message(mut self) -> Result<Message<'data>, DecodeError> {
        let schema = self.schema;
        let layout = &schema.header;
        let header = self.take(layout.length.into(), "the header of a message")?;
        let schema_id = self.slot(header, layout.schema_id)?;
        if schema_id != schema.id {
            let (found, expected) = (schema_id, schema.id);
            return Err(self.error(0, Reason::SchemaId { found, expected }));
        }
        let template_id = self.slot(header, layout.template_id)?;
        let Some(message) = schema.message(template_id) else {
            return Err(self.error(0, Reason::TemplateId(template_id)));
        };
        self.version = self.slot(header, layout.version)?;
        self.enter(&message.name);
        let block_length = self.slot(header, layout.block_length)?;
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

    /// Decodes the fields of a block of `length` bytes, and the groups and data after it.
    fn block(&mut self, block: &'data Block, length: u64) -> Result<Fields<'data>, DecodeError> {
        let part = self.take(length, "a block")?;
        let mut fields = Vec::new();
        for field in &block.fields {
            if self.is_known(field.since)? {
                let value = self.within(&field.name, |reader| reader.field(field, part))?;
                fields.push((field.name.as_str(), value));
            }
        }
        for group in &block.groups {
            if self.is_known(group.since)? {
                let value = self.within(&group.name, |reader| reader.group(group))?;
                fields.push((group.name.as_str(), value));
            }
        }
        for data in &block.data {
            if self.is_known(data.since)? {
                let value = self.within(&data.name, |reader| reader.data(data))?;
                fields.push((data.name.as_str(), value));
            }
        }
        Ok(fields)
    }

    /// Returns true if the acting version includes elements introduced in `since`. An omitted element also counts as a
    /// step.
    fn is_known(&mut self, since: u32) -> Result<bool, DecodeError> {
        self.step(1)?;
        Ok(u64::from(since) <= self.version)
    }

    fn group(&mut self, group: &'data Group) -> Result<Value<'data>, DecodeError> {
        let dimensions = &group.dimensions;
        let part = self.take(dimensions.length.into(), "the dimensions of a group")?;
        let block_length = self.slot(part, dimensions.block_length)?;
        let count = self.count(part, group, block_length)?;
        let mut entries = Vec::new();
        for index in 0..count {
            self.step(1)?;
            let entry =
                self.within_entry(index, |reader| reader.block(&group.block, block_length))?;
            entries.push(Value::Object(entry));
        }
        Ok(Value::List(entries))
    }

    /// Returns the number of entries of a group.
    fn count(&self, part: Part<'_>, group: &Group, block_length: u64) -> Result<u64, DecodeError> {
        let slot = group.dimensions.count;
        let count = match self.scalar(part, slot.offset, slot.primitive)? {
            Scalar::Integer(count) => count,
            // Unreachable: validation guarantees that counts are integers.
            Scalar::Real(_) => 0,
        };
        let (min, mut max) = (group.dimensions.min_count, slot.max);
        if block_length == 0 && count > MAX_EMPTY_ENTRIES.into() && self.is_bare(&group.block) {
            max = max.min(MAX_EMPTY_ENTRIES);
        }
        u64::try_from(count)
            .ok()
            .filter(|count| (min..=max).contains(count))
            .ok_or_else(|| self.error(part.start, Reason::BadCount { count, min, max }))
    }

    /// Returns true if no group or data of the acting version follows the block.
    fn is_bare(&self, block: &Block) -> bool {
        let mut groups = block.groups.iter().map(|group| group.since);
        let mut data = block.data.iter().map(|data| data.since);
        let is_known = |since: u32| u64::from(since) <= self.version;
        !groups.any(is_known) && !data.any(is_known)
    }

    fn data(&mut self, data: &'data Data) -> Result<Value<'data>, DecodeError> {
        let encoding = &data.encoding;
        let part = self.take(encoding.start.into(), "the length of data")?;
        let length = self.slot(part, encoding.length)?;
        let max = encoding.length.max;
        if length > max {
            return Err(self.error(part.start, Reason::TooLong { length, max }));
        }
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
            return self.constant(field.constant.as_ref(), &field.kind);
        }
        self.value(&field.kind, field.presence, part, field.offset.into())
    }

    /// Decodes the value at `offset` from the start of its block.
    fn value(
        &mut self,
        kind: &'data Type,
        presence: Presence,
        part: Part<'data>,
        offset: u64,
    ) -> Result<Value<'data>, DecodeError> {
        match &kind.kind {
            TypeKind::Composite(composite) => self.composite(composite, part, offset),
            TypeKind::Simple(simple) if simple.presence == Presence::Constant => {
                self.constant(simple.constant.as_ref(), kind)
            }
            TypeKind::Simple(simple) => {
                let bytes = self.bytes_of(kind, part, offset)?;
                Ok(leaf::simple(
                    simple,
                    presence,
                    bytes,
                    self.schema.byte_order,
                ))
            }
            TypeKind::Enum(enumeration) => {
                let bytes = self.bytes_of(kind, part, offset)?;
                Ok(leaf::enumeration(
                    enumeration,
                    bytes,
                    self.schema.byte_order,
                ))
            }
            TypeKind::Set(set) => {
                let bytes = self.bytes_of(kind, part, offset)?;
                let (named, unknown) = leaf::set(set, bytes, self.schema.byte_order);
                self.step(named.len() + unknown.len())?;
                Ok(Value::Flags { named, unknown })
            }
        }
    }

    fn composite(
        &mut self,
        composite: &'data Composite,
        part: Part<'data>,
        offset: u64,
    ) -> Result<Value<'data>, DecodeError> {
        let mut members = Vec::new();
        for member in &composite.members {
            if self.is_known(member.since)? {
                let offset = offset + u64::from(member.offset);
                let presence = member.kind.presence();
                let value = self.within(&member.name, |reader| {
                    reader.value(&member.kind, presence, part, offset)
                })?;
                members.push((member.name.as_str(), value));
            }
        }
        Ok(Value::Object(members))
    }

    fn bytes_of(
        &self,
        kind: &Type,
        part: Part<'data>,
        offset: u64,
    ) -> Result<&'data [u8], DecodeError> {
        if kind.encoded_length() == 0 {
            // The offset can be beyond the block of an older sender.
            return Ok(&[]);
        }
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
}
