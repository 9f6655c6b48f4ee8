// SPDX-License-Identifier: Apache-2.0
//! Keys and labels of the archive's counters (`docs/spec/archive.md` §4.6).

use crate::config::ArchiveThreadingMode;
pub(crate) use crate::type_id;

/// Maximum length of a label in bytes.
const LABEL_LENGTH: usize = 380;
/// Maximum length of a source identity in the key of a position counter, in bytes.
const SOURCE_IDENTITY_LENGTH: usize = 88;

/// Type id, key and label of a counter to allocate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CounterSpec {
    pub(crate) type_id: i32,
    pub(crate) key: Vec<u8>,
    pub(crate) label: String,
}

impl CounterSpec {
    /// A counter that there is once in an archive.
    fn of_archive(type_id: i32, text: &str, archive_id: i64) -> Self {
        Self {
            type_id,
            key: archive_id.to_le_bytes().to_vec(),
            label: format!("{text} - archiveId={archive_id}"),
        }
    }

    /// The counter of errors.
    pub(crate) fn errors(archive_id: i64, version: &str, commit: &str) -> Self {
        let mut spec = Self::of_archive(type_id::ERRORS, "Archive Errors", archive_id);
        spec.label += &format!(" version={version} commit={commit}");
        spec
    }

    /// A counter with this type id, among those with one value per archive.
    pub(crate) fn single(type_id: i32, archive_id: i64) -> Self {
        let text = match type_id {
            type_id::CONTROL_SESSIONS => "Archive Control Sessions",
            type_id::RECORDER_MAX_WRITE_TIME => "archive-recorder max write time in ns",
            type_id::RECORDER_TOTAL_WRITE_BYTES => "archive-recorder total write bytes",
            type_id::RECORDER_TOTAL_WRITE_TIME => "archive-recorder total write time in ns",
            type_id::REPLAYER_MAX_READ_TIME => "archive-replayer max read time in ns",
            type_id::REPLAYER_TOTAL_READ_BYTES => "archive-replayer total read bytes",
            type_id::REPLAYER_TOTAL_READ_TIME => "archive-replayer total read time in ns",
            type_id::RECORDING_SESSIONS => "Archive Recording Sessions",
            type_id::HELD_RECORDINGS => "Archive recordings held back by a full disk",
            type_id::PURGED_BY_RETENTION => "Archive purges by retention",
            type_id::UNAVAILABLE_RECORDINGS => {
                "Archive recordings unavailable until the next start"
            }
            type_id::DAMAGED_RECORDINGS => "Archive recordings found damaged by verification",
            type_id::VERIFIED_BYTES => "Archive bytes verified in the background",
            _ => "Archive Replay Sessions",
        };
        Self::of_archive(type_id, text, archive_id)
    }

    /// The longest duty cycle of an agent.
    pub(crate) fn max_cycle_time(agent: &str, mode: ArchiveThreadingMode, archive_id: i64) -> Self {
        let text = format!("{agent} max cycle time in ns: {}", mode.as_str());
        Self::of_archive(type_id::MAX_CYCLE_TIME, &text, archive_id)
    }

    /// The number of duty cycles of an agent above a threshold.
    pub(crate) fn cycle_time_exceeded(
        agent: &str,
        threshold: &str,
        mode: ArchiveThreadingMode,
        archive_id: i64,
    ) -> Self {
        let mode = mode.as_str();
        let text = format!("{agent} work cycle time exceeded count: threshold={threshold} {mode}");
        Self::of_archive(type_id::CYCLE_TIME_EXCEEDED, &text, archive_id)
    }

    /// The recorded position of a recording.
    pub(crate) fn recording_position(
        recording_id: i64,
        session_id: i32,
        stream_id: i32,
        stripped_channel: &str,
        source_identity: &str,
        archive_id: i64,
    ) -> Self {
        let source = truncated(source_identity, SOURCE_IDENTITY_LENGTH).as_bytes();
        let mut key = recording_id.to_le_bytes().to_vec();
        key.extend_from_slice(&session_id.to_le_bytes());
        // At most 88.
        key.extend_from_slice(&(source.len() as i32).to_le_bytes());
        key.extend_from_slice(source);
        key.extend_from_slice(&archive_id.to_le_bytes());
        let suffix = format!(" - archiveId={archive_id}");
        let head = format!("rec-pos: {recording_id} {session_id} {stream_id} ");
        let room = LABEL_LENGTH.saturating_sub(head.len() + suffix.len());
        let channel = truncated(stripped_channel, room);
        Self {
            type_id: type_id::RECORDING_POSITION,
            key,
            label: format!("{head}{channel}{suffix}"),
        }
    }

