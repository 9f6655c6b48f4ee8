//! Values that are words or have a word among them: control mode, timestamp offset, response correlation.

use super::value::{Requirement, parse_i32, parse_i64};

/// Who decides on a channel's destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ControlMode {
    /// Commands do. On a subscription: its sources are added by commands.
    Manual,
    /// Receivers announce themselves.
    Dynamic,
    /// The channel answers requests of another channel.
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

    /// The text in the URI.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ControlMode::Manual => "manual",
            ControlMode::Dynamic => "dynamic",
            ControlMode::Response => "response",
        }
    }
}

/// Where a timestamp is written (docs/spec/wire.md §7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampOffset {
    /// Into the reserved value of the data header.
    Reserved,
    /// This many bytes behind the start of the payload.
    Payload(i32),
}

/// What stands for "no timestamp", and for the reserved value, as an integer.
const NO_TIMESTAMP: i32 = -1;
const RESERVED: i32 = -8;
const TIMESTAMP_LENGTH: i64 = 8;

impl TimestampOffset {
    /// `None` for −1, which means no timestamp.
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

    /// Bytes behind the start of the payload; −8 for the reserved value, which lies just before it.
    #[must_use]
    pub fn bytes(self) -> i32 {
        match self {
            TimestampOffset::Reserved => RESERVED,
            TimestampOffset::Payload(offset) => offset,
        }
    }

    /// Whether two timestamps would overwrite each other.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        (i64::from(self.bytes()) - i64::from(other.bytes())).abs() < TIMESTAMP_LENGTH
    }
}

/// The value of `response-correlation-id`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseCorrelation {
    /// The publication has nothing to do with responses.
    #[default]
    None,
    /// A placeholder that holds the port of a response publication.
    Prototype,
    /// Registration id of the subscription for the responses, or of the image of the requests.
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
