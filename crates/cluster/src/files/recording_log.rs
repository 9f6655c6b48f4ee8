// SPDX-License-Identifier: Apache-2.0
//! The recording log: terms of the log, and snapshots.

use thiserror::Error;

use super::{i32_at, i64_at};
use crate::consensus::{TermEntry, Terms};

/// Entries start at multiples of this.
const ALIGNMENT: usize = 64;

/// Greatest length of an entry.
const MAX_ENTRY_LENGTH: usize = 4096;

/// Length of the fixed fields.
const FIXED: usize = 48;

/// Offset of the endpoint's text.
const ENDPOINT: usize = FIXED + 4;

const INVALID: i32 = i32::MIN;

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum EntryKind {
    /// A term of the log.
    Term = 0,
    /// A snapshot.
    Snapshot = 1,
    /// A snapshot in the archive of a standby.
    StandbySnapshot = 2,
}

/// An entry of a recording log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingLogEntry {
    /// Recording of the log or snapshot.
    pub recording_id: i64,
    /// Term.
    pub leadership_term_id: i64,
    /// Position at which the term starts.
    pub term_base_log_position: i64,
    /// End of the term, -1 while it is open; or position of the snapshot.
    pub log_position: i64,
    /// Time in the unit of the cluster's clock.
    pub timestamp: i64,
    /// Service of a snapshot; -1 for the consensus module and for terms.
    pub service_id: i32,
    /// Kind.
    pub kind: EntryKind,
    /// False if the entry is invalidated.
    pub is_valid: bool,
    /// Archive of a standby snapshot; empty for other kinds.
    pub archive_endpoint: String,
}

/// Reason why bytes are no recording log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordingLogError {
    /// An entry of a kind that does not exist.
    #[error("the recording log has an entry of the unknown type {kind} at {offset}; {REMEDY}")]
    UnknownKind {
        /// Offset of the entry.
        offset: usize,
        /// Type field.
        kind: i32,
    },
    /// An endpoint with a length that is none, or that the file does not have.
    #[error("the recording log has an archive endpoint of {length} bytes at {offset}; {REMEDY}")]
    InvalidEndpoint {
        /// Offset of the entry.
        offset: usize,
        /// Length of the endpoint.
        length: i32,
    },
    /// TERM entries of two recordings.
    #[error("the recording log has terms of the recordings {first} and {second}; {REMEDY}")]
    TwoRecordings {
        /// Recording of the first TERM entry.
        first: i64,
        /// Recording of a later one.
        second: i64,
    },
    /// Valid TERM entries that do not ascend.
    #[error("the TERM entries of the recording log do not ascend; {REMEDY}")]
    UnorderedTerms,
}

/// The way out of a corrupt file.
const REMEDY: &str = "restore the file, or replace the member";

/// A recording log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingLog {
    /// Entries in the order of the file, each with its offset. Removed ones are left out.
    entries: Vec<(usize, RecordingLogEntry)>,
    /// Offset of the next entry.
    end: usize,
}

impl RecordingLog {
    /// Reads a file. A rest of 48 bytes or less, which an interrupted append leaves, is ignored, as the official reader does.
    ///
    /// # Errors
    /// The bytes are no recording log.
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordingLogError> {
        let mut log = Self::default();
        let mut at = 0;
        while bytes.len().saturating_sub(at) > FIXED {
            let kind = i32_at(bytes, at + 44);
            let is_removed = kind == -1;
            let mut length = ALIGNMENT;
            let mut endpoint = "";
            let known = match kind & !INVALID {
                0 => Some(EntryKind::Term),
                1 => Some(EntryKind::Snapshot),
                2 => Some(EntryKind::StandbySnapshot),
                _ if is_removed => None,
                _ => return Err(RecordingLogError::UnknownKind { offset: at, kind }),
            };
            if known == Some(EntryKind::StandbySnapshot) {
                (endpoint, length) = endpoint_at(bytes, at)?;
            }
            if let Some(kind) = known {
                let entry = RecordingLogEntry {
                    recording_id: i64_at(bytes, at),
                    leadership_term_id: i64_at(bytes, at + 8),
                    term_base_log_position: i64_at(bytes, at + 16),
                    log_position: i64_at(bytes, at + 24),
                    timestamp: i64_at(bytes, at + 32),
                    service_id: i32_at(bytes, at + 40),
                    kind,
                    is_valid: i32_at(bytes, at + 44) >= 0,
                    archive_endpoint: endpoint.to_owned(),
                };
                log.entries.push((at, entry));
            }
            at += length;
        }
        log.end = bytes.len().next_multiple_of(ALIGNMENT);
        log.check()?;
        Ok(log)
    }

