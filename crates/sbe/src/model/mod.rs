// SPDX-License-Identifier: Apache-2.0
//! Resolved schema.
//!
//! In a [`Schema`], type references are resolved, defaults are filled in, and offsets and block lengths are computed.
//! Types are shared by [`Arc`], nested at most [`MAX_DEPTH`] deep, and never contain themselves.
//!
//! Members, values and messages are found by indexes built when the schema is read, so a schema must not be modified
//! afterwards.

mod block;
mod index;
mod layout;
mod position;
mod primitive;
mod scalar;
mod types;

pub(crate) use index::Index;
pub(crate) use types::Lost;

pub use block::{Block, Data, Field, Group, Message};
pub use layout::{DataLayout, GroupLayout, HeaderLayout, Slot};
pub use position::Position;
pub use primitive::{ByteOrder, Primitive};
pub use scalar::{Constant, Scalar};
pub use types::{
    Choice, Composite, Enum, ExplicitValues, Member, Presence, Set, Simple, Type, TypeKind,
    ValidValue, ValueRef,
};

use std::sync::Arc;

/// Maximum nesting depth of composites and of groups.
pub const MAX_DEPTH: usize = 32;
/// Maximum number of values in one composite, including nested ones.
pub const MAX_LEAVES: u32 = 65_536;
/// Maximum number of choices in a set. There are 64 bits, but a bit can have several names.
pub const MAX_CHOICES: usize = 256;
/// Maximum length or offset of a type or block, in bytes.
pub const MAX_LENGTH: u32 = i32::MAX as u32;

/// Message schema.
#[derive(Debug, Clone)]
pub struct Schema {
    /// Package (namespace) of the generated code; can contain dots, can be empty.
    pub package: String,
    /// Schema id.
    pub id: u64,
    /// Schema version; the first one is 0.
    pub version: u32,
    /// Version of the application protocol, such as `FIX.5.0SP2`.
    pub semantic_version: Option<String>,
    /// Description.
    pub description: Option<String>,
    /// Byte order.
    pub byte_order: ByteOrder,
    /// Layout of the message header.
    pub header: HeaderLayout,
    /// Named types, in source order.
    pub types: Vec<Arc<Type>>,
    /// Messages, in source order.
    pub messages: Vec<Message>,
    /// Position in the schema source.
    pub position: Position,
    /// Messages by template id.
    pub(crate) by_id: Index,
}

impl Schema {
    /// Returns the message with this template id.
    #[must_use]
    pub fn message(&self, template_id: u64) -> Option<&Message> {
        self.by_id
            .find(&self.messages, &template_id, |message| message.id)
    }

    /// Returns the type with this name, if the schema defines one.
    #[must_use]
    pub fn type_named(&self, name: &str) -> Option<&Arc<Type>> {
        self.types.iter().find(|known| known.name == name)
    }
}
