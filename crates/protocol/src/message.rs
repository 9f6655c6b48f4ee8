// SPDX-License-Identifier: Apache-2.0
//! Encoding of commands and responses: consecutive fields, each aligned to four bytes, with text and bytes prefixed by
//! a 32-bit length. [`messages!`] generates an enum, its decoder and its encoder from one table.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Reason why a message cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The type id is unknown.
    #[error("unknown message type id {0:#06x}")]
    Unknown(i32),
    /// The message is too short for its type, or a field is invalid.
    #[error("malformed message of type id {type_id:#06x}: {field}: {reason}")]
    Malformed {
        /// Type id of the record.
        type_id: i32,
        /// Name of the invalid field.
        field: &'static str,
        /// Reason.
        reason: Malformed,
    },
}

/// Reason why a field is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The message ends before the end of the field.
    #[error("{needed} bytes needed from offset {offset} of a message of {length}")]
    TooShort {
        /// Offset of the field or of its content.
        offset: usize,
        /// Bytes needed.
        needed: usize,
        /// Bytes in the message.
        length: usize,
    },
    /// The length is negative.
    #[error("negative length {0}")]
    NegativeLength(i32),
    /// The text is not valid UTF-8 (and so not ASCII).
    #[error("text is not UTF-8")]
    NotText,
    /// The address type is neither IPv4 nor IPv6.
    #[error("unknown address type {0}")]
    AddressType(i16),
}

/// Cursor over the bytes of a message.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Advances to the next multiple of four bytes, where the next field starts.
    fn align(&mut self) {
        self.at = self.at.next_multiple_of(4);
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn take(&mut self, needed: usize) -> Result<&'a [u8], Malformed> {
        let short = Malformed::TooShort {
            offset: self.at,
            needed,
            length: self.bytes.len(),
        };
        let taken = self
            .bytes
            .get(self.at..)
            .and_then(|rest| rest.get(..needed))
            .ok_or(short)?;
        self.at += needed;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }
}

/// Type of a message field.
pub(crate) trait Field<'a>: Sized {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed>;
    fn write(&self, out: &mut Vec<u8>);
    /// Formats the value for people, on one line for any content.
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

fn align(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

impl<'a> Field<'a> for i32 {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        reader.align();
        reader.array().map(Self::from_le_bytes)
    }

    fn write(&self, out: &mut Vec<u8>) {
        align(out);
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl<'a> Field<'a> for i64 {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        reader.align();
        reader.array().map(Self::from_le_bytes)
    }

    fn write(&self, out: &mut Vec<u8>) {
        align(out);
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl<'a> Field<'a> for &'a [u8] {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let length = i32::read(reader)?;
        let length = usize::try_from(length).map_err(|_| Malformed::NegativeLength(length))?;
        reader.take(length)
    }

    fn write(&self, out: &mut Vec<u8>) {
        (self.len() as i32).write(out);
        out.extend_from_slice(self);
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.escape_ascii())
    }
}

impl<'a> Field<'a> for &'a str {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        std::str::from_utf8(<&[u8]>::read(reader)?).map_err(|_| Malformed::NotText)
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.as_bytes().write(out);
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_bytes().escape_ascii())
    }
}

