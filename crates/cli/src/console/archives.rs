// SPDX-License-Identifier: Apache-2.0
//! Archives that use a driver, from their counters (docs/spec/archive.md §4.6).

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use serde::Serialize;
use taran_archive::type_id;
use taran_core::counters::{CounterMeta, CountersReader};

use crate::live;

/// Recordings of an archive that are sent.
const MAX_RECORDINGS: usize = 500;

/// An archive.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Archive {
    pub(super) archive_id: i64,
    pub(super) errors: i64,
    pub(super) control_sessions: i64,
    pub(super) recording_sessions: i64,
    pub(super) replay_sessions: i64,
    /// Recordings held back by a full disk.
    pub(super) held: i64,
    /// Recordings found damaged.
    pub(super) damaged: i64,
    /// Bytes per second.
    pub(super) written: Option<f64>,
    pub(super) read: Option<f64>,
    /// Active recordings.
    pub(super) recordings: Vec<Recording>,
    pub(super) recordings_omitted: usize,
}

/// An active recording.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Recording {
    pub(super) recording_id: i64,
    pub(super) session_id: i32,
    pub(super) stream_id: i32,
    pub(super) channel: String,
    pub(super) source: String,
    /// Recorded position.
    pub(super) position: i64,
    /// Bytes per second.
    pub(super) rate: Option<f64>,
}

/// Rates of the archives of one driver.
///
/// Contract: [`Archives::take`] takes the counters and yields the archives, ordered by id.
#[derive(Debug, Default)]
pub(super) struct Archives {
    /// Time and values of the sample before.
    before: Option<(Instant, Values)>,
}

/// Values by counter id and type id.
type Values = HashMap<(i32, i32), i64>;

impl Archives {
    pub(super) fn take(&mut self, counters: &CountersReader) -> Vec<Archive> {
        let now = Instant::now();
        let elapsed = self
            .before
            .as_ref()
            .map(|(then, _)| now.duration_since(*then));
        let mut values = Values::new();
        let mut archives: BTreeMap<i64, Archive> = BTreeMap::new();
        counters.for_each(|meta| {
            let Some(value) = counters.value(meta.id) else {
                return;
            };
            let mut rate = || {
                let key = (meta.id, meta.type_id);
                values.insert(key, value);
                let before = self.before.as_ref();
                live::rate(
                    before.and_then(|(_, values)| values.get(&key).copied()),
                    value,
                    elapsed,
                )
            };
            if meta.type_id == type_id::RECORDING_POSITION {
                if let Some((archive_id, recording)) = recording(meta, value, &mut rate) {
                    archives
                        .entry(archive_id)
                        .or_default()
                        .recordings
                        .push(recording);
                }
                return;
            }
            if !IS_OF_ARCHIVE.contains(&meta.type_id) {
                return;
            }
            let Some(archive_id) = read_i64(&meta.key, 0) else {
                return;
            };
            let archive = archives.entry(archive_id).or_default();
            match meta.type_id {
                type_id::ERRORS => archive.errors = value,
                type_id::CONTROL_SESSIONS => archive.control_sessions = value,
                type_id::RECORDER_TOTAL_WRITE_BYTES => archive.written = rate(),
                type_id::REPLAYER_TOTAL_READ_BYTES => archive.read = rate(),
                type_id::RECORDING_SESSIONS => archive.recording_sessions = value,
                type_id::REPLAY_SESSIONS => archive.replay_sessions = value,
                type_id::HELD_RECORDINGS => archive.held = value,
                type_id::DAMAGED_RECORDINGS => archive.damaged = value,
                _ => {}
            }
        });
        self.before = Some((now, values));
        let finish = |(archive_id, mut archive): (i64, Archive)| {
            archive.archive_id = archive_id;
            archive
                .recordings
                .sort_by_key(|recording| recording.recording_id);
            archive.recordings_omitted = archive.recordings.len().saturating_sub(MAX_RECORDINGS);
            archive.recordings.truncate(MAX_RECORDINGS);
            archive
        };
        archives.into_iter().map(finish).collect()
    }
}

/// Types of counters whose key is the id of their archive.
const IS_OF_ARCHIVE: [i32; 8] = [
    type_id::ERRORS,
    type_id::CONTROL_SESSIONS,
    type_id::RECORDER_TOTAL_WRITE_BYTES,
    type_id::REPLAYER_TOTAL_READ_BYTES,
    type_id::RECORDING_SESSIONS,
    type_id::REPLAY_SESSIONS,
    type_id::HELD_RECORDINGS,
    type_id::DAMAGED_RECORDINGS,
];