    fn check(&self) -> Result<(), RecordingLogError> {
        let mut recordings = self
            .entries()
            .filter(|entry| entry.kind == EntryKind::Term)
            .map(|entry| entry.recording_id);
        if let Some(first) = recordings.next()
            && let Some(second) = recordings.find(|id| *id != first)
        {
            return Err(RecordingLogError::TwoRecordings { first, second });
        }
        self.terms().map(|_| ())
    }

    /// Returns all entries in the order of the file.
    pub fn entries(&self) -> impl Iterator<Item = &RecordingLogEntry> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    /// Returns the offset at which the next entry is written.
    #[must_use]
    pub const fn end(&self) -> usize {
        self.end
    }

    /// Returns the recording of the log.
    #[must_use]
    pub fn recording_id(&self) -> Option<i64> {
        let mut terms = self.entries().filter(|entry| entry.kind == EntryKind::Term);
        terms.next().map(|entry| entry.recording_id)
    }

    /// Returns the valid terms.
    ///
    /// # Errors
    /// A term comes twice, or a later term starts before an earlier one.
    pub fn terms(&self) -> Result<Terms, RecordingLogError> {
        let mut terms: Vec<TermEntry> = self
            .entries()
            .filter(|entry| entry.kind == EntryKind::Term && entry.is_valid)
            .map(|entry| TermEntry {
                term: entry.leadership_term_id,
                base: entry.term_base_log_position,
            })
            .collect();
        terms.sort_by_key(|entry| entry.term);
        Terms::new(terms).ok_or(RecordingLogError::UnorderedTerms)
    }
}

/// A change of the file: bytes at an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Offset in the file.
    pub offset: usize,
    /// New bytes.
    pub bytes: Vec<u8>,
}

/// Changes. Each returns what has to be written to the file, in order.
impl RecordingLog {
    /// Adds the TERM entry of a term. Valid entries of later terms become invalid; the term before gets its end. An entry of
    /// the term that is there already is kept.
    pub fn append_term(
        &mut self,
        recording_id: i64,
        term: i64,
        base: i64,
        timestamp: i64,
    ) -> Vec<Patch> {
        let mut patches = self
            .invalidate(|entry| entry.kind == EntryKind::Term && entry.leadership_term_id > term);
        let terms = self.terms().unwrap_or_default();
        if terms.get(term).is_some() {
            return patches;
        }
        let before = terms.log_term();
        patches.extend(self.end_term(before, base));
        patches.push(self.append(RecordingLogEntry {
            recording_id,
            leadership_term_id: term,
            term_base_log_position: base,
            log_position: -1,
            timestamp,
            service_id: -1,
            kind: EntryKind::Term,
            is_valid: true,
            archive_endpoint: String::new(),
        }));
        patches
    }

    /// Sets the end of a term.
    pub fn end_term(&mut self, term: i64, end: i64) -> Option<Patch> {
        let (offset, entry) = self.entries.iter_mut().find(|(_, entry)| {
            entry.kind == EntryKind::Term && entry.is_valid && entry.leadership_term_id == term
        })?;
        entry.log_position = end;
        Some(Patch {
            offset: *offset + 24,
            bytes: end.to_le_bytes().to_vec(),
        })
    }

