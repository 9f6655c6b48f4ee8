// SPDX-License-Identifier: Apache-2.0
//! Damaged bytes between the entries of a catalog. Entries follow each other without gaps in the format, so that the bytes become a
//! DELETED entry, or the end of the entry before them.

use super::super::descriptor::{Descriptor, RecordingTexts};
use super::entry::{ENTRY_HEADER, Entry, EntryState, MalformedEntry};

/// Offset of the recording id in an entry.
const ID_AT: usize = ENTRY_HEADER + 16;

/// Damaged bytes that other entries follow.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// Offset of the first byte.
    pub offset: u64,
    /// Offset of the entry that follows.
    pub end: u64,
    /// Recording id of the entry that has the bytes now.
    pub recording_id: i64,
    /// Recording id of the entry that follows.
    pub next_id: i64,
    /// The reason why the bytes are no entry; `None` if their length is zero.
    pub reason: Option<MalformedEntry>,
}

/// Returns a DELETED entry in place of damaged bytes at an offset, between the entries of two ids. It has the id that the bytes
/// have at the place of an entry's, if that is between both. `None` if there is no room for an entry, or no id for it.
pub(super) fn entry_in(
    damaged: &[u8],
    offset: u64,
    (previous, next_id): (Option<i64>, i64),
) -> Option<Entry> {
    let ids = previous.map_or(0, |id| id + 1)..next_id;
    let stored = damaged.get(ID_AT..ID_AT + 8)?.try_into().ok();
    let stored = stored.map(i64::from_le_bytes);
    let recording_id = stored.filter(|id| ids.contains(id)).unwrap_or(ids.start);
    let descriptor = Descriptor {
        control_session_id: 0,
        correlation_id: 0,
        recording_id,
        start_timestamp: 0,
        stop_timestamp: 0,
        start_position: 0,
        stop_position: 0,
        initial_term_id: 0,
        segment_file_length: 0,
        term_buffer_length: 0,
        mtu_length: 0,
        session_id: 0,
        stream_id: 0,
        texts: RecordingTexts {
            stripped_channel: "".into(),
            original_channel: "".into(),
            source_identity: "".into(),
        },
    };
    let length = damaged.len() as u64;
    let is_room = Entry::length_of(&descriptor, 1) <= length;
    (is_room && !ids.is_empty()).then_some(Entry {
        offset,
        length,
        state: EntryState::Deleted,
        checksum: 0,
        descriptor,
    })
}
