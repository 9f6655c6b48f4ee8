// SPDX-License-Identifier: Apache-2.0
//! Schema layout as tables of offsets, as text or JSON.

mod rows;
mod table;

use serde::Serialize;

use crate::model::{ByteOrder, Message, Schema};

/// Layout of a schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    /// Package of the generated code.
    pub package: String,
    /// Schema id.
    pub id: u64,
    /// Schema version.
    pub version: u32,
    /// `littleEndian` or `bigEndian`.
    pub byte_order: &'static str,
    /// Message header.
    pub header: Table,
    /// Messages.
    pub messages: Vec<Table>,
}

/// Layout of a message or of the message header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Table {
    /// Name.
    pub name: String,
    /// Template id; `None` for the header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// Schema version that introduced it (`sinceVersion`).
    pub since_version: u32,
    /// Schema version that deprecated it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<u32>,
    /// Description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Block length in bytes.
    pub block_length: u32,
    /// Elements in layout order.
    pub rows: Vec<Row>,
}

/// Row of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Number of enclosing groups and composites.
    pub depth: usize,
    /// Kind of element.
    pub what: What,
    /// Name.
    pub name: String,
    /// Field id, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// Offset from the start of its block; `None` for groups and data, whose position depends on the preceding
    /// elements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u32>,
    /// Length in bytes; for a group, the block length of an entry.
    pub length: u32,
    /// Type.
    pub kind: String,
    /// Schema version that introduced it (`sinceVersion`).
    pub since_version: u32,
    /// Schema version that deprecated it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<u32>,
    /// Presence and null value, or the value of a constant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Kind of element that a row describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum What {
    /// Field of a block.
    Field,
    /// Member of a composite.
    Member,
    /// Padding.
    Gap,
    /// Group; its rows follow at the next depth.
    Group,
    /// Variable-length data.
    Data,
}

/// Returns the layout of a schema.
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
