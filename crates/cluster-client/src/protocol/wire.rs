// SPDX-License-Identifier: Apache-2.0
//! Conversions between fields of codecs and those of messages.

use taran_sbe::runtime::Text;

use super::MessageError;
use crate::codecs::cluster::types::{
    AdminRequestType, AdminResponseCode, BooleanType, ChangeType, CloseReason, ClusterAction,
    ClusterTimeUnit, EventCode, SnapshotMark,
};

/// A field of a message that is read from a `W` of a codec.
pub trait FromWire<W>: Sized {
    /// Converts the value of the field `name`.
    fn from_wire(value: W, name: &'static str) -> Result<Self, MessageError>;
}

/// A field of a message that is written as a `W` of a codec.
pub trait ToWire<W> {
    /// Converts the value.
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

// A version or position that an older sender lacks stays none.
unchanged!(
    i32 i64 Option<i32> Option<i64> Option<ClusterTimeUnit> AdminRequestType AdminResponseCode ChangeType CloseReason ClusterAction
    EventCode SnapshotMark
);

/// The null value of SBE stands for none.
impl ToWire<i64> for Option<i64> {
    fn to_wire(self) -> i64 {
        self.unwrap_or(i64::MIN)
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

impl<'a> FromWire<Text<'a>> for &'a str {
    fn from_wire(value: Text<'a>, name: &'static str) -> Result<Self, MessageError> {
        value
            .to_str()
            .map_err(|_| MessageError::InvalidText { field: name })
    }
}

/// A boolean that an older sender lacks is false.
impl FromWire<Option<BooleanType>> for bool {
    fn from_wire(value: Option<BooleanType>, name: &'static str) -> Result<Self, MessageError> {
        value.map_or(Ok(false), |value| Self::from_wire(value, name))
    }
}

/// A text that an older sender lacks is empty.
impl<'a> FromWire<Option<Text<'a>>> for &'a str {
    fn from_wire(value: Option<Text<'a>>, name: &'static str) -> Result<Self, MessageError> {
        value.map_or(Ok(""), |value| Self::from_wire(value, name))
    }
}

impl<'a> FromWire<&'a [u8]> for &'a [u8] {
    fn from_wire(value: &'a [u8], _: &'static str) -> Result<Self, MessageError> {
        Ok(value)
    }
}
