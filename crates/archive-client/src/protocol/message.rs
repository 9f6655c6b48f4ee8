// SPDX-License-Identifier: Apache-2.0
//! Declaration of messages, from which structs, encoding and decoding derive.

use taran_sbe::runtime::{DecodeError, EncodeError};
use thiserror::Error;

/// A message of the control protocol.
pub trait Message: Copy {
    /// Template id of the message.
    const TEMPLATE_ID: u16;

    /// Writes the message with its header. Returns its length in bytes.
    ///
    /// # Errors
    /// The buffer is too small.
    fn encode(&self, buffer: &mut [u8]) -> Result<usize, EncodeError>;
}

/// Reason why received bytes are not a message.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MessageError {
    /// Another schema, or a message that ends too early.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
    /// A message that is not expected on this stream, or that a newer version of the protocol added.
    #[error("a message with the unexpected template id {template_id}")]
    UnexpectedTemplate {
        /// Template id of the message.
        template_id: u64,
    },
    /// Text that is not valid UTF-8. The protocol specifies ASCII, which is a subset.
    #[error("the text of `{field}` is not ASCII or UTF-8")]
    InvalidText {
        /// Name of the field.
        field: &'static str,
    },
    /// A boolean that is neither 0 nor 1.
    #[error("`{field}` is {value}; it is a boolean: 0 or 1")]
    InvalidBoolean {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: i32,
    },
}

taran_core::debug_is_display!(MessageError);

/// Declares an enum of messages. The text of a message is that of the official event log: `name=value`, separated by commas.
/// The input lists for each message: the name of its struct; module, decoder and encoder of its
/// codec; the ids that it starts with; its fields; after a semicolon, its variable-length data in the order of the schema.
macro_rules! messages {
    (
        $(#[$enum_doc:meta])*
        enum $enum:ident<$enum_lifetime:lifetime> {
            $(
                $(#[$doc:meta])*
                $name:ident $(<$lifetime:lifetime>)? = $module:ident::{$decoder:ident, $encoder:ident} [$($id:ident)*] {
                    $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
                    ; $($(#[$data_doc:meta])* $data:ident: $data_type:ty,)*
                }
            )*
        }
    ) => {
        $(#[$enum_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $enum<$enum_lifetime> {
            $($(#[$doc])* $name($name $(<$lifetime>)?),)*
        }

        impl<$enum_lifetime> $enum<$enum_lifetime> {
            /// Reads a message with its header. Bytes behind the message are ignored.
            ///
            /// # Errors
            /// The bytes are of another schema or end too early, the template id belongs to no message of this enum, a text is
            /// not valid UTF-8, or a boolean is neither 0 nor 1.
            pub fn decode(bytes: &$enum_lifetime [u8]) -> Result<Self, MessageError> {
                let (header, body) = control::header(bytes)?;
                taran_sbe::runtime::schema_is(control::SCHEMA_ID, &header)?;
                match u16::try_from(header.template_id) {
                    $(Ok($name::TEMPLATE_ID) => {
                        $name::read(body, header.block_length, header.version).map(Self::$name)
                    })*
                    _ => Err(MessageError::UnexpectedTemplate {
                        template_id: header.template_id,
                    }),
                }
            }

            /// Writes the message with its header. Returns its length in bytes.
            ///
            /// # Errors
            /// The buffer is too small.
            pub fn encode(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
                match self {
                    $(Self::$name(message) => message.encode(buffer),)*
                }
            }

            /// Returns the template id of the message.
            #[must_use]
            pub fn template_id(&self) -> u16 {
                match self {
                    $(Self::$name(_) => $name::TEMPLATE_ID,)*
                }
            }
        }

        impl std::fmt::Display for $enum<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$name(message) => message.fmt(f),)*
                }
            }
        }

        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $name $(<$lifetime>)? {
                $(
                    #[doc = concat!("Id: `", stringify!($id), "`.")]
                    pub $id: i64,
                )*
                $($(#[$field_doc])* pub $field: $type,)*
                $($(#[$data_doc])* pub $data: $data_type,)*
            }

            impl $(<$lifetime>)? Message for $name $(<$lifetime>)? {
                const TEMPLATE_ID: u16 = control::$module::$decoder::TEMPLATE_ID as u16;

                fn encode(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
                    let mut encoder = control::$module::$encoder::encode(buffer)?;
                    $(encoder.$id(self.$id);)*
                    $(encoder.$field(ToWire::to_wire(self.$field));)*
                    $(let encoder = encoder.$data(self.$data)?;)*
                    Ok(encoder.finish())
                }
            }

            impl $(<$lifetime>)? std::fmt::Display for $name $(<$lifetime>)? {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    let fields = &mut Fields::new(f);
                    $(fields.field(stringify!($id), &self.$id)?;)*
                    $(fields.field(stringify!($field), &self.$field)?;)*
                    $(fields.field(stringify!($data), &self.$data)?;)*
                    Ok(())
                }
            }

            impl $(<$lifetime>)? $name $(<$lifetime>)? {
                fn read(bytes: & $($lifetime)? [u8], block_length: u64, version: u64) -> Result<Self, MessageError> {
                    let decoder = control::$module::$decoder::wrap(bytes, block_length, version)?;
                    let message = decoder;
                    $(let ($data, decoder) = decoder.$data()?;)*
                    let _ = decoder;
                    Ok(Self {
                        $($id: message.$id(),)*
                        $($field: FromWire::from_wire(message.$field(), stringify!($field))?,)*
                        $($data: FromWire::from_wire($data, stringify!($data))?,)*
                    })
                }
            }
        )*
    };
}

pub(super) use messages;
