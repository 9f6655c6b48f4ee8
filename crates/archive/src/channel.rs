// SPDX-License-Identifier: Apache-2.0
//! Channels that an archive derives from those of its clients (`docs/spec/archive.md` §1.3, §1.4, §2.3, §5.1).

use std::fmt::Display;

use taran_protocol::uri::value::{format_size, parse_size};
use taran_protocol::uri::{ChannelUri, Media, Param, SPY_PREFIX, UriError};

/// Parameters that are kept of a channel that a client hands over. All others are dropped.
const KEPT: [Param; 23] = [
    Param::Endpoint,
    Param::Interface,
    Param::Control,
    Param::ControlMode,
    Param::Tags,
    Param::Rejoin,
    Param::Group,
    Param::Tether,
    Param::FlowControl,
    Param::GroupTag,
    Param::CongestionControl,
    Param::ReceiveBuffer,
    Param::SendBuffer,
    Param::ReceiverWindow,
    Param::ChannelSendTimestamp,
    Param::ChannelReceiveTimestamp,
    Param::MediaReceiveTimestamp,
    Param::SessionId,
    Param::Alias,
    Param::ResponseCorrelationId,
    Param::ResponseEndpoint,
    Param::Ttl,
    Param::StreamId,
];

/// A channel under construction: parameters in the order in which the official archive writes them.
#[derive(Clone, Debug)]
pub(crate) struct DerivedChannel {
    media: Media,
    parameters: Vec<(Param, String)>,
}

impl DerivedChannel {
    /// Keeps the parameters of a client's channel that identify a stream.
    pub(crate) fn stripped(channel: &ChannelUri) -> Self {
        let kept = Param::ALL.iter().map(|spec| spec.param);
        let kept = kept.filter(|param| KEPT.contains(param));
        let parameters = kept
            .filter_map(|param| Some((param, normalized(param, channel.get(param)?))))
            .collect();
        Self {
            media: channel.media(),
            parameters,
        }
    }

    /// Sets a parameter.
    #[must_use]
    pub(crate) fn with(mut self, param: Param, value: impl Display) -> Self {
        let value = value.to_string();
        match self
            .parameters
            .binary_search_by_key(&param, |(known, _)| *known)
        {
            Ok(at) => self.parameters[at].1 = value,
            Err(at) => self.parameters.insert(at, (param, value)),
        }
        self
    }

    /// Sets a parameter if there is a value.
    #[must_use]
    pub(crate) fn with_optional(self, param: Param, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.with(param, value),
            None => self,
        }
    }

    /// Returns the text of the channel.
    pub(crate) fn text(&self) -> String {
        let parameters: Vec<_> = self
            .parameters
            .iter()
            .map(|(param, value)| format!("{}={value}", param.key()))
            .collect();
        let separator = if parameters.is_empty() { "" } else { "?" };
        format!(
            "aeron:{}{separator}{}",
            self.media.as_str(),
            parameters.join("|")
        )
    }
}

/// Returns the value as the official archive writes it: sizes with their shortest suffix.
fn normalized(param: Param, text: &str) -> String {
    let is_size = matches!(
        param,
        Param::ReceiveBuffer | Param::SendBuffer | Param::ReceiverWindow
    );
    match parse_size(text) {
        Ok(bytes) if is_size => format_size(bytes),
        _ => text.to_owned(),
    }
}

/// A channel to record, in the forms that an archive needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordedChannel {
    /// Identifies the recording subscription in the archive.
    pub(crate) key: String,
    /// The channel as stored in the catalog.
    pub(crate) stripped: String,
    /// The channel of the subscription.
    pub(crate) subscribed: String,
}

impl RecordedChannel {
    /// Derives the forms of a channel. A local UDP stream is recorded through a spy.
    ///
    /// # Errors
    /// The channel is malformed.
    pub(crate) fn new(channel: &str, stream_id: i32, is_local: bool) -> Result<Self, UriError> {
        let uri = ChannelUri::parse(channel)?;
        let stripped = DerivedChannel::stripped(&uri).text();
        let is_spied = uri.is_spy() || (is_local && uri.media() == Media::Udp);
        let prefix = if is_spied { SPY_PREFIX } else { "" };
        Ok(Self {
            key: recording_key(&uri, stream_id),
            subscribed: format!("{prefix}{stripped}"),
            stripped,
        })
    }
}