/// Bit 0 of a 64-bit flags word. Messages of older peers end before it, which means no flags.
impl<'a> Field<'a> for bool {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        reader.align();
        if reader.is_at_end() {
            Ok(false)
        } else {
            i64::read(reader).map(|flags| flags & 1 != 0)
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        i64::from(*self).write(out);
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// 16-bit type (1 IPv4, 2 IPv6), 16-bit port, 16 bytes of address, zero-padded.
impl<'a> Field<'a> for SocketAddr {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        reader.align();
        let kind = i16::from_le_bytes(reader.array()?);
        let port = u16::from_le_bytes(reader.array()?);
        let octets: [u8; 16] = reader.array()?;
        let ip = match kind {
            1 => IpAddr::V4(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3])),
            2 => IpAddr::V6(Ipv6Addr::from(octets)),
            other => return Err(Malformed::AddressType(other)),
        };
        Ok(SocketAddr::new(ip, port))
    }

    fn write(&self, out: &mut Vec<u8>) {
        align(out);
        let mut octets = [0; 16];
        let kind: i16 = match self.ip() {
            IpAddr::V4(ip) => {
                octets[..4].copy_from_slice(&ip.octets());
                1
            }
            IpAddr::V6(ip) => {
                octets = ip.octets();
                2
            }
        };
        out.extend_from_slice(&kind.to_le_bytes());
        out.extend_from_slice(&self.port().to_le_bytes());
        out.extend_from_slice(&octets);
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Declares an enum of messages from a table of type id, name and ordered fields.
///
/// `[unused]` before a field denotes eight bytes that are ignored when read and −1 when written. `[at least N]` before
/// the fields makes the encoder append zeros up to N bytes, for peers with a too strict length check.
macro_rules! messages {
    (
        $(#[$enum_doc:meta])*
        pub enum $enum:ident {
            $(
                $(#[$doc:meta])*
                $id:literal $variant:ident $([at least $least:literal])? {
                    $( $(#[$field_doc:meta])* $([$unused:ident])? $field:ident: $type:ty ),* $(,)?
                }
            )+
        }
    ) => {
        $(#[$enum_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $enum<'a> {
            $(
                $(#[$doc])*
                $variant { $( $(#[$field_doc])* $field: $type ),* },
            )+
        }

        impl<'a> $enum<'a> {
            /// All type ids, in the order of the table.
            pub const TYPE_IDS: &'static [i32] = &[$($id),+];

            /// Returns the type id of the record that carries the message.
            #[must_use]
            pub const fn type_id(&self) -> i32 {
                match self {
                    $( Self::$variant { .. } => $id, )+
                }
            }

            /// Decodes the payload of a record. Bytes after the last field are ignored, because some peers send unused
            /// bytes.
            ///
            /// # Errors
            /// The type id is unknown, or the payload is malformed. Every length is validated.
            pub fn decode(type_id: i32, bytes: &'a [u8]) -> Result<Self, $crate::message::DecodeError> {
                let mut reader = $crate::message::Reader::new(bytes);
                let reader = &mut reader;
                match type_id {
                    $(
                        $id => Ok(Self::$variant {
                            $(
                                $field: {
                                    $( let _ = $crate::message::messages!(@read $unused type_id $field reader i64); )?
                                    $crate::message::messages!(@read field type_id $field reader $type)
                                }
                            ),*
                        }),
                    )+
                    other => Err($crate::message::DecodeError::Unknown(other)),
                }
            }

            /// Encodes the payload into `out`, replacing its content, and returns the type id.
            pub fn encode(&self, out: &mut Vec<u8>) -> i32 {
                use $crate::message::Field;
                out.clear();
                match self {
                    $(
                        Self::$variant { $($field),* } => {
                            $(
                                $( $crate::message::messages!(@write $unused out); )?
                                $field.write(out);
                            )*
                            $( out.resize(out.len().max($least), 0); )?
                        }
                    )+
                }
                self.type_id()
            }
        }

        /// Formats the fields as `name=value` on one line.
        impl std::fmt::Display for $enum<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(
                        Self::$variant { $($field),* } => {
                            let fields: &[(&str, &dyn Fn(&mut std::fmt::Formatter<'_>) -> std::fmt::Result)] =
                                &[$((stringify!($field), &|f| $crate::message::Field::show($field, f))),*];
                            for (index, (name, show)) in fields.iter().enumerate() {
                                let separator = if index > 0 { " " } else { "" };
                                write!(f, "{separator}{name}=")?;
                                show(f)?;
                            }
                            Ok(())
                        }
                    )+
                }
            }
        }
    };
    (@read $column:ident $type_id:ident $field:ident $reader:ident $type:ty) => {
        <$type as $crate::message::Field>::read($reader).map_err(|reason| {
            $crate::message::DecodeError::Malformed { type_id: $type_id, field: stringify!($field), reason }
        })?
    };
    (@write unused $out:ident) => {
        Field::write(&-1i64, $out)
    };
}
pub(crate) use messages;
