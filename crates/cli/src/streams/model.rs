//! The counters of a driver, stream by stream.

use std::collections::BTreeMap;

use serde::Serialize;
use taran_core::counters::{CounterMeta, CountersReader};
use taran_protocol::counter::{StreamKey, type_id};

/// A stream: what publishes or reads it in this driver.
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
    pub(crate) value: i64,
}

/// The types of counters that belong to a stream.
const OF_A_STREAM: [i32; 10] = [
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
    /// The counters of a type.
    pub(crate) fn of_type(&self, type_id: i32) -> impl Iterator<Item = &StreamCounter> {
        self.counters
            .iter()
            .filter(move |counter| counter.type_id == type_id)
    }

    /// The first counter of a type.
    pub(crate) fn first(&self, type_id: i32) -> Option<&StreamCounter> {
        self.of_type(type_id).next()
    }
}

/// All streams, by session, stream id and channel.
pub(crate) fn collect(counters: &CountersReader) -> Vec<Stream> {
    let mut streams: BTreeMap<(i32, i32, String), Vec<StreamCounter>> = BTreeMap::new();
    counters.for_each(|meta| {
        if OF_A_STREAM.contains(&meta.type_id)
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

/// In the order in which a message meets them.
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

/// What the label says before its first colon.
fn name(meta: &CounterMeta) -> String {
    meta.label
        .as_str()
        .split(':')
        .next()
        .unwrap_or("")
        .to_owned()
}

/// The channel: the key keeps the beginning of it only, the label may keep more.
pub(crate) fn channel(meta: &CounterMeta, of_key: &str) -> String {
    let of_label = meta
        .label
        .as_str()
        .find(of_key)
        .map(|start| &meta.label.as_str()[start..])
        // Behind the channel of a subscriber stands where it joined.
        .map(|rest| rest.split(" @").next().unwrap_or(rest))
        .filter(|_| !of_key.is_empty());
    of_label.unwrap_or(of_key).to_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use super::*;
    use taran_core::counters::{CounterTable, METADATA_LENGTH, VALUES_LENGTH};
    use taran_core::memory::Region;

    /// Counters: type, registration id, session, stream, channel, name, value.
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
    fn counters_are_put_together_stream_by_stream() {
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
