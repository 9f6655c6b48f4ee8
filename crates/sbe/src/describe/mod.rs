//! What lies where: a schema as tables of offsets, for people and, as JSON, for programs.

mod rows;
mod table;

use serde::Serialize;

use crate::model::{ByteOrder, Message, Schema};

/// A schema, laid out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    /// The package of the generated code.
    pub package: String,
    /// The id of the schema.
    pub id: u64,
    /// Its version.
    pub version: u32,
    /// `littleEndian` or `bigEndian`.
    pub byte_order: &'static str,
    /// What comes before each message.
    pub header: Table,
    /// The messages.
    pub messages: Vec<Table>,
}

/// A message, or the header of all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its template id; the header has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The version in which it came.
    pub since_version: u32,
    /// The version since which it should not be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<u32>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How long its block is.
    pub block_length: u32,
    /// What it holds, in the order in which it lies.
    pub rows: Vec<Row>,
}

/// A line of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// How many groups and composites it is in.
    pub depth: usize,
    /// What it is.
    pub what: What,
    /// Its name.
    pub name: String,
    /// Its id, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// Where it starts, from the start of its block; groups and data lie wherever those before them end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u32>,
    /// How many bytes it takes, or for a group each entry's block.
    pub length: u32,
    /// What it is made of.
    pub kind: String,
    /// The version in which it came.
    pub since_version: u32,
    /// The version since which it should not be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<u32>,
    /// What else is to be known: whether it may be missing, and what stands for that; the value of a constant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// What a line of a table stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum What {
    /// A field of a block.
    Field,
    /// A part of a composite.
    Member,
    /// Bytes that nobody uses.
    Gap,
    /// A group; its lines follow, one deeper.
    Group,
    /// Data without a fixed length.
    Data,
}

/// Lays a schema out.
#[must_use]
pub fn describe(schema: &Schema) -> Description {
    let mut budget = rows::Budget::new();
    Description {
        package: schema.package.clone(),
        id: schema.id,
        version: schema.version,
        byte_order: match schema.byte_order {
            ByteOrder::Little => "littleEndian",
            ByteOrder::Big => "bigEndian",
        },
        header: Table {
            name: schema.header.kind.name.clone(),
            id: None,
            since_version: 0,
            deprecated: None,
            description: schema.header.kind.description.clone(),
            block_length: schema.header.length,
            rows: rows::of_composite(&schema.header.kind, &mut budget),
        },
        messages: schema
            .messages
            .iter()
            .map(|each| message(each, &mut budget))
            .collect(),
    }
}

fn message(message: &Message, budget: &mut rows::Budget) -> Table {
    Table {
        name: message.name.clone(),
        id: Some(message.id),
        since_version: message.since,
        deprecated: message.deprecated,
        description: message.description.clone(),
        block_length: message.block.length,
        rows: rows::of_block(&message.block, budget),
    }
}