fn recording_key(uri: &ChannelUri, stream_id: i32) -> String {
    let mut key = format!("{stream_id}:{}?", uri.media().as_str());
    for param in [
        Param::Endpoint,
        Param::Interface,
        Param::Control,
        Param::SessionId,
        Param::Tags,
    ] {
        if let Some(value) = uri.get(param) {
            key += param.key();
            key += "=";
            key += value;
            key += "|";
        }
    }
    key.truncate(key.trim_end_matches('|').len());
    key
}

/// Defaults of response channels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponseDefaults {
    /// Term length in bytes.
    pub(crate) term_length: usize,
    /// Pages are reserved as the stream proceeds.
    pub(crate) sparse: bool,
    /// Maximum frame length in bytes.
    pub(crate) mtu: usize,
}

/// Returns the channel of a response publication.
///
/// # Errors
/// The client's channel is malformed.
pub(crate) fn response_channel(
    channel: &str,
    defaults: &ResponseDefaults,
    request_image: i64,
) -> Result<String, UriError> {
    let uri = ChannelUri::parse(channel)?;
    let own = |param, default: String| uri.get(param).map_or(default, str::to_owned);
    let term_length = own(Param::TermLength, defaults.term_length.to_string());
    let response_to = uri.is_response().then_some(request_image);
    Ok(DerivedChannel::stripped(&uri)
        .with(Param::TermLength, term_length)
        .with(
            Param::Sparse,
            own(Param::Sparse, defaults.sparse.to_string()),
        )
        .with(Param::Mtu, own(Param::Mtu, defaults.mtu.to_string()))
        .with_optional(Param::ResponseCorrelationId, response_to)
        .text())
}

/// A place in a recorded stream where a replay begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplayOrigin {
    /// Position in bytes.
    pub(crate) position: i64,
    /// Initial term id of the stream.
    pub(crate) initial_term_id: i32,
    /// Term length in bytes.
    pub(crate) term_length: i32,
    /// Maximum frame length in bytes.
    pub(crate) mtu: i32,
}

