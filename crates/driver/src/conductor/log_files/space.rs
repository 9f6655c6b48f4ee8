// SPDX-License-Identifier: Apache-2.0
//! Storage checks before a log file is created.

use std::path::Path;

use taran_core::memory::InsufficientSpace;
use taran_protocol::error_code::ErrorCode;

use super::super::failure::Failure;
use super::super::file_worker::RequestOrigin;
use super::super::{remote_quota, storage_errors};
use super::{LogFiles, LogKey};

impl LogFiles {
    pub(super) fn check_space(
        &self,
        directory: &Path,
        length: u64,
        origin: RequestOrigin,
        now_epoch_ms: i64,
    ) -> Result<(), Failure> {
        let Ok(available) = self.storage.available(directory) else {
            // A file system that does not report its space is accepted; reserving the pages will show.
            return Ok(());
        };
        if available < length {
            return Err(storage_errors::insufficient_storage(
                directory,
                &self.storage.insufficient_space(directory, length),
            ));
        }
        if origin == RequestOrigin::Peer {
            self.check_remote_quota(directory, length, available)
                .map_err(|(reserved, shortage)| {
                    storage_errors::reserved_for_clients(directory, reserved, &shortage)
                })?;
        }
        if available <= self.settings.low_storage_warning {
            self.errors.on_error(
                now_epoch_ms,
                ErrorCode::StorageSpace.code(),
                &ErrorCode::StorageSpace.record(&format!(
                    "WARNING: space is running low: threshold={} usable below {} path={}",
                    self.settings.low_storage_warning,
                    // Rounded to a power of two, since each distinct text takes a record in the error log.
                    available
                        .saturating_add(1)
                        .checked_next_power_of_two()
                        .unwrap_or(u64::MAX),
                    directory.display()
                )),
            );
        }
        Ok(())
    }

    /// Checks that pages of an image log can be reserved without the space that is reserved for clients. Otherwise returns
    /// that space and the shortage.
    pub(super) fn check_extension(
        &self,
        log: LogKey,
        length: u64,
    ) -> Result<(), (u64, InsufficientSpace)> {
        if log.origin() != RequestOrigin::Peer || !self.settings.check_storage {
            return Ok(());
        }
        let directory = self.directory(log);
        match self.storage.available(&directory) {
            Ok(available) => self.check_remote_quota(&directory, length, available),
            Err(_) => Ok(()),
        }
    }

    /// Checks that an image log leaves the space that is reserved for clients: remote peers can request logs. Otherwise
    /// returns that space and the shortage.
    fn check_remote_quota(
        &self,
        directory: &Path,
        length: u64,
        available: u64,
    ) -> Result<(), (u64, InsufficientSpace)> {
        let capacity = self.storage.capacity(directory);
        let reserved = remote_quota::reserved_bytes(capacity, self.settings.low_storage_warning);
        let needed = length.saturating_add(reserved);
        let available = available.saturating_sub(self.pending_bytes);
        if available >= needed {
            return Ok(());
        }
        let shortage = InsufficientSpace {
            requested: needed,
            available,
            capacity,
        };
        Err((reserved, shortage))
    }
}
