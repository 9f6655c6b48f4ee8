// SPDX-License-Identifier: Apache-2.0
//! Derived channels, and queries on channels for clients (docs/spec/uri-and-configuration.md §1.13).

use super::error::UriError;
use super::keywords::ControlMode;
use super::param::Param;
use super::parse::ChannelUri;
use super::tags::Tags;

/// Prefix of the tag in `session-id=tag:7`.
const TAG_PREFIX: &str = "tag:";

impl ChannelUri {
    /// Returns the channel with one parameter set, known to drivers or not. The order of the other parameters is kept.
    ///
    /// # Errors
    /// The key or the value contains a reserved character, or the text becomes too long. The value itself is not
    /// validated here, but by [`ChannelUriBuilder`](super::ChannelUriBuilder) and the driver.
    pub fn with(&self, key: &str, value: &str) -> Result<Self, UriError> {
        if key.contains(['|', '=']) || value.contains('|') {
            return Err(UriError::rejected(format!(
                "invalid {key}, must be without '|' and its key without '=': {key}={value}"
            )));
        }
        let mut parameters: Vec<_> = self.parameters().collect();
        match parameters.iter_mut().find(|(known, _)| *known == key) {
            Some(parameter) => parameter.1 = value,
            None => parameters.push((key, value)),
        }
        self.of_parameters(&parameters)
    }

    /// Returns the channel without a parameter.
    ///
    /// # Errors
    /// The resulting text cannot be parsed, which does not occur for a valid channel.
    pub fn without(&self, key: &str) -> Result<Self, UriError> {
        let parameters: Vec<_> = self
            .parameters()
            .filter(|(known, _)| *known != key)
            .collect();
        self.of_parameters(&parameters)
    }

    /// Returns the channel with `session-id` set.
    ///
    /// # Errors
    /// The text becomes too long.
    pub fn with_session_id(&self, session_id: i32) -> Result<Self, UriError> {
        self.with(Param::SessionId.key(), &session_id.to_string())
    }

    /// Returns the channel with an alias, or unchanged if it has one.
    ///
    /// # Errors
    /// As [`with`](Self::with).
    pub fn with_alias_if_absent(&self, alias: &str) -> Result<Self, UriError> {
        if alias.is_empty() || self.get(Param::Alias).is_some() {
            return Ok(self.clone());
        }
        self.with(Param::Alias.key(), alias)
    }

    /// Returns the channel with the port of `resolved` (`host:port`) if its endpoint has port 0, and with `resolved` as
    /// endpoint if it has none.
    ///
    /// # Errors
    /// `resolved` has no port, or port 0.
    pub fn with_endpoint_port(&self, resolved: &str) -> Result<Self, UriError> {
        let port = resolved.rsplit_once(':').map(|(_, port)| port);
        let Some(port) = port.filter(|port| port.parse::<u16>().is_ok_and(|port| port != 0)) else {
            return Err(UriError::rejected(format!(
                "invalid endpoint, must be host:port with a port in 1..65535: endpoint={resolved}"
            )));
        };
        let key = Param::Endpoint.key();
        match self.get(Param::Endpoint) {
            None => self.with(key, resolved),
            Some(endpoint) => match endpoint.strip_suffix(":0") {
                Some(host) => self.with(key, &format!("{host}:{port}")),
                None => Ok(self.clone()),
            },
        }
    }

    /// Returns a destination at `endpoint` with the media and the interface of this channel.
    ///
    /// # Errors
    /// As [`with`](Self::with).
    pub fn destination(&self, endpoint: &str) -> Result<Self, UriError> {
        let interface = self.get(Param::Interface);
        let plain = self
            .of_parameters(&[])?
            .with(Param::Endpoint.key(), endpoint)?;
        match interface {
            Some(interface) => plain.with(Param::Interface.key(), interface),
            None => Ok(plain),
        }
    }

    /// Returns the tags of the channel and of the publication or subscription; none if the text is malformed.
    #[must_use]
    pub fn tags(&self) -> Tags {
        let text = self.get(Param::Tags);
        text.and_then(|text| Tags::parse(text).ok())
            .unwrap_or_default()
    }