    /// Marks TERM entries invalid after a truncation: those that start behind `position`, and those from the term `from_term`
    /// on. The last one that is left is open.
    pub fn truncate(&mut self, position: i64, from_term: i64) -> Vec<Patch> {
        let mut patches = self.invalidate(|entry| {
            entry.kind == EntryKind::Term
                && (entry.term_base_log_position > position
                    || entry.leadership_term_id >= from_term)
        });
        let last = self.terms().unwrap_or_default().log_term();
        patches.extend(self.end_term(last, -1));
        patches
    }

    /// Adds the entry of a snapshot.
    pub fn append_snapshot(&mut self, entry: RecordingLogEntry) -> Patch {
        self.append(entry)
    }

    fn append(&mut self, entry: RecordingLogEntry) -> Patch {
        // Only the endpoint of a standby snapshot can be too long, and it is kept as it was read.
        let bytes = entry.encode().unwrap_or_default();
        let offset = self.end;
        self.end += bytes.len();
        self.entries.push((offset, entry));
        Patch { offset, bytes }
    }

    fn invalidate(&mut self, is_wanted: impl Fn(&RecordingLogEntry) -> bool) -> Vec<Patch> {
        let mut patches = Vec::new();
        for (offset, entry) in &mut self.entries {
            if entry.is_valid && is_wanted(entry) {
                entry.is_valid = false;
                patches.push(Patch {
                    offset: *offset + 44,
                    bytes: (entry.kind as i32 | INVALID).to_le_bytes().to_vec(),
                });
            }
        }
        patches
    }

    /// Invalidates the newest valid snapshot, the entries of services included. Returns nothing if there is none.
    pub fn invalidate_latest_snapshot(&mut self) -> Vec<Patch> {
        let Some(position) = self.latest_snapshot_position() else {
            return Vec::new();
        };
        self.invalidate(|entry| entry.kind == EntryKind::Snapshot && entry.log_position == position)
    }

    /// Invalidates the snapshot in this recording.
    pub fn invalidate_snapshot(&mut self, recording_id: i64) -> Vec<Patch> {
        self.invalidate(|entry| {
            entry.kind == EntryKind::Snapshot && entry.recording_id == recording_id
        })
    }

    fn latest_snapshot_position(&self) -> Option<i64> {
        self.entries()
            .filter(|entry| entry.kind == EntryKind::Snapshot && entry.is_valid)
            .filter(|entry| entry.service_id == -1)
            .map(|entry| entry.log_position)
            .max()
    }

    /// Returns the newest valid snapshot that is complete: the entry of the consensus module, and those of its services in
    /// ascending order.
    #[must_use]
    pub fn latest_snapshot(
        &self,
        service_count: usize,
    ) -> Option<(&RecordingLogEntry, Vec<&RecordingLogEntry>)> {
        let snapshots = || {
            self.entries()
                .filter(|entry| entry.kind == EntryKind::Snapshot && entry.is_valid)
        };
        let mut modules: Vec<_> = snapshots().filter(|entry| entry.service_id == -1).collect();
        modules.sort_by_key(|entry| (entry.leadership_term_id, entry.log_position));
        modules.into_iter().rev().find_map(|module| {
            let services: Vec<_> = (0..)
                .take(service_count)
                .filter_map(|id| {
                    snapshots().filter(|it| it.service_id == id).find(|it| {
                        it.log_position == module.log_position
                            && it.leadership_term_id == module.leadership_term_id
                    })
                })
                .collect();
            (services.len() == service_count).then_some((module, services))
        })
    }
}

