// SPDX-License-Identifier: Apache-2.0
//! Mapping of the log files that the driver names.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use taran_protocol::log::LogBuffers;

use crate::client_core::ClientCore;

/// A log that cannot be used, and why.
pub(super) struct UnusableLog {
    pub(super) path: PathBuf,
    pub(super) reason: String,
}

/// A mapped log.
pub(super) struct OpenedLog {
    /// Path of the file as this process sees it.
    pub(super) path: PathBuf,
    pub(super) log: Arc<LogBuffers>,
}

/// Returns the log with a name. It is mapped once for all its users, and unmapped when the last of them is dropped.
pub(super) fn open(client: &ClientCore, name: &str) -> Result<OpenedLog, UnusableLog> {
    let unusable = |path: &Path, reason: String| UnusableLog {
        path: path.to_path_buf(),
        reason,
    };
    let path = locate(client, Path::new(name)).ok_or_else(|| {
        unusable(
            Path::new(name),
            "this is not the name of a log file".to_owned(),
        )
    })?;
    if let Some(log) = client.registry().logs.find(&path) {
        return Ok(OpenedLog { path, log });
    }
    // Not under the lock, because mapping is slow. Only the conductor maps logs, so there is no race.
    let region = client
        .settings
        .storage
        .open(&path)
        .map_err(|error| unusable(&path, error.to_string()))?;
    if client.settings.pre_touch {
        // Best effort: other pages are mapped on first access.
        drop(region.populate());
    }
    let log = LogBuffers::open(&region).map_err(|error| unusable(&path, error.to_string()))?;
    let log = Arc::new(log);
    client.registry().logs.insert(path.clone(), &log);
    Ok(OpenedLog { path, log })
}

/// Returns the path of a log as this process sees it. The driver's path differs if the driver runs in another container
/// or was given a relative directory. Names that cannot belong to a log are rejected, because the driver is not
/// trusted.
fn locate(client: &ClientCore, named: &Path) -> Option<PathBuf> {
    let is_log = named
        .extension()
        .is_some_and(|extension| extension == "logbuffer");
    if !is_log
        || named
            .components()
            .any(|component| component == Component::ParentDir)
    {
        return None;
    }
    let directory = &client.settings.directory;
    if !named.starts_with(directory)
        && let (Some(kind), Some(file)) =
            (named.parent().and_then(Path::file_name), named.file_name())
    {
        let local = directory.join(kind).join(file);
        if client.settings.storage.exists(&local) {
            return Some(local);
        }
    }
    Some(named.to_path_buf())
}
