//! One driver starts in a directory at a time: of two that start at once, the second finds the first one alive, instead of
//! taking its unfinished files for those of a dead one.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use taran_core::memory::{DirectoryLock, Storage};
use taran_protocol::cnc::CNC_FILE_NAME;

use super::directory::{LOG_FOLDERS, failed};
use crate::context::DirectorySettings;
use crate::error::DriverError;

/// Between two tries.
const RETRY_INTERVAL: Duration = Duration::from_millis(1);

/// The right to start in a directory, until it is dropped. A directory made for a start that fails goes again.
#[derive(Debug)]
pub(crate) struct StartupLock {
    storage: Arc<dyn Storage>,
    directory: PathBuf,
    removes_directory: bool,
    _lock: DirectoryLock,
}

impl StartupLock {
    /// Makes the directory where there is none, and waits for drivers that are just starting in it.
    pub(crate) fn acquire(
        storage: &Arc<dyn Storage>,
        settings: &DirectorySettings,
    ) -> Result<Self, DriverError> {
        let directory = &settings.path;
        let is_new = !storage.exists(directory);
        if settings.warn_if_exists && !is_new {
            eprintln!("WARNING: {} exists", directory.display());
        }
        let timeout = Duration::from_millis(settings.driver_timeout_ms.unsigned_abs());
        let start = Instant::now();
        let lock = loop {
            storage
                .create_dir_all(directory)
                .map_err(failed("create the directory", directory))?;
            match storage.try_lock(directory) {
                Ok(lock) => break lock,
                // Gone again, by a start that failed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // A file system without locks: as good as it gets.
                Err(_) => break DirectoryLock::default(),
            }
            if start.elapsed() > timeout {
                return Err(DriverError::Starting {
                    directory: directory.clone(),
                    waited_ms: settings.driver_timeout_ms,
                });
            }
            thread::sleep(RETRY_INTERVAL);
        };
        // Whoever had the turn before may have made the directory, and may live in it now.
        let removes_directory = is_new && !storage.exists(&directory.join(CNC_FILE_NAME));
        Ok(Self {
            storage: Arc::clone(storage),
            directory: directory.clone(),
            removes_directory,
            _lock: lock,
        })
    }

    /// The driver runs: others may see that for themselves.
    pub(crate) fn keep_directory(mut self) {
        self.removes_directory = false;
    }
}

impl Drop for StartupLock {
    fn drop(&mut self) {
        if self.removes_directory {
            // Only what is empty goes, and why the start failed is what is told.
            for folder in LOG_FOLDERS {
                let _ = self.storage.remove_dir(&self.directory.join(folder));
            }
            let _ = self.storage.remove_dir(&self.directory);
        }
    }
}
