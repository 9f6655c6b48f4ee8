// SPDX-License-Identifier: Apache-2.0
//! The Aeron directory: its owner, what a dead driver left in it, and what of it may be deleted
//! (docs/spec/shared-memory.md §1.3, docs/spec/uri-and-configuration.md §5.2).
//!
//! Only files that a driver creates are ever deleted: `cnc.dat`, `driver.lock`, `loss-report.dat` and the two folders of
//! logs. The directory itself is deleted if nothing else is in it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taran_core::memory::{MemoryError, Storage};
use taran_core::ring::many_to_one::Producer;
use taran_protocol::cnc::{
    CNC_FILE_NAME, Cnc, CncError, DRIVER_LOCK_FILE_NAME, driver_lock_contents, driver_lock_path,
};

use super::saved_errors::{self, SavedErrors};
use crate::context::DirectorySettings;
use crate::error::DriverError;

/// Name of the loss report.
pub(crate) const LOSS_REPORT_FILE: &str = "loss-report.dat";
/// Names of the folders of log buffers.
pub(crate) const LOG_FOLDERS: [&str; 2] = ["publications", "images"];

/// Owner of an Aeron directory.
#[derive(Debug)]
pub(crate) enum DirectoryOwner {
    /// There has been no driver.
    None,
    /// `cnc.dat` is not complete: its driver is starting, or died while starting.
    Unfinished,
    /// A live driver.
    Alive { pid: i64, age_ms: i64 },
    /// A driver that has ended, or whose heartbeat is too old.
    Dead(Option<Cnc>),
}

/// Identity of a driver among those that have used its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DriverIdentity {
    pub(crate) pid: i64,
    pub(crate) start_ms: i64,
}

impl DriverIdentity {
    fn of(cnc: &Cnc) -> Self {
        Self {
            pid: cnc.spec().driver_pid,
            start_ms: cnc.spec().start_timestamp_ms,
        }
    }
}

/// Determines the owner of a directory: by the lock of a Taran driver that has ended, else by the age of the heartbeat
/// (docs/spec/shared-memory.md §1.5). No Taran driver must be starting in it.
pub(crate) fn find_owner(
    storage: &dyn Storage,
    settings: &DirectorySettings,
    now_epoch_ms: i64,
) -> Result<DirectoryOwner, DriverError> {
    let directory = &settings.path;
    let lock = storage.find_lock(&driver_lock_path(directory));
    // An official driver deletes the lock file of its predecessor before it creates `cnc.dat`, and no Taran driver is
    // starting: whatever is unfinished beside a lock that is not held is left from a death during startup.
    let unfinished = || match &lock {
        Some(lock) if !lock.is_held() => DirectoryOwner::Dead(None),
        _ => DirectoryOwner::Unfinished,
    };
    let region = match storage.open(&directory.join(CNC_FILE_NAME)) {
        Ok(region) => region,
        Err(MemoryError::NotFound { .. }) => return Ok(DirectoryOwner::None),
        Err(MemoryError::Empty { .. }) => return Ok(unfinished()),
        // The directory cannot exist; its creation reports the error.
        Err(MemoryError::Io { source, .. }) if source.kind() == io::ErrorKind::NotADirectory => {
            return Ok(DirectoryOwner::None);
        }
        Err(MemoryError::Io { path, source, .. }) => return Err(failed("inspect", &path)(source)),
        Err(MemoryError::PermissionDenied { path, .. }) => {
            let source = io::ErrorKind::PermissionDenied.into();
            return Err(failed("inspect", &path)(source));
        }
        Err(error) => return Err(error.into()),
    };
    let cnc = match Cnc::open(&region) {
        Ok(cnc) => cnc,
        Err(error) if error.is_not_ready() => return Ok(unfinished()),
        Err(CncError::Version { found, expected }) => {
            return Err(DriverError::ForeignVersion {
                directory: directory.clone(),
                found,
                expected,
            });
        }
        Err(_) => return Ok(DirectoryOwner::Dead(None)),
    };
    let lock_contents = driver_lock_contents(cnc.spec());
    let has_ended =
        lock.is_some_and(|lock| lock.contents() == lock_contents.as_bytes() && !lock.is_held());
    if has_ended {
        return Ok(DirectoryOwner::Dead(Some(cnc)));
    }
    let Ok(ring) = Producer::open(&cnc.to_driver) else {
        return Ok(DirectoryOwner::Dead(Some(cnc)));
    };
    let age_ms = now_epoch_ms.saturating_sub(ring.consumer_heartbeat_ms());
    if age_ms <= settings.driver_timeout_ms {
        return Ok(DirectoryOwner::Alive {
            pid: cnc.spec().driver_pid,
            age_ms,
        });
    }
    Ok(DirectoryOwner::Dead(Some(cnc)))
}

