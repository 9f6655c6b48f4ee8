//! Messages, and what they are made of.

use std::sync::Arc;

use super::{Constant, DataLayout, GroupLayout, Position, Presence, Type, ValueRef};

/// A message, also known as a template.
#[derive(Debug, Clone)]
pub struct Message {
    /// Its name.
    pub name: String,
    /// What is in the `templateId` of its header.
    pub id: u64,
    /// What it is for.
    pub description: Option<String>,
    /// The version of the schema in which it came.
    pub since: u32,
    /// The version since which it should not be used any more.
    pub deprecated: Option<u32>,
    /// What it is in FIX, such as `8`.
    pub semantic_type: Option<String>,
    /// What it holds.
    pub block: Block,
    /// Where it was written.
    pub position: Position,
}

/// What a message, or each entry of a group, holds: fields of a fixed length, then groups, then data.
#[derive(Debug, Clone)]
pub struct Block {
    /// How many bytes the fields take, room that was left behind them counted.
    pub length: u32,
    /// Whether the schema gives the length, rather than leaving it to the sum of the fields.
    pub explicit_length: bool,
    /// The fields, in their order.
    pub fields: Vec<Field>,
    /// The groups, in their order.
    pub groups: Vec<Group>,
    /// What has no fixed length, in its order.
    pub data: Vec<Data>,
}

/// A field of a fixed length.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its number, or tag.
    pub id: u32,
    /// What it is for.
    pub description: Option<String>,
    /// The version of the schema in which it came, or its type, if that is later.
    pub since: u32,
    /// The version since which it should not be used any more.
    pub deprecated: Option<u32>,
    /// What it stands for in FIX, its own or that of its type.
    pub semantic_type: Option<String>,
    /// What it is.
    pub kind: Arc<Type>,
    /// Whether it may be null, or is constant: its own word, or else that of its type.
    pub presence: Presence,
    /// Where it starts, from the start of the block; for a constant, where it would.
    pub offset: u32,
    /// The value of a constant.
    pub constant: Option<Constant>,
    /// Which value of an enumeration the constant is, where it is given so.
    pub value_ref: Option<ValueRef>,
    /// From when a time counts.
    pub epoch: Option<String>,
    /// In what a time counts.
    pub time_unit: Option<String>,
    /// Where it was written.
    pub position: Position,
}

impl Field {
    /// How many bytes of the block it takes.
    #[must_use]
    pub fn encoded_length(&self) -> u32 {
        match self.presence {
            Presence::Constant => 0,
            Presence::Required | Presence::Optional => self.kind.encoded_length(),
        }
    }
}

/// Any number of entries, each with the same content.
#[derive(Debug, Clone)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Its number, or tag.
    pub id: u32,
    /// What it is for.
    pub description: Option<String>,
    /// The version of the schema in which it came.
    pub since: u32,
    /// The version since which it should not be used any more.
    pub deprecated: Option<u32>,
    /// What it is in FIX.
    pub semantic_type: Option<String>,
    /// What comes before the entries.
    pub dimensions: GroupLayout,
    /// What each entry holds.
    pub block: Block,
    /// Where it was written.
    pub position: Position,
}

/// Bytes or text without a fixed length.
#[derive(Debug, Clone)]
pub struct Data {
    /// Its name.
    pub name: String,
    /// Its number, or tag.
    pub id: u32,
    /// What it is for.
    pub description: Option<String>,
    /// The version of the schema in which it came.
    pub since: u32,
    /// The version since which it should not be used any more.
    pub deprecated: Option<u32>,
    /// What it stands for in FIX, its own or that of its type.
    pub semantic_type: Option<String>,
    /// How it is sent.
    pub encoding: DataLayout,
    /// Where it was written.
    pub position: Position,
}
