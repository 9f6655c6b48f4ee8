// SPDX-License-Identifier: Apache-2.0
//! Syntax of channel URIs: prefix, media and parameters (docs/spec/uri-and-configuration.md §1.1, §1.2).
//!
//! Values and combinations of parameters are validated in [`channel`](super::channel) and in the parameter structs.

use std::fmt;
use std::str::FromStr;

use super::error::UriError;
use super::param::Param;

/// Maximum length of a channel URI in bytes.
pub const MAX_URI_LENGTH: usize = 4095;

/// Prefix of a channel that spies on a local publication.
pub const SPY_PREFIX: &str = "aeron-spy:";

const SCHEME: &str = "aeron:";

/// Transport media of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Media {
    /// UDP.
    Udp,
    /// Shared memory between processes on one machine.
    Ipc,
}

impl Media {
    /// Returns the text in the URI.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Media::Udp => "udp",
            Media::Ipc => "ipc",
        }
    }
}

/// Parsed channel URI: an optional spy prefix, the media and the parameters.
///
/// Unknown keys are kept and ignored; [`ChannelUri::unknown_keys`] lists them. If a key is repeated, the last value
/// applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelUri {
    text: String,
    spy: bool,
    media: Media,
    parameters: Vec<(String, String)>,
}

impl ChannelUri {
    /// Parses a channel URI.
    ///
    /// # Errors
    /// `InvalidChannel` if the text is longer than [`MAX_URI_LENGTH`], does not start with `aeron:udp` or `aeron:ipc`
    /// (after an optional `aeron-spy:`), or has an empty parameter, a key without value or a value without key.
    pub fn parse(text: &str) -> Result<Self, UriError> {
        if text.len() > MAX_URI_LENGTH {
            let start = &text[..floor_char_boundary(text, MAX_URI_LENGTH)];
            return Err(UriError::invalid(format!(
                "{} bytes long, at most {MAX_URI_LENGTH} are allowed: channel={start}...",
                text.len()
            )));
        }
        Self::parse_parts(text).map_err(|e| e.in_channel(text))
    }

