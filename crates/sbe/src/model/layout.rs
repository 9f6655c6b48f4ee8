//! The composites that frame things: message headers, dimensions of groups, lengths of data.

use std::sync::Arc;

use super::{Primitive, Type};

/// An unsigned number that frames something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Where it starts, from the start of its composite.
    pub offset: u32,
    /// How it is sent.
    pub primitive: Primitive,
    /// The greatest value that the schema allows.
    pub max: u64,
    /// The value that it always has, where the schema says so: then it is not sent.
    pub constant: Option<u64>,
}

impl Slot {
    /// Where it ends.
    #[must_use]
    pub const fn end(&self) -> u32 {
        match self.constant {
            Some(_) => self.offset,
            None => self.offset + self.primitive.size(),
        }
    }
}

/// What comes before each message.
#[derive(Debug, Clone)]
pub struct HeaderLayout {
    /// The composite itself.
    pub kind: Arc<Type>,
    /// How long it is.
    pub length: u32,
    /// The length of the message's block.
    pub block_length: Slot,
    /// Which message it is.
    pub template_id: Slot,
    /// Which schema it is from.
    pub schema_id: Slot,
    /// Which version of the schema the sender has.
    pub version: Slot,
    /// How many groups follow the block, where the header tells.
    pub groups: Option<Slot>,
    /// How many pieces of data follow the block, where the header tells.
    pub data: Option<Slot>,
}

/// What comes before the entries of a group.
#[derive(Debug, Clone)]
pub struct GroupLayout {
    /// The composite itself.
    pub kind: Arc<Type>,
    /// How long it is.
    pub length: u32,
    /// The length of each entry's block.
    pub block_length: Slot,
    /// How many entries there are.
    pub count: Slot,
    /// How many entries there are at least.
    pub min_count: u64,
    /// How many groups each entry has, where the dimensions tell.
    pub groups: Option<Slot>,
    /// How many pieces of data each entry has, where the dimensions tell.
    pub data: Option<Slot>,
}

/// How bytes or text without a fixed length are sent.
#[derive(Debug, Clone)]
pub struct DataLayout {
    /// The composite itself.
    pub kind: Arc<Type>,
    /// How many bytes there are.
    pub length: Slot,
    /// Where the bytes start, from the start of the composite.
    pub start: u32,
    /// What they are, one by one.
    pub primitive: Primitive,
    /// The encoding, where they are text, such as `UTF-8`.
    pub character_encoding: Option<String>,
}