/// Returns the channel of a replay publication. `response_to` is the image of the request for a response channel.
///
/// # Errors
/// A parameter that a replay uses is malformed; the text says which.
pub(crate) fn replay_channel(
    uri: &ChannelUri,
    origin: &ReplayOrigin,
    default_linger_ns: i64,
    response_to: Option<i64>,
) -> Result<String, String> {
    let linger_ns = match uri.get(Param::Linger) {
        None => default_linger_ns,
        Some(text) => text.parse::<i64>().ok().filter(|ns| *ns >= 0).ok_or_else(|| {
            format!("linger={text} of the replay channel is not a number of nanoseconds without a unit")
        })?,
    };
    let term_length = i64::from(origin.term_length);
    let terms = origin.position / term_length;
    // Positions of a recording lie within 2^31 terms, so the count fits; term ids wrap around.
    let term_id = origin.initial_term_id.wrapping_add(terms as i32);
    Ok(DerivedChannel::stripped(uri)
        .with(Param::Mtu, origin.mtu)
        .with(Param::TermLength, origin.term_length)
        .with(Param::InitialTermId, origin.initial_term_id)
        .with(Param::TermId, term_id)
        .with(Param::TermOffset, origin.position % term_length)
        .with(Param::Linger, linger_ns)
        .with_optional(Param::Eos, uri.get(Param::Eos))
        .with_optional(Param::Sparse, uri.get(Param::Sparse))
        .with_optional(Param::ResponseCorrelationId, response_to)
        .text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stripped_channel_keeps_what_identifies_the_stream_in_fixed_order() {
        for (channel, expected) in [
            ("aeron:ipc", "aeron:ipc"),
            ("aeron:ipc?term-length=64k|mtu=8k|ssc=true", "aeron:ipc"),
            (
                "aeron:udp?alias=a b|rcv-wnd=131072|endpoint=localhost:1|linger=1s|tags=1,2|session-id=7|gtag=3",
                "aeron:udp?tags=1,2|endpoint=localhost:1|session-id=7|alias=a b|gtag=3|rcv-wnd=128k",
            ),
            (
                "aeron:udp?control-mode=dynamic|control=h:2|fc=min|unknown=1|stream-id=9",
                "aeron:udp?control=h:2|control-mode=dynamic|fc=min|stream-id=9",
            ),
        ] {
            let uri = ChannelUri::parse(channel).unwrap();
            assert_eq!(DerivedChannel::stripped(&uri).text(), expected, "{channel}");
        }
    }

    #[test]
    fn recorded_channel_of_local_udp_stream_is_a_spy() {
        let channel = "aeron:udp?endpoint=localhost:1|session-id=4|mtu=8k";
        let local = RecordedChannel::new(channel, 7, true).unwrap();
        assert_eq!(local.key, "7:udp?endpoint=localhost:1|session-id=4");
        assert_eq!(
            local.stripped,
            "aeron:udp?endpoint=localhost:1|session-id=4"
        );
        assert_eq!(
            local.subscribed,
            "aeron-spy:aeron:udp?endpoint=localhost:1|session-id=4"
        );
        let remote = RecordedChannel::new(channel, 7, false).unwrap();
        assert_eq!(
            (remote.subscribed, &remote.key),
            (remote.stripped, &local.key)
        );
        let ipc = RecordedChannel::new("aeron:ipc?alias=udp", 7, true).unwrap();
        assert_eq!(
            (ipc.subscribed.as_str(), ipc.key.as_str()),
            ("aeron:ipc?alias=udp", "7:ipc?")
        );
        assert!(RecordedChannel::new("udp://x", 7, true).is_err());
    }

    #[test]
    fn response_channel_takes_what_the_client_left_out_from_the_archive() {
        let defaults = ResponseDefaults {
            term_length: 65_536,
            sparse: true,
            mtu: 1_408,
        };
        assert_eq!(
            response_channel("aeron:udp?endpoint=a:1|session-id=5", &defaults, 9).unwrap(),
            "aeron:udp?endpoint=a:1|mtu=1408|term-length=65536|session-id=5|sparse=true"
        );
        assert_eq!(
            response_channel(
                "aeron:udp?control=a:1|control-mode=response|term-length=128k|sparse=false|mtu=8k",
                &defaults,
                9
            )
            .unwrap(),
            "aeron:udp?control=a:1|control-mode=response|mtu=8k|term-length=128k|sparse=false|response-correlation-id=9"
        );
        assert!(response_channel("x", &defaults, 9).is_err());
    }

    #[test]
    fn replay_channel_begins_at_the_position() {
        let origin = ReplayOrigin {
            position: 65_536 * 3 + 96,
            initial_term_id: i32::MAX,
            term_length: 65_536,
            mtu: 1_408,
        };
        let uri =
            ChannelUri::parse("aeron:udp?endpoint=a:1|term-length=1m|mtu=4k|eos=false").unwrap();
        assert_eq!(
            replay_channel(&uri, &origin, 5, Some(8)).unwrap(),
            format!(
                "aeron:udp?endpoint=a:1|mtu=1408|term-length=65536|init-term-id={}|term-id={}|term-offset=96|linger=5|\
                 eos=false|response-correlation-id=8",
                i32::MAX,
                i32::MIN + 2
            )
        );
        let uri = ChannelUri::parse("aeron:ipc?linger=0").unwrap();
        assert!(
            replay_channel(&uri, &origin, 5, None)
                .unwrap()
                .contains("|linger=0")
        );
        let uri = ChannelUri::parse("aeron:ipc?linger=5s").unwrap();
        let error = replay_channel(&uri, &origin, 5, None).unwrap_err();
        assert!(error.contains("linger=5s"), "{error}");
    }
}
