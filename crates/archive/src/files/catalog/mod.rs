// SPDX-License-Identifier: Apache-2.0
//! The catalog: descriptors of all recordings (`docs/spec/archive.md` §3.2).
//!
//! [`Catalog`] is the state in memory: queries, and changes that return a [`Change`]. [`CatalogFile`] opens the file,
//! repairs what a crash can leave, and applies changes to it.
//!
//! Differences from Aeron's, with the same format: changes are written in an order that a power cut cannot turn into a
//! catalog that does not open; entries never grow over others; the space of purged recordings at the end is used again.

mod change;
mod entry;
mod error;
mod file;
mod gap;
mod index;
mod parse;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use taran_archive_client::codecs::control::catalog_header::CatalogHeaderEncoder;

use super::SyncLevel;
use super::checksum::Checksum;
use super::descriptor::{Descriptor, NULL_VALUE, NewRecording, RecordingTexts, ascii};
use entry::at;
use index::{StreamIndex, Texts};

pub use change::{Change, Piece, Step};
pub use entry::{Entry, EntryState, MalformedEntry};
pub use error::{AddError, CatalogError, UpdateError};
pub use file::{CatalogFile, CatalogReport, FoundCatalog};
pub use gap::Gap;
pub use parse::{CatalogContents, ParseError, ParseReport};

/// Name of the catalog in the directory of an archive.
pub const CATALOG_FILE: &str = "archive.catalog";
/// Version of catalog and mark file: 3.1.0.
pub const FILES_VERSION: i32 = 3 << 16 | 1 << 8;
/// Longest catalog in bytes.
pub const CATALOG_LENGTH_MAX: u64 = i32::MAX as u64;
/// Capacity of a new catalog in bytes, unless configured.
pub const CATALOG_CAPACITY_DEFAULT: u64 = 1 << 20;

/// Length of the header of the file.
const HEADER: u64 = 32;
/// Alignment of entries in new catalogs.
const ALIGNMENT: u64 = 64;
const NEXT_ID_AT: u64 = 8;
/// Length of an entry without its texts in bytes: header, fields, lengths of three texts.
const FIXED_LENGTH: u64 = 32 + 80 + 12;
/// Bytes that a disk writes at once, at least.
const SECTOR: u64 = 512;

/// Options of a catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogOptions {
    /// Lowest capacity in bytes.
    pub capacity: u64,
    /// Makes checksums of entries.
    pub checksum: Option<Checksum>,
    /// The durability of a change that was applied.
    pub sync: SyncLevel,
}

impl Default for CatalogOptions {
    fn default() -> Self {
        Self {
            capacity: CATALOG_CAPACITY_DEFAULT,
            checksum: None,
            sync: SyncLevel::None,
        }
    }
}

/// The catalog in memory.
///
/// Contract: queries never touch the file. A change is checked first and has no effect on error; on success it is in
/// memory, and the returned [`Change`] must be applied to the file. If that fails, memory is ahead of the file: end the
/// archive, or open the catalog anew.
#[derive(Clone, Debug)]
pub struct Catalog {
    options: CatalogOptions,
    alignment: u64,
    next_id: i64,
    capacity: u64,
    /// Highest length of the file.
    length_max: u64,
    /// End of the last entry.
    end: u64,
    /// In the order of the file, which is that of ids.
    entries: Vec<Entry>,
    streams: StreamIndex,
    texts: Texts,
    usable: usize,
    /// Recordings that cannot be used until the catalog is opened again, with the reasons.
    unavailable: BTreeMap<i64, String>,
}

impl Catalog {
    /// Creates an empty catalog, and the contents of its file.
    fn create(options: CatalogOptions) -> Self {
        Self {
            options,
            alignment: ALIGNMENT,
            next_id: 0,
            capacity: aligned_capacity(options.capacity, ALIGNMENT),
            length_max: CATALOG_LENGTH_MAX,
            end: HEADER,
            entries: Vec::new(),
            streams: StreamIndex::default(),
            texts: Texts::default(),
            usable: 0,
            unavailable: BTreeMap::new(),
        }
    }

