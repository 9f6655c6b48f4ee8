// SPDX-License-Identifier: Apache-2.0
//! Conversions between fields of codecs and those of messages.

use taran_sbe::runtime::Text;

use super::version::ProtocolVersion;
use super::{ControlResponseCode, MessageError, RecordingSignal, SourceLocation};
use crate::codecs::control::types::BooleanType;

/// A field of a message that is read from a `W` of a codec.
pub(super) trait FromWire<W>: Sized {
    /// Converts the value of the field `name`.
    fn from_wire(value: W, name: &'static str) -> Result<Self, MessageError>;
}

/// A field of a message that is written as a `W` of a codec.
pub(super) trait ToWire<W> {
    fn to_wire(self) -> W;
}

macro_rules! unchanged {
    ($($type:ty)*) => {
        $(
            impl FromWire<$type> for $type {
                fn from_wire(value: $type, _: &'static str) -> Result<Self, MessageError> {
                    Ok(value)
                }
            }

            impl ToWire<$type> for $type {
                fn to_wire(self) -> $type {
                    self
                }
            }
        )*
    };
}

unchanged!(i32 i64 SourceLocation ControlResponseCode RecordingSignal);

impl FromWire<Option<Self>> for i32 {
    fn from_wire(value: Option<Self>, _: &'static str) -> Result<Self, MessageError> {
        Ok(value.unwrap_or(-1))
    }
}

impl FromWire<Option<Self>> for i64 {
    fn from_wire(value: Option<Self>, _: &'static str) -> Result<Self, MessageError> {
        Ok(value.unwrap_or(-1))
    }
}

impl FromWire<BooleanType> for bool {
    fn from_wire(value: BooleanType, name: &'static str) -> Result<Self, MessageError> {
        match value {
            BooleanType::FALSE => Ok(false),
            BooleanType::TRUE => Ok(true),
            other => Err(MessageError::InvalidBoolean {
                field: name,
                value: other.raw(),
            }),
        }
    }
}

impl ToWire<BooleanType> for bool {
    fn to_wire(self) -> BooleanType {
        if self {
            BooleanType::TRUE
        } else {
            BooleanType::FALSE
        }
    }
}

impl FromWire<Option<i32>> for ProtocolVersion {
    fn from_wire(value: Option<i32>, _: &'static str) -> Result<Self, MessageError> {
        Ok(Self::from_raw(value.unwrap_or(0)))
    }
}

impl ToWire<Option<i32>> for ProtocolVersion {
    fn to_wire(self) -> Option<i32> {
        Some(self.raw())
    }
}

impl<'a> FromWire<Text<'a>> for &'a str {
    fn from_wire(value: Text<'a>, name: &'static str) -> Result<Self, MessageError> {
        value
            .to_str()
            .map_err(|_| MessageError::InvalidText { field: name })
    }
}

impl<'a> FromWire<Option<Text<'a>>> for &'a str {
    fn from_wire(value: Option<Text<'a>>, name: &'static str) -> Result<Self, MessageError> {
        value.map_or(Ok(""), |text| Self::from_wire(text, name))
    }
}

impl<'a> FromWire<Self> for &'a [u8] {
    fn from_wire(value: &'a [u8], _: &'static str) -> Result<Self, MessageError> {
        Ok(value)
    }
}

impl<'a> FromWire<Option<Self>> for &'a [u8] {
    fn from_wire(value: Option<&'a [u8]>, _: &'static str) -> Result<Self, MessageError> {
        Ok(value.unwrap_or_default())
    }
}
