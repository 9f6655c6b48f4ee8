// SPDX-License-Identifier: Apache-2.0
//! Selection of counters.

use clap::Args;
use regex_lite::Regex;
use taran_core::counters::CounterMeta;
use taran_protocol::counter::{ChannelKey, HeartbeatKey, SocketKey, StreamKey, type_id};

/// Regular expressions for attributes of counters; a counter has to match all of those given.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct Filter {
    /// Counters with this type, by number
    #[arg(long = "type", value_name = "REGEX")]
    type_id: Option<Regex>,

    /// Counters with this identity: the id of a system counter, otherwise the registration id
    #[arg(long, value_name = "REGEX")]
    identity: Option<Regex>,

    /// Counters of streams with this session id
    #[arg(long, value_name = "REGEX")]
    session: Option<Regex>,

    /// Counters of streams with this stream id
    #[arg(long, value_name = "REGEX")]
    stream: Option<Regex>,

    /// Counters with this channel
    #[arg(long, value_name = "REGEX")]
    channel: Option<Regex>,
}

/// Attributes from the key of a counter.
#[derive(Debug, Default, PartialEq, Eq)]
struct Attributes {
    identity: Option<String>,
    session: Option<String>,
    stream: Option<String>,
    channel: Option<String>,
}

impl Filter {
    /// Returns true if the counter matches.
    pub(super) fn passes(&self, counter: &CounterMeta) -> bool {
        if !matches(self.type_id.as_ref(), Some(&counter.type_id.to_string())) {
            return false;
        }
        let attributes = Attributes::of(counter);
        matches(self.identity.as_ref(), attributes.identity.as_deref())
            && matches(self.session.as_ref(), attributes.session.as_deref())
            && matches(self.stream.as_ref(), attributes.stream.as_deref())
            && matches(self.channel.as_ref(), attributes.channel.as_deref())
    }
}

fn matches(pattern: Option<&Regex>, text: Option<&str>) -> bool {
    pattern.is_none_or(|pattern| text.is_some_and(|text| pattern.is_match(text)))
}

impl Attributes {
    fn of(counter: &CounterMeta) -> Attributes {
        let key = &counter.key;
        let registered = Attributes {
            identity: Some(counter.registration_id.to_string()),
            ..Attributes::default()
        };
        match counter.type_id {
            type_id::SYSTEM => Attributes {
                identity: key
                    .first_chunk()
                    .map(|id| i32::from_le_bytes(*id).to_string()),
                ..registered
            },
            type_id::SEND_CHANNEL_STATUS
            | type_id::RECEIVE_CHANNEL_STATUS
            | type_id::MDC_DESTINATIONS => Attributes {
                channel: ChannelKey::decode(key).map(|key| key.channel.into_owned()),
                ..registered
            },
            type_id::LOCAL_SOCKET_ADDRESS => Attributes {
                channel: SocketKey::decode(key).map(|key| key.address.into_owned()),
                ..registered
            },
            type_id::CLIENT_HEARTBEAT => Attributes {
                identity: HeartbeatKey::decode(key).map(|key| key.client_id.to_string()),
                ..registered
            },
            type_id if is_of_stream(type_id) => match StreamKey::decode(key) {
                Some(key) => Attributes {
                    identity: Some(key.registration_id.to_string()),
                    session: Some(key.session_id.to_string()),
                    stream: Some(key.stream_id.to_string()),
                    channel: Some(key.channel.into_owned()),
                },
                None => registered,
            },
            _ => registered,
        }
    }
}

/// Returns true if the key of the counter type is a [`StreamKey`] (docs/spec/shared-memory.md §5.8).
fn is_of_stream(type_id: i32) -> bool {
    matches!(type_id, 1..=5 | 9 | 10 | 12 | 13 | 17 | 19 | 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use taran_core::counters::{CounterTable, CountersReader, METADATA_LENGTH, VALUES_LENGTH};
    use taran_core::memory::Region;

    /// Returns the labels of the matching counters among a few typical ones.
    fn passing(filter: &Filter) -> Vec<String> {
        let metadata = Region::anonymous(16 * METADATA_LENGTH).unwrap();
        let values = Region::anonymous(16 * VALUES_LENGTH).unwrap();
        let mut table = CounterTable::new(metadata.clone(), values.clone(), Duration::ZERO);
        let stream = |session_id, stream_id, channel: &'static str| {
            StreamKey {
                registration_id: 7,
                session_id,
                stream_id,
                channel: channel.into(),
            }
            .encode()
        };
        for (type_id, key, label) in [
            (type_id::SYSTEM, 31_i32.to_le_bytes().to_vec(), "system"),
            (
                type_id::PUBLISHER_LIMIT,
                stream(-5, 1001, "aeron:ipc").to_vec(),
                "ipc",
            ),
            (
                type_id::SENDER_POSITION,
                stream(6, 1002, "aeron:udp?endpoint=a:1").to_vec(),
                "udp",
            ),
            (
                type_id::SEND_CHANNEL_STATUS,
                ChannelKey {
                    channel: "aeron:udp?endpoint=a:1".into(),
                }
                .encode()
                .to_vec(),
                "channel",
            ),
            (
                type_id::CLIENT_HEARTBEAT,
                HeartbeatKey { client_id: 31 }.encode().to_vec(),
                "heartbeat",
            ),
            (1_000, vec![0xff; 112], "user"),
        ] {
            table.allocate(type_id, &key, label, 0).unwrap();
        }
        let mut labels = Vec::new();
        CountersReader::new(metadata, values).for_each(|counter| {
            if filter.passes(counter) {
                labels.push(counter.label.to_string());
            }
        });
        labels
    }

    fn regex(text: &str) -> Option<Regex> {
        Some(Regex::new(text).unwrap())
    }

    #[test]
    fn empty_filter_passes_every_counter() {
        assert_eq!(passing(&Filter::default()).len(), 6);
    }

    #[test]
    fn filter_matches_each_attribute() {
        let none = Filter::default;
        for (filter, labels) in [
            (
                Filter {
                    type_id: regex("^[12]$"),
                    ..none()
                },
                &["ipc", "udp"][..],
            ),
            (
                Filter {
                    identity: regex("^31$"),
                    ..none()
                },
                &["system", "heartbeat"],
            ),
            (
                Filter {
                    identity: regex("^7$"),
                    ..none()
                },
                &["ipc", "udp"],
            ),
            (
                Filter {
                    session: regex("-5"),
                    ..none()
                },
                &["ipc"],
            ),
            (
                Filter {
                    stream: regex("100"),
                    ..none()
                },
                &["ipc", "udp"],
            ),
            (
                Filter {
                    channel: regex("endpoint=a"),
                    ..none()
                },
                &["udp", "channel"],
            ),
            (
                Filter {
                    channel: regex("udp"),
                    stream: regex("1001"),
                    ..none()
                },
                &[],
            ),
        ] {
            assert_eq!(passing(&filter), labels, "{filter:?}");
        }
    }
}