    /// Limits the length of the file more than its format does.
    #[cfg(test)]
    pub(crate) fn set_length_max(&mut self, length_max: u64) {
        self.length_max = length_max;
    }

    /// Returns the id of the next new recording. No recording had it before.
    #[must_use]
    pub fn next_recording_id(&self) -> i64 {
        self.next_id
    }

    /// Returns the length of the file in bytes.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the end of the entries in the file, in bytes.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.end
    }

    /// Returns the alignment of entries in bytes.
    #[must_use]
    pub fn alignment(&self) -> u64 {
        self.alignment
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> &CatalogOptions {
        &self.options
    }

    /// Returns all entries in the order of their ids, those of unusable recordings included.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the entry of an id in any state.
    #[must_use]
    pub fn entry(&self, recording_id: i64) -> Option<&Entry> {
        self.position(recording_id).map(|at| &self.entries[at])
    }

    /// Returns the number of recordings.
    #[must_use]
    pub fn len(&self) -> usize {
        self.usable
    }

    /// Returns true if there is no recording.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.usable == 0
    }

    /// Makes a recording unavailable until the catalog is opened again: queries do not find it. Its entry in the file stays
    /// as it is.
    pub fn set_unavailable(&mut self, recording_id: i64, reason: String) {
        let Ok((_, entry)) = self.known(recording_id) else {
            return;
        };
        let stream_id = entry.descriptor.stream_id;
        self.streams.remove(stream_id, recording_id);
        self.usable -= 1;
        self.unavailable.insert(recording_id, reason);
    }

    /// Returns why a recording is unavailable; `None` if it is not.
    #[must_use]
    pub fn unavailable(&self, recording_id: i64) -> Option<&str> {
        self.unavailable.get(&recording_id).map(String::as_str)
    }

    /// Returns the number of unavailable recordings.
    #[must_use]
    pub fn unavailable_count(&self) -> usize {
        self.unavailable.len()
    }

    fn is_usable(&self, entry: &Entry) -> bool {
        is_usable(entry)
            && !self
                .unavailable
                .contains_key(&entry.descriptor.recording_id)
    }

    /// Returns a recording. Entries that are not VALID, those whose fields contradict each other, and those of
    /// [unavailable](Self::set_unavailable) recordings are none.
    #[must_use]
    pub fn get(&self, recording_id: i64) -> Option<&Descriptor> {
        self.entry(recording_id)
            .filter(|entry| self.is_usable(entry))
            .map(Entry::descriptor)
    }

    /// Returns the recordings with an id of at least `from`, ascending.
    pub fn recordings(&self, from: i64) -> impl Iterator<Item = &Descriptor> {
        let start = self
            .entries
            .partition_point(|entry| entry.descriptor.recording_id < from);
        self.entries[start..]
            .iter()
            .filter(|entry| self.is_usable(entry))
            .map(Entry::descriptor)
    }

    /// Returns the recordings of a stream whose original channel contains `fragment`, with an id of at least `from`,
    /// ascending. An empty fragment matches all.
    pub fn recordings_of(
        &self,
        from: i64,
        stream_id: i32,
        fragment: &str,
    ) -> impl Iterator<Item = &Descriptor> {
        let mut matcher = Matcher::new(fragment);
        self.streams
            .ids_from(stream_id, from)
            .iter()
            .filter_map(|id| self.get(*id))
            .filter(move |descriptor| matcher.matches(&descriptor.texts))
    }

    /// Returns the highest id, at least `min_id`, of a recording of this stream and session whose original channel contains
    /// `fragment`.
    #[must_use]
    pub fn find_last_matching(
        &self,
        min_id: i64,
        stream_id: i32,
        session_id: i32,
        fragment: &str,
    ) -> Option<i64> {
        let mut matcher = Matcher::new(fragment);
        self.streams
            .ids_from(stream_id, min_id)
            .iter()
            .rev()
            .filter_map(|id| self.get(*id))
            .find(|descriptor| {
                descriptor.session_id == session_id && matcher.matches(&descriptor.texts)
            })
            .map(|descriptor| descriptor.recording_id)
    }

    /// Checks that a recording with texts of this length in bytes can be added.
    ///
    /// # Errors
    ///
    /// The catalog is full.
    pub fn check_room(&self, texts: usize) -> Result<(), AddError> {
        let (_, offset) = self.next_place();
        let end = offset + (FIXED_LENGTH + texts as u64).next_multiple_of(self.alignment);
        self.capacity_for(end).map(|_| ())
    }

    /// Returns index and offset of the next new entry: behind the last one that was not purged.
    fn next_place(&self) -> (usize, u64) {
        let kept = self
            .entries
            .iter()
            .rposition(|entry| entry.state != EntryState::Deleted);
        let kept = kept.map_or(0, |last| last + 1);
        let offset = self
            .entries
            .get(kept)
            .map_or(self.end, |first| first.offset);
        (kept, offset)
    }

    /// Adds an active recording, and returns its id.
    ///
    /// # Errors
    ///
    /// The values are impossible, or the catalog is full.
    pub fn add(&mut self, new: &NewRecording<'_>) -> Result<(i64, Change), AddError> {
        let descriptor = self.descriptor_of(self.next_id, new);
        descriptor.validate()?;
        let id = descriptor.recording_id;
        let next_id = id.checked_add(1).ok_or(AddError::IdsExhausted)?;

        let (kept, offset) = self.next_place();
        let length = Entry::length_of(&descriptor, self.alignment);
        let end = offset + length;
        let capacity = self.capacity_for(end)?;

        let mut change = Change::default();
        let sync = self.options.sync;
        if capacity != self.capacity {
            change.grow(capacity);
            change.sync(sync);
        }
        if kept < self.entries.len() {
            // Ends the catalog before the purged recordings, then removes them, so that nothing of them follows the new
            // entry.
            change.write(offset, [0; 4]);
            change.sync(sync);
            change.zero(offset + 4, self.end - offset - 4);
            change.sync(sync);
        }
        let mut entry = Entry {
            offset,
            length,
            state: EntryState::Valid,
            checksum: 0,
            descriptor,
        };
        if let Some(checksum) = self.options.checksum {
            entry.checksum = entry.compute_checksum(checksum);
        }
        let bytes = entry.encode();
        // The next id before the entry: a lower one would make Aeron refuse the catalog. The length, which makes the entry
        // part of the catalog, when all else is there.
        change.write(NEXT_ID_AT, next_id.to_le_bytes());
        change.write(offset + 4, &bytes[4..]);
        change.sync(sync);
        change.write(offset, &bytes[..4]);
        change.sync(sync);

        self.entries.truncate(kept);
        self.streams.insert(entry.descriptor.stream_id, id);
        self.entries.push(entry);
        self.usable += 1;
        self.next_id = next_id;
        self.capacity = capacity;
        self.end = end;
        Ok((id, change))
    }

    /// Stops a recording.
    ///
    /// # Errors
    ///
    /// There is no such recording, or it cannot end there.
    pub fn stop(
        &mut self,
        recording_id: i64,
        position: i64,
        timestamp: i64,
    ) -> Result<Change, UpdateError> {
        self.update(recording_id, |descriptor| {
            descriptor.stop_position = position;
            descriptor.stop_timestamp = timestamp;
        })
    }

    /// Sets the stop position of a recording; the stop timestamp stays.
    ///
    /// # Errors
    ///
    /// There is no such recording, or it cannot end there.
    pub fn set_stop_position(
        &mut self,
        recording_id: i64,
        position: i64,
    ) -> Result<Change, UpdateError> {
        self.update(recording_id, |descriptor| {
            descriptor.stop_position = position;
        })
    }

    /// Makes a stopped recording active again.
    ///
    /// # Errors
    ///
    /// There is no such recording.
    pub fn extend(
        &mut self,
        recording_id: i64,
        control_session_id: i64,
        correlation_id: i64,
        session_id: i32,
    ) -> Result<Change, UpdateError> {
        self.update(recording_id, |descriptor| {
            descriptor.control_session_id = control_session_id;
            descriptor.correlation_id = correlation_id;
            descriptor.session_id = session_id;
            descriptor.stop_timestamp = NULL_VALUE;
            descriptor.stop_position = NULL_VALUE;
        })
    }

    /// Sets the start position of a recording.
    ///
    /// # Errors
    ///
    /// There is no such recording, or it cannot start there.
    pub fn set_start_position(
        &mut self,
        recording_id: i64,
        position: i64,
    ) -> Result<Change, UpdateError> {
        self.update(recording_id, |descriptor| {
            descriptor.start_position = position;
        })
    }

    /// Renews the checksum of an entry, if the catalog has checksums.
    ///
    /// # Errors
    ///
    /// There is no such recording.
    pub fn renew_checksum(&mut self, recording_id: i64) -> Result<Change, UpdateError> {
        self.update(recording_id, |_| ())
    }

    /// Stores a checksum in an entry, also if the catalog makes none.
    ///
    /// # Errors
    ///
    /// There is no such entry.
    pub fn stamp_checksum(
        &mut self,
        recording_id: i64,
        checksum: Checksum,
    ) -> Result<Change, UpdateError> {
        let at = self
            .position(recording_id)
            .ok_or(UpdateError::Unknown { recording_id })?;
        let entry = &mut self.entries[at];
        entry.checksum = entry.compute_checksum(checksum);
        let mut change = Change::default();
        change.write(entry.offset + at::CHECKSUM, entry.checksum.to_le_bytes());
        change.sync(self.options.sync);
        Ok(change)
    }

    /// Changes the state of an entry: purges a recording, or marks it.
    ///
    /// # Errors
    ///
    /// There is no such entry, or the recording was purged.
    pub fn set_state(
        &mut self,
        recording_id: i64,
        state: EntryState,
    ) -> Result<Change, UpdateError> {
        let at = self
            .position(recording_id)
            .ok_or(UpdateError::Unknown { recording_id })?;
        let entry = &self.entries[at];
        if entry.state == EntryState::Deleted && state != EntryState::Deleted {
            return Err(UpdateError::Deleted { recording_id });
        }
        let mut change = Change::default();
        change.write(entry.offset + at::STATE, state.raw().to_le_bytes());
        change.sync(self.options.sync);
        self.edit(at, |entry| entry.state = state);
        Ok(change)
    }

    /// Replaces the channels of a recording.
    ///
    /// # Errors
    ///
    /// There is no such recording, or the catalog is full.
    pub fn set_channels(
        &mut self,
        recording_id: i64,
        stripped_channel: &str,
        original_channel: &str,
    ) -> Result<Change, UpdateError> {
        let mut descriptor = self.known(recording_id)?.1.descriptor.clone();
        descriptor.texts.stripped_channel = self.texts.shared(&ascii(stripped_channel));
        descriptor.texts.original_channel = self.texts.shared(&ascii(original_channel));
        self.rewrite_entry(descriptor)
    }

    /// Replaces an empty recording by another one of the same id, active from its start position.
    ///
    /// # Errors
    ///
    /// There is no such recording, the values are impossible, or the catalog is full.
    pub fn replace(
        &mut self,
        recording_id: i64,
        new: &NewRecording<'_>,
    ) -> Result<Change, UpdateError> {
        self.known(recording_id)?;
        let descriptor = self.descriptor_of(recording_id, new);
        self.rewrite_entry(descriptor)
    }

    /// Returns the descriptor of a new recording, which is active from its start position.
    fn descriptor_of(&mut self, recording_id: i64, new: &NewRecording<'_>) -> Descriptor {
        Descriptor {
            control_session_id: 0,
            correlation_id: 0,
            recording_id,
            start_timestamp: new.start_timestamp,
            stop_timestamp: NULL_VALUE,
            start_position: new.start_position,
            stop_position: NULL_VALUE,
            initial_term_id: new.initial_term_id,
            segment_file_length: new.segment_file_length,
            term_buffer_length: new.term_buffer_length,
            mtu_length: new.mtu_length,
            session_id: new.session_id,
            stream_id: new.stream_id,
            texts: RecordingTexts {
                stripped_channel: self.texts.shared(&ascii(new.stripped_channel)),
                original_channel: self.texts.shared(&ascii(new.original_channel)),
                source_identity: self.texts.shared(&ascii(new.source_identity)),
            },
        }
    }

    /// Removes all entries that are not VALID, and returns them. Their segment files remain.
    pub fn compact(&mut self) -> (Vec<Entry>, Change) {
        let (kept, removed): (Vec<Entry>, Vec<Entry>) = std::mem::take(&mut self.entries)
            .into_iter()
            .partition(|entry| entry.state == EntryState::Valid);
        let mut change = Change::default();
        let mut pieces = vec![Piece::Bytes(self.header())];
        let mut end = HEADER;
        for mut entry in kept {
            let (offset, len) = (entry.offset, entry.length);
            push_copy(&mut pieces, offset, len);
            entry.offset = end;
            end += len;
            self.entries.push(entry);
        }
        self.end = end;
        self.capacity = aligned_capacity(end, self.alignment);
        change.rewrite(pieces, self.capacity);
        (removed, change)
    }

    /// Writes the file anew with another descriptor for an entry: in place, a power cut could leave a mixture of both.
    fn rewrite_entry(&mut self, descriptor: Descriptor) -> Result<Change, UpdateError> {
        descriptor.validate()?;
        let (at, old) = self.known(descriptor.recording_id)?;
        let (old_offset, old_length) = (old.offset, old.length);
        let length = Entry::length_of(&descriptor, self.alignment);
        let end = self.end - old_length + length;
        let capacity = self.capacity_for(end).map_err(UpdateError::from)?;
        let mut entry = Entry {
            offset: old_offset,
            length,
            state: EntryState::Valid,
            checksum: 0,
            descriptor,
        };
        if let Some(checksum) = self.options.checksum {
            entry.checksum = entry.compute_checksum(checksum);
        }
        let mut pieces = vec![Piece::Bytes(self.header())];
        push_copy(&mut pieces, HEADER, old_offset - HEADER);
        pieces.push(Piece::Bytes(entry.encode()));
        push_copy(
            &mut pieces,
            old_offset + old_length,
            self.end - old_offset - old_length,
        );
        let mut change = Change::default();
        change.rewrite(pieces, capacity);
        for later in &mut self.entries[at + 1..] {
            later.offset = later.offset - old_length + length;
        }
        self.edit(at, |slot| *slot = entry);
        self.end = end;
        self.capacity = capacity;
        Ok(change)
    }

    /// Changes fields of a usable recording, and writes them and the checksum.
    fn update(
        &mut self,
        recording_id: i64,
        edit: impl FnOnce(&mut Descriptor),
    ) -> Result<Change, UpdateError> {
        let (at, entry) = self.known(recording_id)?;
        let (mut entry, old_stop) = (entry.clone(), entry.descriptor.stop_position);
        edit(&mut entry.descriptor);
        entry.descriptor.validate()?;
        let mut change = Change::default();
        let stop = entry.descriptor.stop_position;
        if old_stop != NULL_VALUE && stop != NULL_VALUE && stop != old_stop {
            // A torn position is recognised if the other value is NULL; the archive then looks for the end itself.
            let mut active = entry.clone();
            active.descriptor.stop_position = NULL_VALUE;
            self.write_fields(&mut change, &mut active);
        }
        self.write_fields(&mut change, &mut entry);
        self.edit(at, |slot| *slot = entry);
        Ok(change)
    }

    /// Writes checksum and fixed fields of an entry.
    fn write_fields(&self, change: &mut Change, entry: &mut Entry) {
        if let Some(checksum) = self.options.checksum {
            entry.checksum = entry.compute_checksum(checksum);
        }
        let (start, end) = (entry.offset + at::CHECKSUM, entry.offset + at::TEXTS);
        let fields = &entry.encode()[at::CHECKSUM as usize..at::TEXTS as usize];
        let (checksum, rest) = fields.split_at(4);
        let sync = self.options.sync;
        if self.options.checksum.is_some() && start / SECTOR != (end - 1) / SECTOR {
            // A power cut can leave one of both sectors. Without a checksum, the entry gets one when the catalog is opened.
            change.write(start, [0; 4]);
            change.sync(sync);
            change.write(start + 4, rest);
            change.sync(sync);
            change.write(start, checksum);
        } else {
            change.write(start, fields);
        }
        change.sync(sync);
    }

    /// Changes an entry in memory and keeps the index.
    fn edit(&mut self, at: usize, edit: impl FnOnce(&mut Entry)) {
        let entry = &mut self.entries[at];
        let id = entry.descriptor.recording_id;
        let is_available = !self.unavailable.contains_key(&id);
        let (was, stream) = (is_usable(entry) && is_available, entry.descriptor.stream_id);
        edit(entry);
        let (is, new_stream) = (is_usable(entry) && is_available, entry.descriptor.stream_id);
        if was && (!is || stream != new_stream) {
            self.streams.remove(stream, id);
        }
        if is {
            self.streams.insert(new_stream, id);
        }
        self.usable = self.usable + usize::from(is) - usize::from(was);
    }

    /// Adds an entry that was read from the file.
    fn push_parsed(&mut self, entry: Entry) {
        if is_usable(&entry) {
            self.usable += 1;
            self.streams
                .insert(entry.descriptor.stream_id, entry.descriptor.recording_id);
        }
        self.end = entry.offset + entry.length;
        self.entries.push(entry);
    }

    fn position(&self, recording_id: i64) -> Option<usize> {
        self.entries
            .binary_search_by_key(&recording_id, |entry| entry.descriptor.recording_id)
            .ok()
    }

    fn known(&self, recording_id: i64) -> Result<(usize, &Entry), UpdateError> {
        self.position(recording_id)
            .map(|at| (at, &self.entries[at]))
            .filter(|(_, entry)| self.is_usable(entry))
            .ok_or(UpdateError::Unknown { recording_id })
    }

    /// Returns the capacity with which entries may end at `end`.
    fn capacity_for(&self, end: u64) -> Result<u64, AddError> {
        let mut capacity = self.capacity;
        while capacity < end {
            let grown =
                (capacity + capacity / 2).min(self.length_max) / self.alignment * self.alignment;
            if grown <= capacity {
                return Err(AddError::Full {
                    needed: end,
                    limit: self.length_max,
                });
            }
            capacity = grown;
        }
        Ok(capacity)
    }

    /// Returns the header of the file.
    fn header(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEADER as usize];
        if let Ok(mut encoder) = CatalogHeaderEncoder::wrap(&mut bytes) {
            encoder
                .version(FILES_VERSION)
                .length(HEADER as i32)
                .next_recording_id(self.next_id)
                // An alignment is at most 2^20.
                .alignment(self.alignment as i32);
        }
        bytes
    }
}

