// SPDX-License-Identifier: Apache-2.0
//! Messages and their blocks.

use std::sync::Arc;

use super::{Constant, DataLayout, GroupLayout, Position, Presence, Type, ValueRef};

/// Message (template).
#[derive(Debug, Clone)]
pub struct Message {
    /// Name.
    pub name: String,
    /// Template id.
    pub id: u64,
    /// Description.
    pub description: Option<String>,
    /// Schema version that introduced it (`sinceVersion`).
    pub since: u32,
    /// Schema version that deprecated it.
    pub deprecated: Option<u32>,
    /// FIX message type, such as `8`.
    pub semantic_type: Option<String>,
    /// Content.
    pub block: Block,
    /// Position in the schema source.
    pub position: Position,
}

/// Block of a message or a group entry: fields of fixed length, then groups, then data.
#[derive(Debug, Clone)]
pub struct Block {
    /// Block length in bytes, including trailing padding.
    pub length: u32,
    /// True if the schema specifies `blockLength`; otherwise it is the sum of the fields.
    pub explicit_length: bool,
    /// Fields, in order.
    pub fields: Vec<Field>,
    /// Groups, in order.
    pub groups: Vec<Group>,
    /// Variable-length data, in order.
    pub data: Vec<Data>,
}

/// Field of fixed length.
#[derive(Debug, Clone)]
pub struct Field {
    /// Name.
    pub name: String,
    /// Field id (the tag in FIX).
    pub id: u32,
    /// Description.
    pub description: Option<String>,
    /// Schema version that introduced the field or its type, whichever is later.
    pub since: u32,
    /// Schema version that deprecated it.
    pub deprecated: Option<u32>,
    /// FIX semantic type: its own, or that of its type.
    pub semantic_type: Option<String>,
    /// Type.
    pub kind: Arc<Type>,
    /// Presence: its own, or that of its type.
    pub presence: Presence,
    /// Offset from the start of the block; for a constant, the offset that an encoded field would have.
    pub offset: u32,
    /// Constant value.
    pub constant: Option<Constant>,
    /// Enumeration value the constant refers to (`valueRef`), if any.
    pub value_ref: Option<ValueRef>,
    /// Epoch of a timestamp.
    pub epoch: Option<String>,
    /// Unit of a timestamp.
    pub time_unit: Option<String>,
    /// Position in the schema source.
    pub position: Position,
}

impl Field {
    /// Returns the encoded length in bytes; 0 for constants.
    #[must_use]
    pub fn encoded_length(&self) -> u32 {
        match self.presence {
            Presence::Constant => 0,
            Presence::Required | Presence::Optional => self.kind.encoded_length(),
        }
    }
}

/// Repeating group.
#[derive(Debug, Clone)]
pub struct Group {
    /// Name.
    pub name: String,
    /// Field id (the tag in FIX).
    pub id: u32,
    /// Description.
    pub description: Option<String>,
    /// Schema version that introduced it (`sinceVersion`).
    pub since: u32,
    /// Schema version that deprecated it.
    pub deprecated: Option<u32>,
    /// FIX semantic type.
    pub semantic_type: Option<String>,
    /// Layout of the dimensions.
    pub dimensions: GroupLayout,
    /// Content of each entry.
    pub block: Block,
    /// Position in the schema source.
    pub position: Position,
}

/// Variable-length data.
#[derive(Debug, Clone)]
pub struct Data {
    /// Name.
    pub name: String,
    /// Field id (the tag in FIX).
    pub id: u32,
    /// Description.
    pub description: Option<String>,
    /// Schema version that introduced it (`sinceVersion`).
    pub since: u32,
    /// Schema version that deprecated it.
    pub deprecated: Option<u32>,
    /// FIX semantic type: its own, or that of its type.
    pub semantic_type: Option<String>,
    /// Layout of the encoding.
    pub encoding: DataLayout,
    /// Position in the schema source.
    pub position: Position,
}
