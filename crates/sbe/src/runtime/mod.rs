// SPDX-License-Identifier: Apache-2.0
//! Runtime support for generated codecs: no allocation, no standard library, and no panic on any input.
//!
//! Generated code holds the fixed part of a block as a reference to an array of its exact length. This one conversion
//! is the bounds check; the offsets of fields are constants, which [`part`] checks when the codec is compiled.

mod error;
mod fault;
mod read;
mod text;
mod write;

pub use error::{DecodeError, EncodeError};
pub use read::{
    Cut, Header, MAX_EMPTY_ENTRIES, Tail, Then, added, block, count, entries, numbers, part,
    schema_is, template_is,
};
pub use text::{FixedText, SetDisplay, Text, TextOrNull};
pub use write::{Writer, fill, length, part_mut, set_numbers};
