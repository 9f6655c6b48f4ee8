// SPDX-License-Identifier: Apache-2.0
//! Errors of the catalog.

use std::path::PathBuf;

use taran_storage::{DiskError, Operation};
use thiserror::Error;

use super::super::descriptor::InvalidDescriptor;
use super::parse::ParseError;

/// A recording was not added.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AddError {
    /// The values are impossible.
    #[error("the recording cannot be added: {0}")]
    Invalid(#[from] InvalidDescriptor),
    /// The catalog would become longer than its format allows.
    #[error(
        "the catalog is full: needed={needed} limit={limit} bytes; purge recordings, and compact the catalog (taran recordings \
         compact)"
    )]
    Full {
        /// Needed length of the file in bytes.
        needed: u64,
        /// Highest length in bytes.
        limit: u64,
    },
    /// There is no further id.
    #[error("the recording cannot be added: all recording ids are used")]
    IdsExhausted,
}

taran_core::debug_is_display!(AddError);

/// A recording was not changed.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// There is no such recording.
    #[error(
        "unknown recording {recording_id}: it does not exist, was purged, or is marked as invalid"
    )]
    Unknown {
        /// The id.
        recording_id: i64,
    },
    /// The recording was purged.
    #[error("recording {recording_id} was purged and cannot be restored")]
    Deleted {
        /// The id.
        recording_id: i64,
    },
    /// The new values are impossible.
    #[error("the recording cannot be changed: {0}")]
    Invalid(#[from] InvalidDescriptor),
    /// The catalog would become longer than its format allows.
    #[error("the recording cannot be changed: {0}")]
    Full(#[from] AddError),
}

taran_core::debug_is_display!(UpdateError);

/// The catalog file was not opened or not changed. Nothing was removed from it.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// There is no catalog.
    #[error("there is no archive in {}: it has no file archive.catalog", directory.display())]
    Missing {
        /// The directory.
        directory: PathBuf,
    },
    /// The file is longer than its format allows.
    #[error(
        "{} has {len} bytes, and a catalog has at most {limit}: it is no catalog, or was damaged; restore it from a backup",
        path.display()
    )]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its length in bytes.
        len: u64,
        /// Highest length in bytes.
        limit: u64,
    },
    /// The contents are no catalog, or damaged.
    #[error("cannot use {}: {reason}", path.display())]
    Contents {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: ParseError,
    },
    /// An earlier change failed: memory is ahead of the file.
    #[error(
        "the catalog {} takes no changes after a failure ({first}); remove the cause and restart the archive", path.display()
    )]
    FailedBefore {
        /// The file.
        path: PathBuf,
        /// The first failure.
        first: Box<DiskError>,
    },
}

taran_core::debug_is_display!(CatalogError);

impl CatalogError {
    /// Returns true if there was no space for a change: it can be applied again when there is.
    #[must_use]
    pub fn is_full(&self) -> bool {
        // After a failed sync, what was written before may be lost.
        matches!(self, Self::Disk(error) if error.is_full() && error.operation != Operation::Sync)
    }
}
