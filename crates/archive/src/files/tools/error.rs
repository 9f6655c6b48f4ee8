// SPDX-License-Identifier: Apache-2.0
//! Errors of the tools.

use std::path::PathBuf;

use taran_storage::DiskError;
use thiserror::Error;

use super::super::catalog::{CatalogError, UpdateError};
use super::super::mark::{LIVENESS_TIMEOUT_MS, MarkFileError};
use super::InvalidStart;

/// A tool did not do its work.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ToolError {
    /// An archive of ours runs in the directory.
    #[error("a running archive uses the directory {}: stop it first", directory.display())]
    Locked {
        /// The directory.
        directory: PathBuf,
    },
    /// An official archive runs in the directory, or ended less than 10 s ago without cleaning up.
    #[error(
        "{} shows an active archive: pid={pid}, last heartbeat {age_ms} ms ago (limit {LIVENESS_TIMEOUT_MS}); stop it \
         first, or wait until the limit has passed", path.display()
    )]
    Active {
        /// The mark file.
        path: PathBuf,
        /// The process id in it.
        pid: i64,
        /// Age of the heartbeat in milliseconds; negative if it is in the future.
        age_ms: i64,
    },
    /// The mark file cannot be read.
    #[error(transparent)]
    Mark(#[from] MarkFileError),
    /// The catalog cannot be opened or changed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// There is no such recording, or it cannot be changed so.
    #[error(transparent)]
    Update(#[from] UpdateError),
    /// The recording cannot start at the position.
    #[error(transparent)]
    Start(#[from] InvalidStart),
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The entry contradicts itself, so its files cannot be found.
    #[error("recording {recording_id} cannot be used: {reason}")]
    Unusable {
        /// The recording.
        recording_id: i64,
        /// The reason.
        reason: String,
    },
}

taran_core::debug_is_display!(ToolError);
