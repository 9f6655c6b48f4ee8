// SPDX-License-Identifier: Apache-2.0
//! The counters of a driver, grouped by stream.

use std::collections::BTreeMap;

use serde::Serialize;
use taran_core::counters::{CounterMeta, CountersReader};
use taran_protocol::counter::{StreamKey, type_id};

/// A stream: the parts that publish or receive it in this driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Stream {
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) channel: String,
    pub(crate) counters: Vec<StreamCounter>,
}

/// A counter of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct StreamCounter {
    pub(crate) id: i32,
    pub(crate) type_id: i32,
    pub(crate) name: String,
    pub(crate) registration_id: i64,
    /// Client of the publication or subscription; -1 or 0 if the counter belongs to the driver.
    pub(crate) client_id: i64,
    pub(crate) value: i64,
}

/// The counter types that belong to a stream.
const STREAM_COUNTER_TYPES: [i32; 10] = [
    type_id::PUBLISHER_LIMIT,
    type_id::SENDER_POSITION,
    type_id::RECEIVER_HIGH_WATER_MARK,
    type_id::SUBSCRIBER_POSITION,
    type_id::RECEIVER_POSITION,
    type_id::SENDER_LIMIT,
    type_id::PUBLISHER_POSITION,
    type_id::SENDER_BACK_PRESSURE_EVENTS,
    type_id::SENDER_NAKS_RECEIVED,
    type_id::RECEIVER_NAKS_SENT,
];

impl Stream {
    /// Returns the counters of a type.
    pub(crate) fn of_type(&self, type_id: i32) -> impl Iterator<Item = &StreamCounter> {
        self.counters
            .iter()
            .filter(move |counter| counter.type_id == type_id)
    }

    /// Returns the first counter of a type.
    pub(crate) fn first(&self, type_id: i32) -> Option<&StreamCounter> {
        self.of_type(type_id).next()
    }
}

/// Returns all streams, ordered by session id, stream id and channel.
pub(crate) fn collect(counters: &CountersReader) -> Vec<Stream> {
    let mut streams: BTreeMap<(i32, i32, String), Vec<StreamCounter>> = BTreeMap::new();
    counters.for_each(|meta| {
        if STREAM_COUNTER_TYPES.contains(&meta.type_id)
            && let Some(value) = counters.value(meta.id)
            && let Some(key) = StreamKey::decode(&meta.key)
        {
            let channel = channel(meta, &key.channel);
            streams
                .entry((key.session_id, key.stream_id, channel))
                .or_default()
                .push(StreamCounter {
                    id: meta.id,
                    type_id: meta.type_id,
                    name: name(meta),
                    registration_id: key.registration_id,
                    client_id: meta.owner_id,
                    value,
                });
        }
    });
    streams
        .into_iter()
        .map(|((session_id, stream_id, channel), mut counters)| {
            counters.sort_by_key(|counter| (order(counter.type_id), counter.registration_id));
            Stream {
                session_id,
                stream_id,
                channel,
                counters,
            }
        })
        .collect()
}

/// Sort key of a counter type: the order in which a message passes the parts of a stream.
fn order(type_id: i32) -> usize {
    const ORDER: [i32; 7] = [
        type_id::PUBLISHER_POSITION,
        type_id::PUBLISHER_LIMIT,
        type_id::SENDER_POSITION,
        type_id::SENDER_LIMIT,
        type_id::RECEIVER_HIGH_WATER_MARK,
        type_id::RECEIVER_POSITION,
        type_id::SUBSCRIBER_POSITION,
    ];
    ORDER
        .iter()
        .position(|&id| id == type_id)
        .unwrap_or(ORDER.len() + type_id.unsigned_abs() as usize)
}

/// Returns the label up to its first colon.
fn name(meta: &CounterMeta) -> String {
    meta.label
        .as_str()
        .split(':')
        .next()
        .unwrap_or("")
        .to_owned()
}

/// Returns the channel. The key is truncated to its beginning, the label may hold more.
pub(crate) fn channel(meta: &CounterMeta, key_channel: &str) -> String {
    let label_channel = meta
        .label
        .as_str()
        .find(key_channel)
        .map(|start| &meta.label.as_str()[start..])
        // In the label of a subscriber, the position at which it joined follows the channel.
        .map(|rest| rest.split(" @").next().unwrap_or(rest))
        .filter(|_| !key_channel.is_empty());
    label_channel.unwrap_or(key_channel).to_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use super::*;
    use taran_core::counters::{CounterTable, METADATA_LENGTH, VALUES_LENGTH};
    use taran_core::memory::Region;

    /// Creates counters from: type, registration id, session id, stream id, channel, name, value.
    pub(crate) fn reader(counters: &[(i32, i64, i32, i32, &str, &str, i64)]) -> CountersReader {
        let metadata = Region::anonymous(64 * METADATA_LENGTH).unwrap();
        let values = Region::anonymous(64 * VALUES_LENGTH).unwrap();
        let mut table = CounterTable::new(metadata.clone(), values.clone(), Duration::ZERO);
        for &(type_id, registration_id, session_id, stream_id, channel, name, value) in counters {
            let key = StreamKey {
                registration_id,
                session_id,
                stream_id,
                channel: channel.into(),
            };
            let joined = match type_id {
                type_id::SUBSCRIBER_POSITION => " @64",
                _ => "",
            };
            let label =
                format!("{name}: {registration_id} {session_id} {stream_id} {channel}{joined}");
            table
                .allocate(type_id, &key.encode(), &label, 0)
                .unwrap()
                .set(value);
        }
        CountersReader::new(metadata, values)
    }

    #[test]
    fn collect_groups_counters_by_stream() {
        let long = format!("aeron:udp?endpoint=localhost:1|alias={}", "x".repeat(100));
        let reader = reader(&[
            (4, 9, 7, 1001, "aeron:ipc", "sub-pos", 64),
            (1, 5, 7, 1001, "aeron:ipc", "pub-lmt", 128),
            (12, 5, 7, 1001, "aeron:ipc", "pub-pos (concurrent)", 96),
            (2, 6, -7, 3, &long, "snd-pos", 1),
            (0, 0, 0, 0, "", "Bytes sent", 1),
        ]);
        let streams = collect(&reader);
        assert_eq!(streams.len(), 2, "{streams:?}");
        assert_eq!(streams[0].channel, long);
        assert_eq!((streams[0].session_id, streams[0].stream_id), (-7, 3));
        let names: Vec<&str> = streams[1]
            .counters
            .iter()
            .map(|c| c.name.as_str())
            .collect();
        assert_eq!(names, ["pub-pos (concurrent)", "pub-lmt", "sub-pos"]);
        assert_eq!(
            streams[1].first(type_id::PUBLISHER_LIMIT).unwrap().value,
            128
        );
    }
}
