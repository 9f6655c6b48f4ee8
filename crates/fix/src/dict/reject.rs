// SPDX-License-Identifier: Apache-2.0
//! Reasons for which a message is rejected.

use std::fmt;

/// Value of SessionRejectReason (373).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u16)]
#[non_exhaustive]
pub enum RejectReason {
    /// The tag is not a valid number, or not a tag of this version.
    InvalidTag = 0,
    /// A required tag is missing.
    RequiredTagMissing = 1,
    /// The tag is not defined for this message.
    TagNotDefined = 2,
    /// The tag is not defined at all.
    UndefinedTag = 3,
    /// The tag has no value.
    NoValue = 4,
    /// The value is not in the set of allowed ones.
    ValueOutOfRange = 5,
    /// The value does not have the form of its data type.
    IncorrectFormat = 6,
    /// SenderCompID or TargetCompID are wrong.
    CompId = 9,
    /// SendingTime is too far from now.
    SendingTime = 10,
    /// MsgType is not known.
    InvalidMsgType = 11,
    /// The tag appears twice.
    TagTwice = 13,
    /// A field of header, body or trailer is in another part.
    TagOutOfOrder = 14,
    /// Fields of a group are out of order.
    GroupOutOfOrder = 15,
    /// The count of a group is wrong.
    GroupCount = 16,
    /// A value contains the delimiter.
    Delimiter = 17,
    /// The version of the application is not known.
    ApplicationVersion = 18,
    /// Another reason.
    Other = 99,
}

impl RejectReason {
    /// Returns the value of SessionRejectReason.
    #[must_use]
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// Returns the first version that has the code, as major and minor number of FIX; FIXT counts as 5.0.
    #[must_use]
    pub const fn since(self) -> (u8, u8) {
        match self.code() {
            0..=11 => (4, 2),
            12..=17 => (4, 3),
            18 => (5, 0),
            _ => (4, 4),
        }
    }

    /// Returns the text for Text (58): the phrase that counterparties know.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::InvalidTag => "Invalid tag number",
            Self::RequiredTagMissing => "Required tag missing",
            Self::TagNotDefined => "Tag not defined for this message type",
            Self::UndefinedTag => "Undefined tag",
            Self::NoValue => "Tag specified without a value",
            Self::ValueOutOfRange => "Value is incorrect (out of range) for this tag",
            Self::IncorrectFormat => "Incorrect data format for value",
            Self::CompId => "CompID problem",
            Self::SendingTime => "SendingTime accuracy problem",
            Self::InvalidMsgType => "Invalid MsgType",
            Self::TagTwice => "Tag appears more than once",
            Self::TagOutOfOrder => "Tag specified out of required order",
            Self::GroupOutOfOrder => "Repeating group fields out of order",
            Self::GroupCount => "Incorrect NumInGroup count for repeating group",
            Self::Delimiter => "Non-data value includes field delimiter (SOH character)",
            Self::ApplicationVersion => "Invalid/Unsupported Application Version",
            Self::Other => "Other",
        }
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text())
    }
}

/// Defect of a message, as a Reject reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason}, tag {}", match .tag { Some(tag) => tag.to_string(), None => "unknown".to_owned() })]
pub struct Fault {
    /// Reason.
    pub reason: RejectReason,
    /// Tag as it is written in the message, if it is a number.
    pub tag: Option<i64>,
    /// Offset in the message.
    pub at: usize,
}

impl Fault {
    /// Returns a defect of a field.
    #[must_use]
    pub const fn new(reason: RejectReason, tag: u32, at: usize) -> Self {
        // Every `u32` fits.
        let tag = Some(tag as i64);
        Self { reason, tag, at }
    }
}

impl From<crate::wire::FieldFault> for Fault {
    fn from(fault: crate::wire::FieldFault) -> Self {
        use crate::wire::FieldFault;
        match fault {
            FieldFault::Tag { at, written } => Self {
                reason: RejectReason::InvalidTag,
                tag: written,
                at,
            },
            FieldFault::NoEquals { at } => Self {
                reason: RejectReason::Delimiter,
                tag: None,
                at,
            },
            FieldFault::Empty { tag, at } => Self::new(RejectReason::NoValue, tag, at),
            FieldFault::Data { tag, at } => Self::new(RejectReason::IncorrectFormat, tag, at),
        }
    }
}
