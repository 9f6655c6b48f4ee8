// SPDX-License-Identifier: Apache-2.0
//! Channels of a replication (`docs/spec/archive.md` §6.5).

use taran_protocol::uri::{ChannelUri, Media, Param, UriError};

/// Tags of the subscription of a replication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplicationTags {
    pub(crate) channel: i64,
    pub(crate) subscription: i64,
}

/// The channel on which a replication receives the replay, in the forms that it needs.
#[derive(Clone, Debug)]
pub(crate) struct ReplicationChannel {
    uri: ChannelUri,
    /// Set if the subscription gets its destinations one by one.
    tags: Option<ReplicationTags>,
    is_live: bool,
}

/// Form of the channel for the source's replay publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SourceReplay {
    /// The source sends to this channel.
    Channel(String),
    /// The source sends to where the request comes from.
    Response,
}

impl ReplicationChannel {
    pub(crate) fn new(uri: ChannelUri, tags: Option<ReplicationTags>, is_live: bool) -> Self {
        Self { uri, tags, is_live }
    }

    /// Returns the channel of the recording subscription.
    pub(crate) fn recorded(&self, session_id: i32) -> Result<String, UriError> {
        let mut uri = self.uri.with(Param::Rejoin.key(), "false")?;
        if !self.uri.is_response() {
            uri = uri.with_session_id(session_id)?;
        }
        if let Some(tags) = self.tags {
            let text = format!("{},{}", tags.channel, tags.subscription);
            uri = uri
                .without(Param::Endpoint.key())?
                .with(Param::Tags.key(), &text)?
                .with(Param::ControlMode.key(), "manual")?;
        }
        Ok(uri.as_str().to_owned())
    }

    /// Returns the destination of the replay, for a subscription that gets its destinations one by one.
    pub(crate) fn destination(&self) -> Result<String, UriError> {
        let endpoint = self.uri.get(Param::Endpoint).unwrap_or_default();
        let destination = self.uri.destination(endpoint)?;
        Ok(destination.as_str().to_owned())
    }

    /// Returns true if the port of the subscription has to be known before the replay starts.
    pub(crate) fn needs_port(&self) -> bool {
        let endpoint = self.uri.get(Param::Endpoint);
        self.uri.media() == Media::Udp && endpoint.is_some_and(|endpoint| endpoint.ends_with(":0"))
    }

    /// Returns the channel for the source's replay publication. `resolved` is the address that the subscription is bound to.
    pub(crate) fn of_source(
        &self,
        session_id: i32,
        resolved: Option<&str>,
    ) -> Result<SourceReplay, UriError> {
        if self.uri.is_response() {
            return Ok(SourceReplay::Response);
        }
        let mut uri = self.uri.with_session_id(session_id)?;
        if let Some(resolved) = resolved
            && self.needs_port()
        {
            uri = uri.with_endpoint_port(resolved)?;
        }
        if self.is_live {
            uri = uri
                .with(Param::Linger.key(), "0")?
                .with(Param::Eos.key(), "false")?;
        }
        Ok(SourceReplay::Channel(uri.as_str().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(text: &str, tags: Option<ReplicationTags>, is_live: bool) -> ReplicationChannel {
        ReplicationChannel::new(ChannelUri::parse(text).unwrap(), tags, is_live)
    }

    #[test]
    fn one_destination_is_part_of_the_subscribed_channel() {
        let channel = channel("aeron:udp?endpoint=localhost:0", None, false);
        assert_eq!(
            channel.recorded(-7).unwrap(),
            "aeron:udp?endpoint=localhost:0|rejoin=false|session-id=-7"
        );
        assert!(channel.needs_port());
        assert_eq!(
            channel.of_source(-7, Some("127.0.0.1:4001")).unwrap(),
            SourceReplay::Channel("aeron:udp?endpoint=localhost:4001|session-id=-7".to_owned())
        );
    }

    #[test]
    fn live_stream_is_a_second_destination_of_a_tagged_subscription() {
        let tags = ReplicationTags {
            channel: 3,
            subscription: 4,
        };
        let channel = channel(
            "aeron:udp?endpoint=localhost:9|interface=127.0.0.1",
            Some(tags),
            true,
        );
        assert_eq!(
            channel.recorded(5).unwrap(),
            "aeron:udp?interface=127.0.0.1|rejoin=false|session-id=5|tags=3,4|control-mode=manual"
        );
        assert_eq!(
            channel.destination().unwrap(),
            "aeron:udp?endpoint=localhost:9|interface=127.0.0.1"
        );
        assert!(!channel.needs_port());
        assert_eq!(
            channel.of_source(5, None).unwrap(),
            SourceReplay::Channel(
                "aeron:udp?endpoint=localhost:9|interface=127.0.0.1|session-id=5|linger=0|eos=false"
                    .to_owned()
            )
        );
    }

    #[test]
    fn response_channel_has_no_session_and_no_address() {
        let channel = channel(
            "aeron:udp?control-mode=response|control=localhost:9",
            None,
            false,
        );
        assert_eq!(
            channel.recorded(5).unwrap(),
            "aeron:udp?control-mode=response|control=localhost:9|rejoin=false"
        );
        assert!(!channel.needs_port());
        assert_eq!(channel.of_source(5, None).unwrap(), SourceReplay::Response);
    }

    #[test]
    fn replay_over_ipc_needs_no_port() {
        let channel = channel("aeron:ipc", None, false);
        assert!(!channel.needs_port());
        assert_eq!(
            channel.of_source(5, None).unwrap(),
            SourceReplay::Channel("aeron:ipc?session-id=5".to_owned())
        );
    }
}
