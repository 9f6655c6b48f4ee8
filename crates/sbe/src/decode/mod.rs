// SPDX-License-Identifier: Apache-2.0
//! Schema-driven decoder: decodes messages to values without generated code.
//!
//! Intended for tools and tests rather than for the data path: it allocates for each value. Untrusted input is safe:
//! the decoder reads nothing outside the input, and its work and memory are bounded.
//!
//! Schema evolution follows the standard: elements that the acting version does not include are omitted, and fields
//! that this schema does not know are skipped by the block length. Groups and data that a newer version appends to the
//! end of a message are neither decoded nor part of its length.

mod block;
mod error;
mod frames;
mod json;
mod leaf;
mod number;
mod reader;
mod text;
mod value;

pub use error::{DecodeError, Reason};
pub use frames::{Frame, Framing, LengthSize, frames};
pub use value::{Message, Numbers, Value};

use crate::model::Schema;
use reader::Reader;

/// Default limit of the number of values in one message; see [`Decoder::with_limit`].
pub const DEFAULT_LIMIT: usize = 1 << 20;

/// Decoder for the messages of one schema.
#[derive(Debug, Clone, Copy)]
pub struct Decoder<'schema> {
    schema: &'schema Schema,
    limit: usize,
}

impl<'schema> Decoder<'schema> {
    /// Returns a decoder for messages of any version of the schema.
    #[must_use]
    pub const fn new(schema: &'schema Schema) -> Self {
        Self {
            schema,
            limit: DEFAULT_LIMIT,
        }
    }

    /// Returns a decoder with another limit of the number of values in one message.
    ///
    /// Fields, members, entries, choices that are set and data count as one value each. Elements omitted because of the
    /// acting version count too: together with constants and empty entries they take no bytes of the message, but take
    /// time. The work per message is therefore bounded by this limit and the input length, whatever the schema and the
    /// input.
    #[must_use]
    pub const fn with_limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Decodes the message at the start of `bytes`. Its `length` is the offset of its end.
    ///
    /// # Errors
    ///
    /// The bytes do not start with a complete message of this schema.
    pub fn message<'data>(&self, bytes: &'data [u8]) -> Result<Message<'data>, DecodeError>
    where
        'schema: 'data,
    {
        Reader::new(self.schema, bytes, self.limit).message()
    }

    /// Decodes a message, and rejects one of length 0, which would repeat without end.
    fn some<'data>(&self, bytes: &'data [u8]) -> Result<Message<'data>, DecodeError>
    where
        'schema: 'data,
    {
        let message = self.message(bytes)?;
        if message.length > 0 {
            return Ok(message);
        }
        Err(DecodeError {
            offset: 0,
            path: message.name.to_owned(),
            reason: Reason::NoBytes,
        })
    }

    /// Returns an iterator over consecutive messages. It ends after the first error.
    pub fn messages<'data>(
        &self,
        bytes: &'data [u8],
    ) -> impl Iterator<Item = Result<Message<'data>, DecodeError>> + use<'data, 'schema>
    where
        'schema: 'data,
    {
        let decoder = *self;
        let mut offset = 0;
        std::iter::from_fn(move || {
            let rest = bytes.get(offset..).filter(|rest| !rest.is_empty())?;
            let found = match decoder.some(rest) {
                Ok(mut message) => {
                    message.offset = offset;
                    offset += message.length;
                    Ok(message)
                }
                Err(mut error) => {
                    error.offset += offset;
                    offset = bytes.len();
                    Err(error)
                }
            };
            Some(found)
        })
    }
}