/// Logs that replace this one.
impl RecordingLog {
    /// Returns the log with its entries in order: by term and its start, terms before snapshots, snapshots by position, and the
    /// consensus module behind its services.
    #[must_use]
    pub fn sorted(&self) -> Self {
        let mut entries: Vec<_> = self.entries().cloned().collect();
        entries.sort_by_key(|entry| {
            let (kind, position, service) = match entry.kind {
                EntryKind::Term => (0, 0, 0),
                EntryKind::StandbySnapshot => (1, entry.log_position, -entry.service_id),
                EntryKind::Snapshot => (2, entry.log_position, -entry.service_id),
            };
            let (term, base) = (entry.leadership_term_id, entry.term_base_log_position);
            (term, base, kind, position, service)
        });
        Self::of(entries)
    }

    /// Returns a log with only the latest snapshot, as one at the start of a log that begins anew; none if there is no snapshot.
    #[must_use]
    pub fn seeded(&self, service_count: usize) -> Option<Self> {
        let (module, services) = self.latest_snapshot(service_count)?;
        let entries = services.into_iter().rev().chain([module]);
        Some(Self::of(entries.map(|entry| RecordingLogEntry {
            term_base_log_position: 0,
            log_position: 0,
            ..entry.clone()
        })))
    }

    fn of(entries: impl IntoIterator<Item = RecordingLogEntry>) -> Self {
        let mut log = Self::default();
        for entry in entries {
            log.append(entry);
        }
        log
    }

    /// Returns the bytes of a file with these entries; what was removed takes no place in it.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        // Each entry was encoded, or read, before.
        let encoded = self.entries().filter_map(RecordingLogEntry::encode);
        encoded.flatten().collect()
    }
}

/// Reads the endpoint of a standby snapshot, and returns it with the length of the entry.
fn endpoint_at(bytes: &[u8], at: usize) -> Result<(&str, usize), RecordingLogError> {
    let invalid = |length| RecordingLogError::InvalidEndpoint { offset: at, length };
    if bytes.len() < at + ENDPOINT {
        return Err(invalid(0));
    }
    let length = i32_at(bytes, at + FIXED);
    let count = usize::try_from(length).map_err(|_| invalid(length))?;
    let is_within = count <= MAX_ENTRY_LENGTH - ENDPOINT && bytes.len() - at - ENDPOINT >= count;
    if !is_within {
        return Err(invalid(length));
    }
    let text = std::str::from_utf8(&bytes[at + ENDPOINT..at + ENDPOINT + count]);
    let text = text.map_err(|_| invalid(length))?;
    Ok((text, (ENDPOINT + count).next_multiple_of(ALIGNMENT)))
}

impl RecordingLogEntry {
    /// Returns the bytes of the entry; none if its endpoint is too long.
    #[must_use]
    pub fn encode(&self) -> Option<Vec<u8>> {
        let endpoint = match self.kind {
            EntryKind::StandbySnapshot => self.archive_endpoint.as_bytes(),
            EntryKind::Term | EntryKind::Snapshot => &[],
        };
        let length = (ENDPOINT + endpoint.len()).next_multiple_of(ALIGNMENT);
        if length > MAX_ENTRY_LENGTH {
            return None;
        }
        let mut bytes = Vec::with_capacity(length);
        for field in [
            self.recording_id,
            self.leadership_term_id,
            self.term_base_log_position,
            self.log_position,
            self.timestamp,
        ] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        let invalid = if self.is_valid { 0 } else { INVALID };
        bytes.extend_from_slice(&self.service_id.to_le_bytes());
        bytes.extend_from_slice(&(self.kind as i32 | invalid).to_le_bytes());
        bytes.extend_from_slice(&(endpoint.len() as u32).to_le_bytes());
        bytes.extend_from_slice(endpoint);
        bytes.resize(length, 0);
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: EntryKind, term: i64, base: i64) -> RecordingLogEntry {
        RecordingLogEntry {
            recording_id: 3,
            leadership_term_id: term,
            term_base_log_position: base,
            log_position: -1,
            timestamp: 1_700_000_000_000,
            service_id: -1,
            kind,
            is_valid: true,
            archive_endpoint: match kind {
                EntryKind::StandbySnapshot => "standby.example:8010".repeat(4),
                _ => String::new(),
            },
        }
    }

