// SPDX-License-Identifier: Apache-2.0
//! Entries of the catalog file (`docs/spec/archive.md` §3.2).

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use super::super::checksum::Checksum;
use super::super::descriptor::{Descriptor, NULL_VALUE};

/// Length in bytes of the header of an entry.
pub(super) const ENTRY_HEADER: usize = 32;
/// Length in bytes of the fields and the lengths of the three texts: no entry is shorter.
const BODY_MIN: usize = 80 + 12;

/// Offsets in an entry.
pub(super) mod at {
    pub(in super::super) const STATE: u64 = 4;
    pub(in super::super) const CHECKSUM: u64 = 8;
    /// Of the length of the first text, behind the fixed fields.
    pub(in super::super) const TEXTS: u64 = 112;
}

/// State of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryState {
    /// Marked as unusable by a tool; kept until the catalog is compacted.
    Invalid,
    /// A recording that can be used.
    Valid,
    /// A purged recording, whose space is free.
    Deleted,
}

impl EntryState {
    pub(super) fn from_raw(raw: i32) -> Option<Self> {
        match raw {
            0 => Some(Self::Invalid),
            1 => Some(Self::Valid),
            2 => Some(Self::Deleted),
            _ => None,
        }
    }

    pub(super) fn raw(self) -> i32 {
        match self {
            Self::Invalid => 0,
            Self::Valid => 1,
            Self::Deleted => 2,
        }
    }
}

impl fmt::Display for EntryState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalid => "INVALID",
            Self::Valid => "VALID",
            Self::Deleted => "DELETED",
        })
    }
}

/// An entry of the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub(super) offset: u64,
    /// With the header and the padding.
    pub(super) length: u64,
    pub(super) state: EntryState,
    pub(super) checksum: i32,
    pub(super) descriptor: Descriptor,
}

impl Entry {
    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> EntryState {
        self.state
    }

    /// Returns the fields.
    #[must_use]
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Returns the stored checksum; 0 if the archive that wrote it makes none.
    #[must_use]
    pub fn checksum(&self) -> i32 {
        self.checksum
    }

    /// Returns the offset in the file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the length in the file in bytes, with header and padding.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Computes the checksum of the entry as it is in memory.
    #[must_use]
    pub fn compute_checksum(&self, checksum: Checksum) -> i32 {
        checksum.compute(&self.encode()[ENTRY_HEADER..])
    }

    /// Returns true if the stored checksum is right, or is that of the recording while it was active: Aeron does not renew
    /// it when it finds the stop position after a crash.
    #[must_use]
    pub fn has_plausible_checksum(&self, checksum: Checksum) -> bool {
        if self.compute_checksum(checksum) == self.checksum {
            return true;
        }
        let mut active = self.clone();
        active.descriptor.stop_position = NULL_VALUE;
        active.descriptor.stop_timestamp = NULL_VALUE;
        active.compute_checksum(checksum) == self.checksum
    }

    /// Returns the length of an entry with this descriptor.
    pub(super) fn length_of(descriptor: &Descriptor, alignment: u64) -> u64 {
        let length = (ENTRY_HEADER + descriptor.encoded_length()) as u64;
        length.next_multiple_of(alignment)
    }

    /// Returns the bytes of the entry.
    pub(super) fn encode(&self) -> Vec<u8> {
        // Lengths in a catalog are below 2^31.
        let mut bytes = vec![0; self.length as usize];
        let length = (self.length as usize - ENTRY_HEADER) as i32;
        bytes[0..4].copy_from_slice(&length.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.state.raw().to_le_bytes());
        bytes[8..12].copy_from_slice(&self.checksum.to_le_bytes());
        self.descriptor.encode(&mut bytes[ENTRY_HEADER..]);
        bytes
    }
}

/// A reason why bytes are no entry.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MalformedEntry {
    /// The length is no multiple of the alignment, or too small.
    #[error("its length {0} is not that of any entry")]
    Length(i32),
    /// The entry ends beyond the end of the file.
    #[error("it ends at byte {end}, beyond the end of the file at {len}")]
    BeyondEnd {
        /// End of the entry.
        end: u64,
        /// Length of the file.
        len: u64,
    },
    /// The texts do not fill the entry.
    #[error("its texts end at byte {texts} of {length}")]
    Texts {
        /// End of the texts in the entry.
        texts: usize,
        /// Length of the entry.
        length: usize,
    },
    /// A text ends beyond the entry.
    #[error("{0}")]
    Decode(String),
    /// The state is unknown.
    #[error("its state {0} is unknown")]
    State(i32),
    /// Ids ascend in a catalog.
    #[error("its recording id {id} does not follow {previous}")]
    Order {
        /// The recording id.
        id: i64,
        /// The id of the entry before.
        previous: i64,
    },
    /// The id is not below those of the entries behind.
    #[error("its recording id {id} is not below {next}, which follows")]
    IdTooHigh {
        /// The recording id.
        id: i64,
        /// The id of the entry behind.
        next: i64,
    },
}

taran_core::debug_is_display!(MalformedEntry);

/// Returns the length of the entry that starts with `head`; `None` if there is none.
pub(super) fn entry_length(
    head: &[u8],
    offset: u64,
    alignment: u64,
    len: u64,
) -> Result<Option<u64>, MalformedEntry> {
    let Some(Ok(raw)) = head.get(0..4).map(<[u8; 4]>::try_from) else {
        return Ok(None);
    };
    let raw = i32::from_le_bytes(raw);
    let Ok(body @ 1..) = u64::try_from(raw) else {
        return match raw {
            0 => Ok(None),
            // Also the end for Aeron; no writer makes it.
            _ => Err(MalformedEntry::Length(raw)),
        };
    };
    let length = ENTRY_HEADER as u64 + body;
    if body < BODY_MIN as u64 || !length.is_multiple_of(alignment) {
        return Err(MalformedEntry::Length(raw));
    }
    let end = offset + length;
    if end > len {
        return Err(MalformedEntry::BeyondEnd { end, len });
    }
    Ok(Some(length))
}

/// Decodes an entry from all of its bytes.
pub(super) fn decode(
    bytes: &[u8],
    offset: u64,
    previous: Option<i64>,
    shared: impl FnMut(&str) -> Arc<str>,
) -> Result<Entry, MalformedEntry> {
    let (header, body) = bytes.split_at(ENTRY_HEADER);
    let word = |at: usize| {
        i32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let (descriptor, read) = Descriptor::decode(body, shared)
        .map_err(|error| MalformedEntry::Decode(error.to_string()))?;
    // An entry whose texts became shorter keeps its length, so any number of zeros can follow.
    if let Some(at) = body[read..].iter().rposition(|byte| *byte != 0) {
        return Err(MalformedEntry::Texts {
            texts: ENTRY_HEADER + read,
            length: ENTRY_HEADER + read + at + 1,
        });
    }
    let raw = word(4);
    let state = EntryState::from_raw(raw).ok_or(MalformedEntry::State(raw))?;
    let id = descriptor.recording_id;
    let floor = previous.unwrap_or(NULL_VALUE);
    if id <= floor {
        return Err(MalformedEntry::Order {
            id,
            previous: floor,
        });
    }
    Ok(Entry {
        offset,
        length: bytes.len() as u64,
        state,
        checksum: word(8),
        descriptor,
    })
}
