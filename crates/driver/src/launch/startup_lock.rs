// SPDX-License-Identifier: Apache-2.0
//! Start-up lock: one driver at a time starts in a directory. Of two that start at once, the second finds the first one
//! alive instead of mistaking its incomplete files for those of a dead driver.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use taran_core::memory::{DirectoryLock, Storage};
use taran_protocol::cnc::CNC_FILE_NAME;

use super::directory::{LOG_FOLDERS, failed};
use crate::context::DirectorySettings;
use crate::diagnostics::{DiagnosticSink, DriverWarning};
use crate::error::DriverError;

/// Interval of attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(1);

/// Lock on a directory during start-up, released on drop. If the start fails, a directory created for it is deleted.
#[derive(Debug)]
pub(crate) struct StartupLock {
    storage: Arc<dyn Storage>,
    directory: PathBuf,
    removes_directory: bool,
    _lock: DirectoryLock,
}

impl StartupLock {
    /// Creates the directory if necessary, and waits while another driver is starting in it.
    pub(crate) fn acquire(
        storage: &Arc<dyn Storage>,
        settings: &DirectorySettings,
        diagnostics: &DiagnosticSink,
    ) -> Result<Self, DriverError> {
        let directory = &settings.path;
        let is_new = !storage.exists(directory);
        if settings.warn_if_exists && !is_new {
            diagnostics.warn(&DriverWarning::DirectoryExists {
                directory: directory.clone(),
            });
        }
        let timeout = Duration::from_millis(settings.driver_timeout_ms.unsigned_abs());
        let start = Instant::now();
        let lock = loop {
            storage
                .create_dir_all(directory)
                .map_err(failed("create the directory", directory))?;
            match storage.try_lock(directory) {
                Ok(lock) => break lock,
                // A start that failed has deleted the directory.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The file system does not support locks; continue without one.
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
        // A previous holder of the lock may have created the directory and may own it now.
        let removes_directory = is_new && !storage.exists(&directory.join(CNC_FILE_NAME));
        Ok(Self {
            storage: Arc::clone(storage),
            directory: directory.clone(),
            removes_directory,
            _lock: lock,
        })
    }

    /// Keeps the directory: the start succeeded.
    pub(crate) fn keep_directory(mut self) {
        self.removes_directory = false;
    }
}

impl Drop for StartupLock {
    fn drop(&mut self) {
        if self.removes_directory {
            // Only empty directories are deleted, and the error that made the start fail is the one to report.
            for folder in LOG_FOLDERS {
                let _ = self.storage.remove_dir(&self.directory.join(folder));
            }
            let _ = self.storage.remove_dir(&self.directory);
        }
    }
}