    fn file(entries: &[RecordingLogEntry]) -> Vec<u8> {
        let bytes = entries.iter().map(|entry| entry.encode().unwrap());
        bytes.collect::<Vec<_>>().concat()
    }

    #[test]
    fn log_that_is_encoded_and_decoded_is_the_same() {
        let entries = [
            entry(EntryKind::Term, 0, 0),
            entry(EntryKind::StandbySnapshot, 0, 0),
            entry(EntryKind::Snapshot, 0, 0),
            RecordingLogEntry {
                is_valid: false,
                ..entry(EntryKind::Term, 2, 960)
            },
            entry(EntryKind::Term, 2, 1_920),
        ];
        let bytes = file(&entries);
        let log = RecordingLog::decode(&bytes).unwrap();
        assert!(log.entries().eq(&entries));
        assert_eq!(log.end(), bytes.len());
        assert_eq!(log.recording_id(), Some(3));
        let bases: Vec<i64> = log
            .terms()
            .unwrap()
            .entries()
            .iter()
            .map(|it| it.base)
            .collect();
        assert_eq!(bases, [0, 1_920]);
    }

    #[test]
    fn removed_entry_is_left_out() {
        let mut bytes = file(&[entry(EntryKind::Term, 0, 0), entry(EntryKind::Term, 1, 96)]);
        bytes[44..48].copy_from_slice(&(-1_i32).to_le_bytes());
        let log = RecordingLog::decode(&bytes).unwrap();
        assert_eq!(log.terms().unwrap().log_term(), 1);
        assert_eq!(log.entries().count(), 1);
    }

    #[test]
    fn rest_of_an_interrupted_append_is_ignored() {
        let mut bytes = file(&[entry(EntryKind::Term, 0, 0)]);
        bytes.extend_from_slice(&[0xff; 48]);
        let log = RecordingLog::decode(&bytes).unwrap();
        assert_eq!((log.entries().count(), log.end()), (1, 128));
    }

    #[test]
    fn corrupt_entries_are_errors() {
        let good = file(&[entry(EntryKind::Term, 0, 0), entry(EntryKind::Term, 1, 96)]);
        let mut kind = good.clone();
        kind[44..48].copy_from_slice(&9_i32.to_le_bytes());
        assert!(matches!(
            RecordingLog::decode(&kind),
            Err(RecordingLogError::UnknownKind { offset: 0, kind: 9 })
        ));
        let mut recording = good.clone();
        recording[64] = 4;
        assert_eq!(
            RecordingLog::decode(&recording),
            Err(RecordingLogError::TwoRecordings {
                first: 3,
                second: 4
            })
        );
        let twice = file(&[entry(EntryKind::Term, 1, 0), entry(EntryKind::Term, 1, 96)]);
        assert_eq!(
            RecordingLog::decode(&twice),
            Err(RecordingLogError::UnorderedTerms)
        );
        let mut endpoint = file(&[entry(EntryKind::StandbySnapshot, 0, 0)]);
        endpoint[48..52].copy_from_slice(&5_000_i32.to_le_bytes());
        assert!(matches!(
            RecordingLog::decode(&endpoint),
            Err(RecordingLogError::InvalidEndpoint { .. })
        ));
    }

