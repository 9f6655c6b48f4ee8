// SPDX-License-Identifier: Apache-2.0
//! The time index of a recording: a side file that maps times to positions, which Aeron's archives ignore.
//!
//! `<recording id>.time` has entries of 32 bytes, little-endian, in the order in which they were written:
//!
//! | offset | field |
//! |---|---|
//! | 0 | i64 time in milliseconds since 1970, higher than that of the entry before |
//! | 8 | i64 position: what is before it was recorded at that time |
//! | 16 | i64 recording id |
//! | 24 | u32 0 |
//! | 28 | u32 CRC-32C of the bytes before |
//!
//! An entry is written after its position was acknowledged, so that a crash can lose entries, and never leaves one that
//! promises too much: a replay from a time begins at the last entry *before* that time. An entry that is not valid ends the
//! index. While the wall clock is behind the last entry, no entries are written.

use std::path::{Path, PathBuf};

/// Length of an entry in bytes.
pub(crate) const ENTRY_LENGTH: usize = 32;
/// Offset of the checksum.
const CHECKSUM_AT: usize = 28;

/// An entry of a time index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeEntry {
    /// Milliseconds since 1970.
    pub(crate) time_ms: i64,
    /// Position up to which the recording was acknowledged.
    pub(crate) position: i64,
}

/// Returns the path of the time index of a recording.
pub(crate) fn time_index_path(directory: &Path, recording_id: i64) -> PathBuf {
    directory.join(format!("{recording_id}.time"))
}

impl TimeEntry {
    pub(crate) fn encode(self, recording_id: i64) -> [u8; ENTRY_LENGTH] {
        let mut bytes = [0; ENTRY_LENGTH];
        bytes[..8].copy_from_slice(&self.time_ms.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.position.to_le_bytes());
        bytes[16..24].copy_from_slice(&recording_id.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Returns the entry in some bytes, if it is one of this recording.
    pub(crate) fn decode(bytes: &[u8], recording_id: i64) -> Option<Self> {
        let bytes: &[u8; ENTRY_LENGTH] = bytes.first_chunk()?;
        let word = |at: usize| {
            let word = bytes[at..].first_chunk().copied();
            i64::from_le_bytes(word.unwrap_or_default())
        };
        let checksum = bytes[CHECKSUM_AT..].first_chunk().copied();
        let is_valid = word(16) == recording_id
            && u32::from_le_bytes(checksum?) == crc32c::crc32c(&bytes[..CHECKSUM_AT]);
        is_valid.then(|| Self {
            time_ms: word(0),
            position: word(8),
        })
    }
}

/// Entries that a search counts. They are the first ones of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// Before this time, and at most at this position.
    Before { time_ms: i64, position: i64 },
    /// At most at this position.
    UpTo { position: i64 },
}

impl Bound {
    fn contains(self, entry: TimeEntry) -> bool {
        match self {
            Self::Before { time_ms, position } => {
                entry.time_ms < time_ms && entry.position <= position
            }
            Self::UpTo { position } => entry.position <= position,
        }
    }
}

/// A search in a time index.
///
/// Contract: while [`next`](Self::next) returns the number of an entry, that entry goes to [`on_entry`](Self::on_entry);
/// `None` stands for bytes that are no entry. Then [`found`](Self::found) is the last entry within the bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexSearch {
    bound: Bound,
    /// Entries within the bound.
    low: u64,
    /// Entries that may be within it.
    high: u64,
    found: Option<TimeEntry>,
}

impl IndexSearch {
    /// A search in an index of `count` entries.
    pub(crate) fn new(bound: Bound, count: u64) -> Self {
        Self {
            bound,
            low: 0,
            high: count,
            found: None,
        }
    }

    /// Returns the same search in an index of `count` entries, from its begin.
    pub(crate) fn resized(self, count: u64) -> Self {
        Self::new(self.bound, count)
    }

    pub(crate) fn next(&self) -> Option<u64> {
        (self.low < self.high).then(|| self.low + (self.high - self.low - 1) / 2)
    }

    pub(crate) fn on_entry(&mut self, entry: Option<TimeEntry>) {
        let Some(at) = self.next() else { return };
        match entry {
            Some(entry) if self.bound.contains(entry) => {
                self.low = at + 1;
                self.found = Some(entry);
            }
            _ => self.high = at,
        }
    }

    /// Returns the number of entries within the bound.
    pub(crate) fn count(&self) -> u64 {
        self.low
    }

    pub(crate) fn found(&self) -> Option<TimeEntry> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(time_ms: i64, position: i64) -> TimeEntry {
        TimeEntry { time_ms, position }
    }

    fn search(bound: Bound, entries: &[Option<TimeEntry>]) -> (u64, Option<TimeEntry>) {
        let mut search = IndexSearch::new(bound, entries.len() as u64);
        let mut steps = 0;
        while let Some(at) = search.next() {
            search.on_entry(entries[at as usize]);
            steps += 1;
        }
        assert!(steps <= entries.len().max(1).ilog2() + 1);
        (search.count(), search.found())
    }

    #[test]
    fn entry_is_read_as_written_and_not_if_a_bit_differs() {
        let bytes = entry(1_700_000_000_000, 4_096).encode(7);
        assert_eq!(
            TimeEntry::decode(&bytes, 7),
            Some(entry(1_700_000_000_000, 4_096))
        );
        assert_eq!(TimeEntry::decode(&bytes, 8), None);
        assert_eq!(TimeEntry::decode(&bytes[..31], 7), None);
        assert_eq!(TimeEntry::decode(&[0; 32], 0), None);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(TimeEntry::decode(&damaged, 7), None, "bit {bit}");
        }
    }

    #[test]
    fn search_finds_the_last_entry_before_a_time() {
        let entries: Vec<_> = (0..9).map(|at| Some(entry(at * 10, at * 100))).collect();
        for (time_ms, position, expected) in [
            (0, 900, (0, None)),
            (1, 900, (1, Some(entry(0, 0)))),
            (40, 900, (4, Some(entry(30, 300)))),
            (41, 900, (5, Some(entry(40, 400)))),
            (1_000, 900, (9, Some(entry(80, 800)))),
            (1_000, 350, (4, Some(entry(30, 300)))),
        ] {
            let bound = Bound::Before { time_ms, position };
            assert_eq!(search(bound, &entries), expected, "{bound:?}");
        }
        assert_eq!(
            search(Bound::UpTo { position: 500 }, &entries),
            (6, Some(entry(50, 500)))
        );
        assert_eq!(search(Bound::UpTo { position: 500 }, &[]), (0, None));
    }

    #[test]
    fn search_takes_an_invalid_entry_for_the_end() {
        let mut entries: Vec<_> = (0..9).map(|at| Some(entry(at, at * 100))).collect();
        entries[6..].fill(None);
        let bound = Bound::Before {
            time_ms: 100,
            position: 900,
        };
        assert_eq!(search(bound, &entries), (6, Some(entry(5, 500))));
    }
}