    fn parse_parts(text: &str) -> Result<Self, UriError> {
        let (spy, rest) = match text.strip_prefix(SPY_PREFIX) {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let rest = rest.strip_prefix(SCHEME).ok_or_else(|| {
            UriError::invalid("a channel must start with aeron: or aeron-spy:aeron:")
        })?;
        let (media, parameters) = match rest.split_once('?') {
            Some((media, parameters)) => (media, parameters),
            None => (rest, ""),
        };
        let media = match media {
            "udp" => Media::Udp,
            "ipc" => Media::Ipc,
            other => {
                return Err(UriError::invalid(format!(
                    "unknown media '{other}', must be udp or ipc"
                )));
            }
        };
        if spy && media == Media::Ipc {
            return Err(UriError::invalid("only aeron:udp channels can be spied on"));
        }
        let parameters = if parameters.is_empty() {
            Vec::new()
        } else {
            parse_parameters(parameters)?
        };
        Ok(ChannelUri {
            text: text.to_owned(),
            spy,
            media,
            parameters,
        })
    }

    /// Returns the text as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true if the channel has the prefix `aeron-spy:`.
    #[must_use]
    pub fn is_spy(&self) -> bool {
        self.spy
    }

    /// Returns the media.
    #[must_use]
    pub fn media(&self) -> Media {
        self.media
    }

    /// Returns the text of a parameter.
    #[must_use]
    pub fn get(&self, param: Param) -> Option<&str> {
        self.get_key(param.key())
    }

    /// Returns the text of any key, known or unknown.
    #[must_use]
    pub fn get_key(&self, key: &str) -> Option<&str> {
        self.parameters
            .iter()
            .rev()
            .find(|(k, _)| k == key)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the effective parameters in the order of the text: only the last one of a repeated key.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parameters
            .iter()
            .enumerate()
            .filter(|(i, (key, _))| {
                !self.parameters[i + 1..]
                    .iter()
                    .any(|(later, _)| later == key)
            })
            .map(|(_, (key, value))| (key.as_str(), value.as_str()))
    }

    /// Returns the unknown keys, which are usually typing mistakes.
    pub fn unknown_keys(&self) -> impl Iterator<Item = &str> {
        self.parameters()
            .map(|(key, _)| key)
            .filter(|key| Param::from_key(key).is_none())
    }
}

fn parse_parameters(text: &str) -> Result<Vec<(String, String)>, UriError> {
    text.split('|')
        .map(|item| match item.split_once('=') {
            Some(("", value)) => Err(UriError::invalid(format!("'={value}' has no key"))),
            Some((key, "")) => Err(UriError::invalid(format!(
                "{key}= has no value; omit the key for its default"
            ))),
            Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
            None if item.is_empty() => Err(UriError::invalid(
                "empty parameter: a '|' must stand between two parameters",
            )),
            None => Err(UriError::invalid(format!(
                "'{item}' has no value, must be {item}=VALUE"
            ))),
        })
        .collect()
}

fn floor_char_boundary(text: &str, mut index: usize) -> usize {
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

impl fmt::Display for ChannelUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl AsRef<str> for ChannelUri {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl FromStr for ChannelUri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        ChannelUri::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_code::ErrorCode;
    use proptest::prelude::*;

    #[test]
    fn parse_splits_channel() {
        let uri =
            ChannelUri::parse("aeron:udp?endpoint=localhost:40123|alias=a=b?c|foo=1").unwrap();
        assert_eq!(uri.media(), Media::Udp);
        assert!(!uri.is_spy());
        assert_eq!(uri.get(Param::Endpoint), Some("localhost:40123"));
        assert_eq!(uri.get(Param::Alias), Some("a=b?c"));
        assert_eq!(uri.get(Param::Control), None);
        assert_eq!(uri.unknown_keys().collect::<Vec<_>>(), ["foo"]);
        assert!(
            ChannelUri::parse("aeron-spy:aeron:udp?endpoint=a:1")
                .unwrap()
                .is_spy()
        );
        assert_eq!(ChannelUri::parse("aeron:ipc?").unwrap().media(), Media::Ipc);
    }

    #[test]
    fn repeated_key_last_value_wins() {
        let uri = ChannelUri::parse("aeron:ipc?mtu=1|alias=x|mtu=2").unwrap();
        assert_eq!(uri.get(Param::Mtu), Some("2"));
        assert_eq!(
            uri.parameters().collect::<Vec<_>>(),
            [("alias", "x"), ("mtu", "2")]
        );
    }

    #[test]
    fn parse_malformed_channel_fails() {
        for text in [
            "",
            "aeron",
            "aeron:",
            "udp:foo",
            "aeron:ipcx",
            "aeron:ipc|foo",
            "aeron:UDP?endpoint=a:1",
            "aeron:tcp?endpoint=a:1",
            "aeron-spy:aeron:ipc",
            "aeron-spy:udp",
            "aeron-spy:aeron-spy:aeron:udp",
            "aeron:udp?=x",
            "aeron:udp?endpoint=a:1|=x",
            "aeron:udp?endpoint",
            "aeron:udp?endpoint|mtu=1408",
            "aeron:udp?endpoint=",
            "aeron:udp?endpoint=|mtu=1408",
            "aeron:udp?endpoint=a:1|",
            "aeron:udp?|",
            "aeron:udp?endpoint=a:1||mtu=1408",
        ] {
            let error = ChannelUri::parse(text).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidChannel, "{text}");
            assert!(
                error.text.contains("invalid channel") && error.text.contains(text),
                "{error}"
            );
        }
    }

    #[test]
    fn too_long_channel_error_quotes_prefix() {
        let text = format!("aeron:ipc?alias={}", "x".repeat(MAX_URI_LENGTH));
        let error = ChannelUri::parse(&text).unwrap_err();
        assert!(error.text.contains(&text[..MAX_URI_LENGTH]));
        assert!(ChannelUri::parse(&text[..MAX_URI_LENGTH]).is_ok());
        assert!(ChannelUri::parse(&"é".repeat(MAX_URI_LENGTH)).is_err());
    }

    proptest! {
        #[test]
        fn parse_random_text_never_panics(text in "(aeron-spy:)?(aeron:)?(udp|ipc)?\\PC{0,60}") {
            let _ = ChannelUri::parse(&text);
        }

        #[test]
        fn parameters_round_trip(pairs in proptest::collection::vec(("[a-z-]{1,8}", "[ -{}~]{1,12}"), 1..6)) {
            let text = pairs.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join("|");
            let uri = ChannelUri::parse(&format!("aeron:udp?{text}")).unwrap();
            for (key, _) in &pairs {
                let last = pairs.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
                prop_assert_eq!(uri.get_key(key), last);
            }
        }
    }
}
