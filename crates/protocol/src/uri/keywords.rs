// SPDX-License-Identifier: Apache-2.0
//! Parameters with keyword values: control mode, timestamp offset, response correlation.

use super::value::{Requirement, parse_i32, parse_i64};

/// Control mode of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ControlMode {
    /// Destinations are added by commands: of a publication (MDC) or a subscription (MDS).
    Manual,
    /// Destinations are the receivers that send status messages (dynamic MDC).
    Dynamic,
    /// The channel carries responses to the requests of another channel.
    Response,
}

impl ControlMode {
    pub(super) fn parse(text: &str) -> Result<Self, Requirement> {
        match text {
            "manual" => Ok(ControlMode::Manual),
            "dynamic" => Ok(ControlMode::Dynamic),
            "response" => Ok(ControlMode::Response),
            _ => Err("manual, dynamic or response".into()),
        }
    }

    /// Returns the text in the URI.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ControlMode::Manual => "manual",
            ControlMode::Dynamic => "dynamic",
            ControlMode::Response => "response",
        }
    }
}

/// Location of a timestamp in a message (docs/spec/wire.md §7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampOffset {
    /// Reserved value of the data header.
    Reserved,
    /// Offset in bytes from the start of the payload.
    Payload(i32),
}

/// Integer that means no timestamp.
const NO_TIMESTAMP: i32 = -1;
/// Integer that means the reserved value.
const RESERVED: i32 = -8;
const TIMESTAMP_LENGTH: i64 = 8;

impl TimestampOffset {
    /// Parses an offset. Returns `None` for −1, which means no timestamp.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, Requirement> {
        if text == "reserved" {
            return Ok(Some(TimestampOffset::Reserved));
        }
        match parse_i32(text) {
            Ok(NO_TIMESTAMP) => Ok(None),
            Ok(RESERVED) => Ok(Some(TimestampOffset::Reserved)),
            Ok(offset) => Ok(Some(TimestampOffset::Payload(offset))),
            Err(_) => Err("an offset into the payload, or reserved".into()),
        }
    }

    /// Returns the offset in bytes from the start of the payload; −8 for the reserved value, which precedes the
    /// payload.
    #[must_use]
    pub fn bytes(self) -> i32 {
        match self {
            TimestampOffset::Reserved => RESERVED,
            TimestampOffset::Payload(offset) => offset,
        }
    }

    /// Returns true if two timestamps would overlap.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        (i64::from(self.bytes()) - i64::from(other.bytes())).abs() < TIMESTAMP_LENGTH
    }
}

/// Value of `response-correlation-id`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseCorrelation {
    /// No correlation.
    #[default]
    None,
    /// Placeholder that reserves the port of a response publication.
    Prototype,
    /// Registration id of the response subscription, or correlation id of the request image.
    Id(i64),
}

impl ResponseCorrelation {
    pub(super) fn parse(text: &str) -> Result<Self, Requirement> {
        match (text, parse_i64(text)) {
            ("prototype", _) => Ok(ResponseCorrelation::Prototype),
            (_, Ok(-1)) => Ok(ResponseCorrelation::None),
            (_, Ok(id)) if id >= 0 => Ok(ResponseCorrelation::Id(id)),
            _ => Err("a number greater than or equal to -1, or 'prototype'".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_offsets_within_eight_bytes_overlap() {
        let at = |text| TimestampOffset::parse(text).unwrap().unwrap();
        assert_eq!(TimestampOffset::parse("-1"), Ok(None));
        assert_eq!(at("-8"), TimestampOffset::Reserved);
        assert!(at("0").overlaps(at("7")));
        assert!(at("4").overlaps(at("0")));
        assert!(!at("0").overlaps(at("8")));
        assert!(!at("reserved").overlaps(at("0")));
        assert!(!at("-2147483648").overlaps(at("2147483647")));
        assert!(TimestampOffset::parse("abc").is_err());
    }

    #[test]
    fn response_correlation_parse_accepts_and_rejects() {
        assert_eq!(
            ResponseCorrelation::parse("-1"),
            Ok(ResponseCorrelation::None)
        );
        assert_eq!(
            ResponseCorrelation::parse("0"),
            Ok(ResponseCorrelation::Id(0))
        );
        assert_eq!(
            ResponseCorrelation::parse("prototype"),
            Ok(ResponseCorrelation::Prototype)
        );
        for text in ["-2", "what", ""] {
            assert!(ResponseCorrelation::parse(text).is_err(), "{text}");
        }
    }
}
