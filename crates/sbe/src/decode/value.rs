//! What messages hold.

use std::borrow::Cow;

use super::number;
use crate::model::{ByteOrder, Primitive, Scalar};

/// A message that was decoded.
#[derive(Debug, Clone, PartialEq)]
pub struct Message<'data> {
    /// Its name.
    pub name: &'data str,
    /// The id of the template in its header.
    pub template_id: u64,
    /// The id of the schema in its header.
    pub schema_id: u64,
    /// The version of the schema that its sender has.
    pub version: u64,
    /// The length of its block, as its header has it.
    pub block_length: u64,
    /// Where it starts, from the start of all bytes that were handed in.
    pub offset: usize,
    /// How many bytes it has, its header among them.
    pub length: usize,
    /// What it holds, by name, in the order of the schema.
    pub fields: Vec<(&'data str, Value<'data>)>,
}

/// What a field, a group or data holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'data> {
    /// Nothing: its null value was sent.
    Null,
    /// A number, or a flag set whose bits have no names.
    Integer(i128),
    /// A number of four bytes.
    Float(f32),
    /// A number of eight bytes.
    Double(f64),
    /// One character or several.
    Text(Cow<'data, str>),
    /// Bytes without an encoding.
    Bytes(&'data [u8]),
    /// Bytes that should be text in that encoding, and are not, or it is not known here.
    NotText {
        /// The encoding.
        encoding: &'data str,
        /// The bytes.
        bytes: &'data [u8],
    },
    /// An array of a fixed length.
    Numbers(Numbers<'data>),
    /// A value of an enumeration, by its name.
    Named(&'data str),
    /// The flags that are set.
    Flags {
        /// Those that have names.
        named: Vec<&'data str>,
        /// The others, by their bits.
        unknown: Vec<u8>,
    },
    /// A composite, or an entry of a group.
    Object(Vec<(&'data str, Value<'data>)>),
    /// The entries of a group.
    List(Vec<Value<'data>>),
}

/// An array of numbers, as it was sent.
#[derive(Debug, Clone, Copy)]
pub struct Numbers<'data> {
    pub(super) primitive: Primitive,
    pub(super) byte_order: ByteOrder,
    pub(super) null: Option<Scalar>,
    pub(super) bytes: &'data [u8],
}

impl PartialEq for Numbers<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'data> Numbers<'data> {
    /// Its elements.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Value<'data>> + use<'data> {
        let Self {
            primitive,
            byte_order,
            null,
            bytes,
        } = *self;
        bytes
            .chunks_exact(primitive.size() as usize)
            .map(move |element| number::value(element, primitive, byte_order, null))
    }
}
