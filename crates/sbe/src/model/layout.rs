// SPDX-License-Identifier: Apache-2.0
//! Layouts of message headers, group dimensions and variable-length data.

use std::sync::Arc;

use super::{Primitive, Type};

/// Unsigned number in a header, in dimensions or in a data encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Offset from the start of the composite.
    pub offset: u32,
    /// Encoding type.
    pub primitive: Primitive,
    /// Maximum value allowed by the schema.
    pub max: u64,
    /// Constant value, if the schema defines one; it is not encoded.
    pub constant: Option<u64>,
}

impl Slot {
    /// Returns the end offset.
    #[must_use]
    pub const fn end(&self) -> u32 {
        match self.constant {
            Some(_) => self.offset,
            None => self.offset + self.primitive.size(),
        }
    }
}

/// Layout of the message header.
#[derive(Debug, Clone)]
pub struct HeaderLayout {
    /// Header composite.
    pub kind: Arc<Type>,
    /// Length in bytes.
    pub length: u32,
    /// Block length.
    pub block_length: Slot,
    /// Template id.
    pub template_id: Slot,
    /// Schema id.
    pub schema_id: Slot,
    /// Schema version (acting version).
    pub version: Slot,
    /// Number of groups after the block, if the header has it.
    pub groups: Option<Slot>,
    /// Number of data elements after the block, if the header has it.
    pub data: Option<Slot>,
}

/// Layout of group dimensions.
#[derive(Debug, Clone)]
pub struct GroupLayout {
    /// Dimensions composite.
    pub kind: Arc<Type>,
    /// Length in bytes.
    pub length: u32,
    /// Block length of each entry.
    pub block_length: Slot,
    /// Number of entries.
    pub count: Slot,
    /// Minimum number of entries.
    pub min_count: u64,
    /// Number of groups in each entry, if the dimensions have it.
    pub groups: Option<Slot>,
    /// Number of data elements in each entry, if the dimensions have it.
    pub data: Option<Slot>,
}

/// Layout of variable-length data.
#[derive(Debug, Clone)]
pub struct DataLayout {
    /// Data composite.
    pub kind: Arc<Type>,
    /// Length of the data in bytes.
    pub length: Slot,
    /// Offset of the data from the start of the composite.
    pub start: u32,
    /// Element type.
    pub primitive: Primitive,
    /// Character encoding of text, such as `UTF-8`.
    pub character_encoding: Option<String>,
}
