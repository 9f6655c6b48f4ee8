// SPDX-License-Identifier: Apache-2.0
//! Sync levels (`docs/spec/archive.md` §3.5).

use taran_storage::SyncKind;
use thiserror::Error;

/// The durability of changes and recorded positions when they are acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SyncLevel {
    /// Nothing: a power cut can take back what was acknowledged. The end of the process cannot.
    #[default]
    None,
    /// Contents and lengths.
    Data,
    /// Also times and modes of files.
    All,
}

impl SyncLevel {
    /// Returns the kind of sync, if any.
    #[must_use]
    pub fn kind(self) -> Option<SyncKind> {
        match self {
            Self::None => None,
            Self::Data => Some(SyncKind::Data),
            Self::All => Some(SyncKind::All),
        }
    }
}

/// The number is no sync level.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[error("the sync level {0} is not 0 (none), 1 (data) or 2 (data and metadata)")]
pub struct InvalidSyncLevel(pub i32);

taran_core::debug_is_display!(InvalidSyncLevel);

impl TryFrom<i32> for SyncLevel {
    type Error = InvalidSyncLevel;

    fn try_from(level: i32) -> Result<Self, InvalidSyncLevel> {
        match level {
            0 => Ok(Self::None),
            1 => Ok(Self::Data),
            2 => Ok(Self::All),
            other => Err(InvalidSyncLevel(other)),
        }
    }
}
