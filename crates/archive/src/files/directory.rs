// SPDX-License-Identifier: Apache-2.0
//! The directory of an archive.

use std::path::Path;

use taran_storage::{Disk, DiskError, ErrorKind};

/// Creates a directory and its parents where they do not exist, and makes their names durable. The parent of a directory that
/// exists is synced, too, because a process before this one may have ended in between.
///
/// # Errors
///
/// The disk failed. A parent that may not be read is none, if the directory exists.
pub fn create_directory(disk: &dyn Disk, directory: &Path) -> Result<(), DiskError> {
    let parent = match directory.parent() {
        Some(parent) if parent == Path::new("") => Path::new("."),
        Some(parent) => parent,
        // The root.
        None => return Ok(()),
    };
    let exists = match disk.metadata(directory) {
        Ok(_) => true,
        Err(error) if error.is_not_found() => false,
        Err(error) => return Err(error),
    };
    if !exists {
        if disk
            .metadata(parent)
            .is_err_and(|error| error.is_not_found())
        {
            create_directory(disk, parent)?;
        }
        match disk.create_directory(directory) {
            Err(error) if error.kind != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    match disk.sync_directory(parent) {
        Err(error) if exists && error.kind == ErrorKind::PermissionDenied => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use taran_sim::disk::{SimDisk, SimDiskOptions};

    use super::*;

    #[test]
    fn created_directory_survives_a_power_cut_with_its_parents() {
        let disk = SimDisk::new(1, SimDiskOptions::default());
        let path = Path::new("/var/lib/archive");
        create_directory(&disk.process(), path).unwrap();
        disk.power_cut();
        assert!(disk.process().metadata(path).is_ok());
    }

    #[test]
    fn directory_that_was_created_without_a_sync_survives_after_the_next_start() {
        let disk = SimDisk::new(1, SimDiskOptions::default());
        let path = Path::new("/archive");
        disk.process().create_directory(path).unwrap();
        create_directory(&disk.process(), path).unwrap();
        disk.power_cut();
        assert!(disk.process().metadata(path).is_ok());
    }
}
