// SPDX-License-Identifier: Apache-2.0
//! Tags, by which channels refer to each other (docs/spec/uri-and-configuration.md §1.6).

use super::value::{Requirement, parse_i32, parse_i64};
use crate::error_code::ErrorCode;

/// Value of `tags`: `<channel>[,<entity>]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tags {
    /// Tag of the channel endpoint.
    pub channel: Option<i64>,
    /// Tag of the publication or subscription.
    pub entity: Option<i64>,
}

/// Reason why tags are rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TagsError {
    pub(super) code: ErrorCode,
    pub(super) needed: Requirement,
}

/// Value that means no tag.
const NONE: i64 = -1;

impl Tags {
    /// Parses the value of `tags`. An entity tag of −1 means none.
    pub(super) fn parse(text: &str) -> Result<Self, TagsError> {
        let malformed = |needed: &'static str| TagsError {
            code: ErrorCode::InvalidChannel,
            needed: needed.into(),
        };
        const FORM: &str = "a channel tag and optionally an entity tag, such as 31 or 31,32";
        let (channel, entity) = match text.split_once(',') {
            Some((channel, entity)) => (channel, Some(entity)),
            None => (text, None),
        };
        if channel.is_empty() || entity.is_some_and(|e| e.is_empty() || e.contains(',')) {
            return Err(malformed(FORM));
        }
        let channel = match parse_i64(channel) {
            Ok(NONE) => return Err(malformed("a channel tag other than -1, which means none")),
            Ok(tag) => tag,
            Err(_) => return Err(malformed(FORM)),
        };
        let entity = match entity.map(parse_i64) {
            None | Some(Ok(NONE)) => None,
            Some(Ok(tag)) => Some(tag),
            Some(Err(_)) => {
                return Err(TagsError {
                    code: ErrorCode::GenericError,
                    needed: "an entity tag that is an integer of 64 bits".into(),
                });
            }
        };
        Ok(Tags {
            channel: Some(channel),
            entity,
        })
    }
}

/// Value of `session-id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionIdValue {
    Id(i32),
    Tag(i64),
}

impl SessionIdValue {
    pub(super) fn parse(text: &str) -> Result<Self, Requirement> {
        match text.strip_prefix("tag:") {
            Some(tag) => parse_i64(tag)
                .map(SessionIdValue::Tag)
                .map_err(|_| "tag: with an entity tag that is an integer of 64 bits".into()),
            None => parse_i32(text)
                .map(SessionIdValue::Id)
                .map_err(|needed| format!("{needed}, or tag: with an entity tag").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_parse_accepts_and_rejects() {
        for (text, channel, entity) in [
            ("31", Some(31), None),
            ("31,32", Some(31), Some(32)),
            ("-5,0x10", Some(-5), Some(16)),
            ("41,-1", Some(41), None),
        ] {
            assert_eq!(Tags::parse(text), Ok(Tags { channel, entity }), "{text}");
        }
        for (text, code) in [
            ("", ErrorCode::InvalidChannel),
            ("abc", ErrorCode::InvalidChannel),
            (",5", ErrorCode::InvalidChannel),
            ("5,", ErrorCode::InvalidChannel),
            ("5,6,7", ErrorCode::InvalidChannel),
            ("-1", ErrorCode::InvalidChannel),
            ("41,abc", ErrorCode::GenericError),
        ] {
            assert_eq!(Tags::parse(text).unwrap_err().code, code, "{text}");
        }
    }

    #[test]
    fn session_id_parse_accepts_and_rejects() {
        assert_eq!(SessionIdValue::parse("-1"), Ok(SessionIdValue::Id(-1)));
        assert_eq!(SessionIdValue::parse("0x10"), Ok(SessionIdValue::Id(16)));
        assert_eq!(SessionIdValue::parse("tag:32"), Ok(SessionIdValue::Tag(32)));
        for text in ["", "abc", "4294967295", "tag:", "tag:1002a"] {
            assert!(SessionIdValue::parse(text).is_err(), "{text}");
        }
    }
}