    /// Returns the entity tag of `session-id=tag:…`.
    #[must_use]
    pub fn session_id_tag(&self) -> Option<i64> {
        let text = self.get(Param::SessionId)?;
        text.strip_prefix(TAG_PREFIX)?.parse().ok()
    }

    /// Returns true if the channel is a response channel.
    #[must_use]
    pub fn is_response(&self) -> bool {
        self.get(Param::ControlMode) == Some(ControlMode::Response.as_str())
    }

    fn of_parameters(&self, parameters: &[(&str, &str)]) -> Result<Self, UriError> {
        let head = self.as_str().split('?').next().unwrap_or_default();
        let parameters: Vec<_> = parameters
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let separator = if parameters.is_empty() { "" } else { "?" };
        Self::parse(&format!("{head}{separator}{}", parameters.join("|")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> ChannelUri {
        ChannelUri::parse(text).unwrap()
    }

    #[test]
    fn with_changes_one_parameter_only() {
        let channel = uri("aeron:udp?endpoint=a:1|my-key=7|session-id=3");
        let changed = channel.with_session_id(-4).unwrap();
        assert_eq!(
            changed.as_str(),
            "aeron:udp?endpoint=a:1|my-key=7|session-id=-4"
        );
        let added = channel.with_alias_if_absent("x y").unwrap();
        assert_eq!(added.get(Param::Alias), Some("x y"));
        assert_eq!(added.with_alias_if_absent("z").unwrap(), added);
        assert_eq!(
            channel.without("my-key").unwrap().as_str(),
            "aeron:udp?endpoint=a:1|session-id=3"
        );
        assert_eq!(
            uri("aeron:ipc?alias=x").without("alias").unwrap().as_str(),
            "aeron:ipc"
        );
        for (key, value) in [("alias", "a|b"), ("a=b", "c"), ("alias", ""), ("", "x")] {
            assert!(channel.with(key, value).is_err(), "{key} {value}");
        }
    }

    #[test]
    fn with_endpoint_port_fills_port_zero() {
        let resolved = "127.0.0.1:40123";
        for (channel, expected) in [
            (
                "aeron:udp?endpoint=localhost:0|mtu=8k",
                "aeron:udp?endpoint=localhost:40123|mtu=8k",
            ),
            (
                "aeron:udp?endpoint=localhost:1",
                "aeron:udp?endpoint=localhost:1",
            ),
            (
                "aeron:udp?control-mode=manual",
                "aeron:udp?control-mode=manual|endpoint=127.0.0.1:40123",
            ),
            (
                "aeron-spy:aeron:udp?endpoint=[::1]:0",
                "aeron-spy:aeron:udp?endpoint=[::1]:40123",
            ),
        ] {
            assert_eq!(
                uri(channel).with_endpoint_port(resolved).unwrap().as_str(),
                expected
            );
        }
        for bad in ["localhost", "localhost:0", "localhost:x", ""] {
            assert!(
                uri("aeron:udp?endpoint=a:0")
                    .with_endpoint_port(bad)
                    .is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn destination_takes_interface_of_channel() {
        let channel = uri("aeron:udp?control-mode=manual|interface=127.0.0.1|mtu=8k");
        let destination = channel.destination("a:1").unwrap();
        assert_eq!(
            destination.as_str(),
            "aeron:udp?endpoint=a:1|interface=127.0.0.1"
        );
        assert_eq!(
            uri("aeron:udp?control-mode=manual")
                .destination("a:1")
                .unwrap()
                .as_str(),
            "aeron:udp?endpoint=a:1"
        );
    }

    #[test]
    fn tags_and_response_mode_are_read() {
        let tags = uri("aeron:udp?tags=1,2|session-id=tag:7|control-mode=response");
        assert_eq!(
            (tags.tags().channel, tags.tags().entity),
            (Some(1), Some(2))
        );
        assert_eq!(tags.session_id_tag(), Some(7));
        assert!(tags.is_response());
        let none = uri("aeron:udp?tags=x|session-id=7");
        assert_eq!(
            (none.tags(), none.session_id_tag()),
            (Tags::default(), None)
        );
        assert!(!none.is_response());
    }
}