/// Matches channels with a fragment. Remembers the last text, because recordings share them.
struct Matcher<'a> {
    fragment: &'a str,
    last: Option<(*const str, bool)>,
}

impl<'a> Matcher<'a> {
    fn new(fragment: &'a str) -> Self {
        Self {
            fragment,
            last: None,
        }
    }

    fn matches(&mut self, texts: &RecordingTexts) -> bool {
        let channel = &*texts.original_channel;
        let pointer = std::ptr::from_ref(channel);
        match self.last {
            Some((last, result)) if std::ptr::eq(last, pointer) => result,
            _ => {
                let result = channel.contains(self.fragment);
                self.last = Some((pointer, result));
                result
            }
        }
    }
}

fn is_usable(entry: &Entry) -> bool {
    entry.state == EntryState::Valid && entry.descriptor.validate().is_ok()
}

fn push_copy(pieces: &mut Vec<Piece>, offset: u64, len: u64) {
    match pieces.last_mut() {
        Some(Piece::Copy {
            offset: last,
            len: last_len,
        }) if *last + *last_len == offset => *last_len += len,
        _ if len == 0 => (),
        _ => pieces.push(Piece::Copy { offset, len }),
    }
}

/// Returns a configured capacity as a multiple of the alignment with space for an entry.
fn aligned_capacity(capacity: u64, alignment: u64) -> u64 {
    let least = HEADER + 192;
    let capacity = capacity.clamp(least, CATALOG_LENGTH_MAX);
    let highest = CATALOG_LENGTH_MAX / alignment * alignment;
    capacity.next_multiple_of(alignment).min(highest)
}