/// Prepares the directory for a new driver: fails if a live driver owns it, saves the errors of a dead one, which it returns,
/// deletes its files, and creates the folders.
pub(crate) fn prepare(
    storage: &dyn Storage,
    settings: &DirectorySettings,
    now_epoch_ms: i64,
) -> Result<Option<SavedErrors>, DriverError> {
    let directory = &settings.path;
    let mut saved = None;
    if storage.exists(directory) {
        if !settings.delete_on_start {
            saved = take_over(storage, settings, now_epoch_ms)?;
        }
        clear(storage, directory)?;
    }
    for folder in LOG_FOLDERS {
        let path = directory.join(folder);
        storage
            .create_dir_all(&path)
            .map_err(failed("create the directory", &path))?;
    }
    Ok(saved)
}

fn take_over(
    storage: &dyn Storage,
    settings: &DirectorySettings,
    now_epoch_ms: i64,
) -> Result<Option<SavedErrors>, DriverError> {
    match find_owner(storage, settings, now_epoch_ms)? {
        DirectoryOwner::Alive { pid, age_ms } => Err(DriverError::ActiveDriver {
            directory: settings.path.clone(),
            pid,
            age_ms,
            timeout_ms: settings.driver_timeout_ms,
        }),
        DirectoryOwner::Dead(Some(cnc)) => {
            let saved = saved_errors::save(storage, settings, &cnc.error_log, now_epoch_ms);
            saved.map_err(|(path, source)| DriverError::Directory {
                action: "save the errors of a dead driver to",
                path,
                source,
            })
        }
        DirectoryOwner::None | DirectoryOwner::Unfinished | DirectoryOwner::Dead(None) => Ok(None),
    }
}

/// Deletes the files of a driver and nothing else.
fn clear(storage: &dyn Storage, directory: &Path) -> Result<(), DriverError> {
    // `cnc.dat` before the lock file: see `taran_protocol::cnc::with_driver_lock`.
    for file in [CNC_FILE_NAME, DRIVER_LOCK_FILE_NAME, LOSS_REPORT_FILE] {
        let path = directory.join(file);
        ignore_missing(storage.remove(&path)).map_err(failed("delete", &path))?;
    }
    for folder in LOG_FOLDERS {
        let path = directory.join(folder);
        ignore_missing(storage.remove_dir_all(&path)).map_err(failed("delete", &path))?;
    }
    Ok(())
}

/// Deletes the directory when its driver closes. Foreign files are kept, and the directory with them. Deletes nothing if
/// another driver has taken the directory over, or is starting in it.
pub(crate) fn remove(
    storage: &dyn Storage,
    directory: &Path,
    identity: DriverIdentity,
) -> Result<(), DriverError> {
    let _startup_lock = match storage.try_lock(directory) {
        Ok(lock) => Some(lock),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
        // There is no directory, or the file system does not support locks.
        Err(_) => None,
    };
    if let Ok(region) = storage.open(&directory.join(CNC_FILE_NAME))
        && Cnc::open(&region).is_ok_and(|cnc| DriverIdentity::of(&cnc) != identity)
    {
        return Ok(());
    }
    clear(storage, directory)?;
    match storage.remove_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        other => ignore_missing(other).map_err(failed("delete", directory)),
    }
}

/// Deletes the files of a start that fails: an incomplete `cnc.dat` would delay clients and the next driver.
#[derive(Debug)]
pub(crate) struct StartupGuard {
    storage: Arc<dyn Storage>,
    directory: PathBuf,
    is_disarmed: bool,
}

impl StartupGuard {
    pub(crate) fn new(storage: &Arc<dyn Storage>, directory: &Path) -> Self {
        Self {
            storage: Arc::clone(storage),
            directory: directory.to_path_buf(),
            is_disarmed: false,
        }
    }

    /// Keeps the files.
    pub(crate) fn disarm(mut self) {
        self.is_disarmed = true;
    }
}

impl Drop for StartupGuard {
    fn drop(&mut self) {
        if !self.is_disarmed {
            // The error that made the start fail is the one to report.
            let _ = clear(self.storage.as_ref(), &self.directory);
        }
    }
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

pub(super) fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DriverError {
    let path: PathBuf = path.to_owned();
    move |source| DriverError::Directory {
        action,
        path,
        source,
    }
}
