//! Messages to values by their schema, without generated code.
//!
//! For tools and tests rather than for the road: it takes memory for each value. Bytes that come from anywhere are safe
//! to hand in: nothing outside of them is read, and what they can make the decoder do and build is bounded.
//!
//! Older and newer messages are read as the standard has it: what the sender's version does not know is left out of
//! the values, and what this schema does not know is passed over as far as a block's length tells. Groups and data that
//! a newer version has added behind a message's last ones are not seen, and not part of its length.

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

/// The most values that one message may have, unless somebody says otherwise; see [`Decoder::with_limit`].
pub const DEFAULT_LIMIT: usize = 1 << 20;

/// Decodes the messages of one schema.
#[derive(Debug, Clone, Copy)]
pub struct Decoder<'schema> {
    schema: &'schema Schema,
    limit: usize,
}

impl<'schema> Decoder<'schema> {
    /// A decoder for messages of that schema, of whatever version of it.
    #[must_use]
    pub const fn new(schema: &'schema Schema) -> Self {
        Self {
            schema,
            limit: DEFAULT_LIMIT,
        }
    }

    /// The same decoder with another bound on how many values one message may have.
    ///
    /// Fields, members, entries, flags that are set and data are a value each, and so is what was left out because the
    /// sender does not know it: constants and entries without bytes cost a message nothing, and its reader time. Whatever
    /// the schema and the bytes, that is in proportion to this limit and to how many bytes there are.
    #[must_use]
    pub const fn with_limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// The message at the start of some bytes. Its `length` says where it ends.
    ///
    /// # Errors
    ///
    /// When the bytes do not start with a whole message of this schema.
    pub fn message<'data>(&self, bytes: &'data [u8]) -> Result<Message<'data>, DecodeError>
    where
        'schema: 'data,
    {
        Reader::new(self.schema, bytes, self.limit).message()
    }

    /// The same, but for one of no bytes, which there would be endlessly many of.
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

    /// The messages that lie one behind the other in some bytes. After an error there are no more.
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