/// Returns a recording and the id of its archive. Stream id and channel are in the label only.
fn recording(
    meta: &CounterMeta,
    position: i64,
    rate: &mut impl FnMut() -> Option<f64>,
) -> Option<(i64, Recording)> {
    let key = &meta.key;
    let source_length = usize::try_from(read_i32(key, 12)?).ok()?;
    let source_end = source_length.checked_add(16)?;
    let source = String::from_utf8_lossy(key.get(16..source_end)?).into_owned();
    let archive_id = read_i64(key, source_end)?;
    let mut words = meta
        .label
        .as_str()
        .strip_prefix("rec-pos: ")?
        .splitn(4, ' ')
        .skip(2);
    let stream_id = words.next()?.parse().ok()?;
    let channel = words.next().unwrap_or("");
    let channel = channel
        .rsplit_once(" - archiveId=")
        .map_or(channel, |(channel, _)| channel);
    let recording = Recording {
        recording_id: read_i64(key, 0)?,
        session_id: read_i32(key, 8)?,
        stream_id,
        channel: channel.to_owned(),
        source,
        position,
        rate: rate(),
    };
    Some((archive_id, recording))
}

fn read_i32(key: &[u8], offset: usize) -> Option<i32> {
    let bytes = key.get(offset..)?.first_chunk::<4>()?;
    Some(i32::from_le_bytes(*bytes))
}

fn read_i64(key: &[u8], offset: usize) -> Option<i64> {
    let bytes = key.get(offset..)?.first_chunk::<8>()?;
    Some(i64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use taran_core::counters::{CounterTable, METADATA_LENGTH, VALUES_LENGTH};
    use taran_core::memory::Region;

    fn key(recording_id: i64, source: &[u8], length: i32, archive_id: i64) -> Vec<u8> {
        let parts: [&[u8]; 5] = [
            &recording_id.to_le_bytes(),
            &(-7_i32).to_le_bytes(),
            &length.to_le_bytes(),
            source,
            &archive_id.to_le_bytes(),
        ];
        parts.concat()
    }

    #[test]
    fn take_groups_counters_by_archive() {
        let metadata = Region::anonymous(64 * METADATA_LENGTH).unwrap();
        let values = Region::anonymous(64 * VALUES_LENGTH).unwrap();
        let mut table = CounterTable::new(metadata.clone(), values.clone(), Duration::ZERO);
        let mut add = |type_id, key: &[u8], label: &str, value| {
            table.allocate(type_id, key, label, 0).unwrap().set(value);
        };
        let label = "rec-pos: 3 -7 1001 aeron:udp?endpoint=a:1 - archiveId=5";
        add(
            type_id::RECORDING_POSITION,
            &key(3, b"a:2", 3, 5),
            label,
            4096,
        );
        add(
            type_id::RECORDING_SESSIONS,
            &5_i64.to_le_bytes(),
            "sessions",
            1,
        );
        add(type_id::HELD_RECORDINGS, &6_i64.to_le_bytes(), "held", 2);
        // Damaged: false lengths, a label without a stream id.
        for length in [-1, 100, i32::MAX, i32::MIN] {
            add(
                type_id::RECORDING_POSITION,
                &key(3, b"a:2", length, 5),
                label,
                1,
            );
        }
        add(
            type_id::RECORDING_POSITION,
            &key(4, b"", 0, 5),
            "rec-pos: 4 -7 x",
            1,
        );
        let counters = CountersReader::new(metadata, values);

        let archives = Archives::default().take(&counters);
        assert_eq!(archives.len(), 2, "{archives:?}");
        assert_eq!(
            (archives[0].archive_id, archives[0].recording_sessions),
            (5, 1)
        );
        assert_eq!((archives[1].archive_id, archives[1].held), (6, 2));
        let expected = Recording {
            recording_id: 3,
            session_id: -7,
            stream_id: 1001,
            channel: "aeron:udp?endpoint=a:1".to_owned(),
            source: "a:2".to_owned(),
            position: 4096,
            rate: None,
        };
        assert_eq!(archives[0].recordings, [expected]);
    }
}
