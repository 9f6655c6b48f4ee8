// SPDX-License-Identifier: Apache-2.0
//! Declaration of messages, from which structs, encoding and decoding derive. Crate `taran-cluster` declares those between members
//! with it; it is no part of the API.

use taran_sbe::runtime::DecodeError;
#[doc(hidden)]
pub use taran_sbe::runtime::schema_is;
use thiserror::Error;

/// Reason why received bytes are not an expected message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MessageError {
    /// Another schema, or a message that ends too early.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
    /// A message that is not expected on this stream, or that a newer version of the protocol added: to be ignored.
    #[error("a message with the unexpected template id {template_id}")]
    UnexpectedTemplate {
        /// Template id of the message.
        template_id: u64,
    },
    /// Text that is not UTF-8, of which ASCII is a part.
    #[error("the text of `{field}` is not ASCII")]
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

/// Converts a field for its encoder, whose type is given where it is not the only one.
#[doc(hidden)]
#[macro_export]
macro_rules! to_wire {
    ($value:expr) => {
        ToWire::to_wire($value)
    };
    ($value:expr, $wire:ty) => {
        ToWire::<$wire>::to_wire($value)
    };
}

/// Declares structs of messages. Of each message: name, module and types of its codec, its fields, and behind a semicolon its
/// variable-length data.
#[doc(hidden)]
#[macro_export]
macro_rules! structs {
    (
        $(
            $(#[$doc:meta])*
            $name:ident $(<$lifetime:lifetime>)? = $module:ident::{$decoder:ident, $encoder:ident} {
                $($(#[$field_doc:meta])* $field:ident: $type:ty $(as $wire:ty)?,)*
                ; $($(#[$data_doc:meta])* $data:ident: $data_type:ty,)*
            }
        )*
    ) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $name $(<$lifetime>)? {
                $($(#[$field_doc])* pub $field: $type,)*
                $($(#[$data_doc])* pub $data: $data_type,)*
            }

            impl $(<$lifetime>)? $name $(<$lifetime>)? {
                /// Template id of the message.
                pub const TEMPLATE_ID: u64 = cluster::$module::$decoder::TEMPLATE_ID;

                /// Writes the message with its header. Returns its length in bytes.
                ///
                /// # Errors
                /// The buffer is too small.
                pub fn encode(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
                    let mut encoder = cluster::$module::$encoder::encode(buffer)?;
                    $(encoder.$field($crate::to_wire!(self.$field $(, $wire)?));)*
                    $(let encoder = encoder.$data(self.$data)?;)*
                    Ok(encoder.finish())
                }

                pub(super) fn read(
                    bytes: & $($lifetime)? [u8],
                    block_length: u64,
                    version: u64,
                ) -> Result<Self, MessageError> {
                    let decoder = cluster::$module::$decoder::wrap(bytes, block_length, version)?;
                    let message = decoder;
                    $(let ($data, decoder) = decoder.$data()?;)*
                    let _ = decoder;
                    Ok(Self {
                        $($field: FromWire::from_wire(message.$field(), stringify!($field))?,)*
                        $($data: FromWire::from_wire($data, stringify!($data))?,)*
                    })
                }
            }
        )*
    };
}

/// Declares an enum of messages, of structs that [`structs`] declares. The messages of a stream are one enum.
#[doc(hidden)]
#[macro_export]
macro_rules! stream {
    (
        $(#[$enum_doc:meta])*
        enum $enum:ident $(<$enum_lifetime:lifetime>)? {
            $($name:ident $(<$lifetime:lifetime>)?,)*
        }
    ) => {
        $(#[$enum_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $enum $(<$enum_lifetime>)? {
            $(
                #[doc = concat!("[`", stringify!($name), "`].")]
                $name($name $(<$lifetime>)?),
            )*
        }

        impl $(<$enum_lifetime>)? $enum $(<$enum_lifetime>)? {
            /// Reads a message with its header. Bytes behind the message are ignored.
            ///
            /// # Errors
            /// The bytes are of another schema or end too early, the message is none of this enum, a text is not ASCII, or a
            /// boolean is neither 0 nor 1.
            pub fn decode(bytes: & $($enum_lifetime)? [u8]) -> Result<Self, MessageError> {
                let (header, body) = cluster::header(bytes)?;
                $crate::protocol::declare::schema_is(cluster::SCHEMA_ID, &header)?;
                match header.template_id {
                    $(
                        $name::TEMPLATE_ID => {
                            $name::read(body, header.block_length, header.version).map(Self::$name)
                        }
                    )*
                    template_id => Err(MessageError::UnexpectedTemplate { template_id }),
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
        }
    };
}

#[doc(hidden)]
pub use super::wire::{FromWire, ToWire};
