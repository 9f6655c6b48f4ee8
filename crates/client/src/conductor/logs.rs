//! Mapping the logs that the driver names.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use taran_protocol::log::LogBuffers;

use crate::link::Link;

/// Why a log can not be used.
pub(super) struct Unusable {
    pub(super) path: PathBuf,
    pub(super) reason: String,
}

/// A log that can be used.
pub(super) struct Opened {
    /// Where its file is for this process.
    pub(super) path: PathBuf,
    pub(super) log: Arc<LogBuffers>,
}

/// The log of that name, mapped once for all who use it, and unmapped when the last of them is gone.
pub(super) fn open(link: &Link, name: &str) -> Result<Opened, Unusable> {
    let unusable = |path: &Path, reason: String| Unusable {
        path: path.to_path_buf(),
        reason,
    };
    let path = locate(link, Path::new(name))
        .ok_or_else(|| unusable(Path::new(name), "this is not the name of a log".to_owned()))?;
    if let Some(log) = link.registry().logs.find(&path) {
        return Ok(Opened { path, log });
    }
    // Not under the lock: mapping takes its time. Only the conductor maps logs, so nobody is faster.
    let region = link
        .settings
        .storage
        .open(&path)
        .map_err(|error| unusable(&path, error.to_string()))?;
    if link.settings.pre_touch {
        // Best effort: pages that are not mapped now will be when they are touched.
        drop(region.populate());
    }
    let log = LogBuffers::open(&region).map_err(|error| unusable(&path, error.to_string()))?;
    let log = Arc::new(log);
    link.registry().logs.insert(path.clone(), &log);
    Ok(Opened { path, log })
}

/// Where a log is for this process. The driver names it as the driver sees it, which is somewhere else when it runs in
/// another container or was given a relative directory; and what it says is not trusted to be a log at all.
fn locate(link: &Link, named: &Path) -> Option<PathBuf> {
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
    let directory = &link.settings.directory;
    if !named.starts_with(directory)
        && let (Some(kind), Some(file)) =
            (named.parent().and_then(Path::file_name), named.file_name())
    {
        let here = directory.join(kind).join(file);
        if link.settings.storage.exists(&here) {
            return Some(here);
        }
    }
    Some(named.to_path_buf())
}