    #[test]
    fn log_with_changed_bytes_is_an_error_or_a_log() {
        let good = file(&[
            entry(EntryKind::Term, 0, 0),
            entry(EntryKind::StandbySnapshot, 0, 0),
            entry(EntryKind::Snapshot, 0, 0),
        ]);
        for at in 0..good.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = good.clone();
                changed[at] = value;
                let _ = RecordingLog::decode(&changed);
                let _ = RecordingLog::decode(&changed[..at]);
            }
        }
    }

    fn apply(file: &mut Vec<u8>, patches: &[Patch]) {
        for Patch { offset, bytes } in patches {
            let end = offset + bytes.len();
            file.resize(file.len().max(end), 0);
            file[*offset..end].copy_from_slice(bytes);
        }
    }

    #[test]
    fn patches_make_the_file_what_the_log_is() {
        let (mut log, mut bytes) = (RecordingLog::default(), Vec::new());
        let mut step = |log: &RecordingLog, patches: &[Patch], terms: &[(i64, i64)]| {
            apply(&mut bytes, patches);
            let read = RecordingLog::decode(&bytes).unwrap();
            assert!(read.entries().eq(log.entries()));
            assert_eq!(read.end(), log.end());
            let found = read.terms().unwrap();
            let found: Vec<_> = found
                .entries()
                .iter()
                .map(|it| (it.term, it.base))
                .collect();
            assert_eq!(found, terms);
        };
        let patches = log.append_term(3, 0, 0, 1);
        step(&log, &patches, &[(0, 0)]);
        let patches = log.append_term(3, 2, 960, 1);
        step(&log, &patches, &[(0, 0), (2, 960)]);
        assert_eq!(log.entries().next().unwrap().log_position, 960);
        assert_eq!(log.append_term(3, 2, 960, 1), []);
        let patches = log.truncate(960, 2);
        step(&log, &patches, &[(0, 0)]);
        assert_eq!(log.entries().next().unwrap().log_position, -1);
        let patches = log.append_term(3, 4, 480, 1);
        step(&log, &patches, &[(0, 0), (4, 480)]);
        let patches = log.append_term(3, 3, 480, 1);
        step(&log, &patches, &[(0, 0), (3, 480)]);
    }

    #[test]
    fn sorted_and_seeded_logs_have_the_entries_of_official_tools() {
        let mut log = RecordingLog::default();
        let snapshot = |term, position, service_id| RecordingLogEntry {
            log_position: position,
            service_id,
            ..entry(EntryKind::Snapshot, term, 0)
        };
        for (term, position, service) in [(2, 192, -1), (2, 192, 0), (1, 96, -1), (1, 96, 0)] {
            log.append_snapshot(snapshot(term, position, service));
        }
        log.append_snapshot(entry(EntryKind::Term, 1, 0));
        let sorted = RecordingLog::decode(&log.sorted().to_bytes()).unwrap();
        let order: Vec<_> = sorted
            .entries()
            .map(|it| (it.leadership_term_id, it.kind, it.service_id))
            .collect();
        let (term, snapshot) = (EntryKind::Term, EntryKind::Snapshot);
        assert_eq!(
            order,
            [
                (1, term, -1),
                (1, snapshot, 0),
                (1, snapshot, -1),
                (2, snapshot, 0),
                (2, snapshot, -1)
            ]
        );
        let seeded = log.seeded(1).unwrap();
        let order: Vec<_> = seeded
            .entries()
            .map(|it| (it.leadership_term_id, it.service_id, it.log_position))
            .collect();
        assert_eq!(order, [(2, 0, 0), (2, -1, 0)]);
        assert_eq!(log.seeded(2), None);
    }

    #[test]
    fn latest_snapshot_is_the_newest_whole_one() {
        let mut log = RecordingLog::default();
        let snapshot = |position, service_id| RecordingLogEntry {
            log_position: position,
            service_id,
            ..entry(EntryKind::Snapshot, 1, 0)
        };
        for (position, service) in [(96, 0), (96, -1), (192, -1), (288, 0)] {
            log.append_snapshot(snapshot(position, service));
        }
        let (module, services) = log.latest_snapshot(1).unwrap();
        assert_eq!((module.log_position, services.len()), (96, 1));
        assert_eq!(log.latest_snapshot(0).unwrap().0.log_position, 192);
        assert_eq!(log.invalidate_latest_snapshot().len(), 1);
        assert_eq!(log.invalidate_latest_snapshot().len(), 2);
        assert_eq!(log.latest_snapshot(0), None);
        assert_eq!(log.invalidate_latest_snapshot(), []);
    }
}
