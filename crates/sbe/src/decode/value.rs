// SPDX-License-Identifier: Apache-2.0
//! Decoded messages and values.

use std::borrow::Cow;

use super::number;
use crate::model::{ByteOrder, Primitive, Scalar};

/// Decoded message.
#[derive(Debug, Clone, PartialEq)]
pub struct Message<'data> {
    /// Name.
    pub name: &'data str,
    /// Template id in the header.
    pub template_id: u64,
    /// Schema id in the header.
    pub schema_id: u64,
    /// Acting version in the header.
    pub version: u64,
    /// Block length in the header.
    pub block_length: u64,
    /// Offset from the start of the input.
    pub offset: usize,
    /// Length in bytes, including the header.
    pub length: usize,
    /// Values by name, in schema order.
    pub fields: Vec<(&'data str, Value<'data>)>,
}

/// Value of a field, a group or a data element.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'data> {
    /// Null value.
    Null,
    /// Integer, or a set whose choices have no names.
    Integer(i128),
    /// Single-precision number.
    Float(f32),
    /// Double-precision number.
    Double(f64),
    /// Text of one or more characters.
    Text(Cow<'data, str>),
    /// Bytes without a character encoding.
    Bytes(&'data [u8]),
    /// Bytes of a text that is invalid in its encoding, or whose encoding is unknown.
    NotText {
        /// Encoding name.
        encoding: &'data str,
        /// Raw bytes.
        bytes: &'data [u8],
    },
    /// Array of fixed length.
    Numbers(Numbers<'data>),
    /// Enumeration value, by name.
    Named(&'data str),
    /// Set.
    Flags {
        /// Names of the choices that are set.
        named: Vec<&'data str>,
        /// Unnamed bits that are set.
        unknown: Vec<u8>,
    },
    /// Composite or group entry.
    Object(Vec<(&'data str, Value<'data>)>),
    /// Group entries.
    List(Vec<Value<'data>>),
}

/// Undecoded array of numbers.
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
    /// Returns an iterator over the elements.
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
