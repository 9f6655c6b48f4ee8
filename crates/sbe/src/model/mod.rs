//! A schema with everything settled.
//!
//! Whoever holds a [`Schema`] need not know XML, search for types or add up lengths: references are resolved, defaults
//! are filled in, offsets and block lengths are computed. Types are shared by [`Arc`], nested at most
//! [`MAX_DEPTH`] deep, and never contain themselves.
//!
//! What has members, values or messages finds them by an index that was made when it was read: it is to be looked at, not
//! to be changed.

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

/// How deep composites, and groups, may be nested.
pub const MAX_DEPTH: usize = 32;
/// The most values that one composite may hold, nested ones counted.
pub const MAX_LEAVES: u32 = 65_536;
/// The most flags that a set may have: there are 64 bits, and some of them may have several names.
pub const MAX_CHOICES: usize = 256;
/// The longest that a type, a block or an offset may be, in bytes.
pub const MAX_LENGTH: u32 = i32::MAX as u32;

/// A message schema.
#[derive(Debug, Clone)]
pub struct Schema {
    /// The package or namespace of the generated code; may have dots, may be empty.
    pub package: String,
    /// What is in the `schemaId` of each message's header.
    pub id: u64,
    /// The version of this schema; the first one is 0.
    pub version: u32,
    /// The version of the application's protocol, such as `FIX.5.0SP2`.
    pub semantic_version: Option<String>,
    /// What the schema is about.
    pub description: Option<String>,
    /// How numbers lie in memory.
    pub byte_order: ByteOrder,
    /// What comes before each message.
    pub header: HeaderLayout,
    /// The types that have names of their own, in the order in which they were written.
    pub types: Vec<Arc<Type>>,
    /// The messages, in the order in which they were written.
    pub messages: Vec<Message>,
    /// Where it was written.
    pub position: Position,
    /// The messages by their ids.
    pub(crate) by_id: Index,
}

impl Schema {
    /// The message with that template id.
    #[must_use]
    pub fn message(&self, template_id: u64) -> Option<&Message> {
        self.by_id
            .find(&self.messages, &template_id, |message| message.id)
    }

    /// The type of that name, of those that the schema itself defines.
    #[must_use]
    pub fn type_named(&self, name: &str) -> Option<&Arc<Type>> {
        self.types.iter().find(|known| known.name == name)
    }
}