    /// A control session.
    pub(crate) fn control_session(
        control_session_id: i64,
        client_info: &str,
        source_identity: &str,
        request_session_id: i32,
        archive_id: i64,
    ) -> Self {
        let mut key = archive_id.to_le_bytes().to_vec();
        key.extend_from_slice(&control_session_id.to_le_bytes());
        let suffix = format!(
            "sourceIdentity={source_identity} sessionId={request_session_id} - archiveId={archive_id}"
        );
        let head = "control-session: ";
        let room = LABEL_LENGTH.saturating_sub(head.len() + suffix.len() + 1);
        let info = truncated(client_info, room);
        let space = if info.is_empty() { "" } else { " " };
        let label = format!("{head}{info}{space}{suffix}");
        Self {
            type_id: type_id::CONTROL_SESSION,
            key,
            label: truncated(&label, LABEL_LENGTH).to_owned(),
        }
    }
}

/// Returns the start of a text, of at most `length` bytes.
fn truncated(text: &str, length: usize) -> &str {
    &text[..text.floor_char_boundary(length)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_the_archive_have_the_documented_labels() {
        assert_eq!(
            CounterSpec::errors(7, "1.51.0", "abc").label,
            "Archive Errors - archiveId=7 version=1.51.0 commit=abc"
        );
        let spec = CounterSpec::single(type_id::RECORDING_SESSIONS, -2);
        assert_eq!(spec.label, "Archive Recording Sessions - archiveId=-2");
        assert_eq!(spec.key, (-2_i64).to_le_bytes());
        let mode = ArchiveThreadingMode::Shared;
        assert_eq!(
            CounterSpec::max_cycle_time("archive-conductor", mode, 1).label,
            "archive-conductor max cycle time in ns: SHARED - archiveId=1"
        );
        assert_eq!(
            CounterSpec::cycle_time_exceeded("archive-recorder", "100ms", mode, 1).label,
            "archive-recorder work cycle time exceeded count: threshold=100ms SHARED - archiveId=1"
        );
    }

    #[test]
    fn position_counter_has_the_archive_id_behind_the_source() {
        let spec = CounterSpec::recording_position(3, -5, 1001, "aeron:ipc", "aeron:ipc", 9);
        assert_eq!(spec.label, "rec-pos: 3 -5 1001 aeron:ipc - archiveId=9");
        assert_eq!(spec.key[12..16], 9_i32.to_le_bytes());
        assert_eq!(&spec.key[16..25], b"aeron:ipc");
        assert_eq!(spec.key[25..], 9_i64.to_le_bytes());
        let long = "x".repeat(1_000);
        let spec = CounterSpec::recording_position(3, -5, 1001, &long, &long, 9);
        assert_eq!((spec.label.len(), spec.key.len()), (380, 112));
        assert!(spec.label.ends_with("x - archiveId=9"));
    }

    #[test]
    fn session_counter_names_client_and_source() {
        let spec = CounterSpec::control_session(4, "name=a version=1", "127.0.0.1:5", 6, 9);
        assert_eq!(
            spec.label,
            "control-session: name=a version=1 sourceIdentity=127.0.0.1:5 sessionId=6 - archiveId=9"
        );
        let spec = CounterSpec::control_session(4, "", "aeron:ipc", 6, 9);
        assert_eq!(
            spec.label,
            "control-session: sourceIdentity=aeron:ipc sessionId=6 - archiveId=9"
        );
        let long = "é".repeat(1_000);
        let spec = CounterSpec::control_session(4, &long, &long, 6, 9);
        assert!(spec.label.len() <= 380);
    }
}
