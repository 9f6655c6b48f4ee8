// SPDX-License-Identifier: Apache-2.0
//! Storage whose files and directories get a mode and a group (`taran.dir.mode`, `taran.dir.group`): by default they have the
//! modes that official clients expect, and every user of the host can read all messages.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use taran_core::memory::{
    CreateOptions, DirectoryLock, FileStorage, InsufficientSpace, LockFile, LockProbe, MemoryError,
    Region, Storage, StoredFile,
};
use taran_protocol::option::{OptionId, OptionSet};

use crate::context::Conflict;
use crate::error::DriverError;

/// File with the groups of the host.
const GROUPS: &str = "/etc/group";

/// Mode and group of the driver's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    mode: Option<u32>,
    group: Option<u32>,
}

impl Access {
    /// Reads the options. Returns none if neither is set.
    pub(super) fn of(options: &OptionSet) -> Result<Option<Self>, DriverError> {
        let refused = |option: OptionId, needed: &str| {
            DriverError::Conflicts(vec![Conflict {
                option,
                value: options.text(option),
                needed: needed.to_owned(),
            }])
        };
        let mode = match options.dir_mode() {
            None | Some("") => None,
            Some(text) => {
                let mode = u32::from_str_radix(text, 8).ok();
                // The driver itself has to read, write and search.
                let mode = mode.filter(|mode| *mode <= 0o777 && mode & 0o700 == 0o700);
                Some(mode.ok_or_else(|| {
                    let needed = "must be an octal mode of 0700 to 0777, such as 0750";
                    refused(OptionId::DirMode, needed)
                })?)
            }
        };
        let group = match options.dir_group() {
            None | Some("") => None,
            Some(text) => {
                let groups = fs::read_to_string(GROUPS).unwrap_or_default();
                let id = text.parse().ok().or_else(|| group_id(&groups, text));
                Some(id.ok_or_else(|| {
                    refused(OptionId::DirGroup, "must be the name or number of a group")
                })?)
            }
        };
        Ok((mode.is_some() || group.is_some()).then_some(Self { mode, group }))
    }

    fn apply(&self, path: &Path, mode: Option<u32>) -> io::Result<()> {
        // The group first: a mode must not open the file for another one.
        if self.group.is_some() {
            chown(path, None, self.group)?;
        }
        match mode {
            Some(mode) => fs::set_permissions(path, Permissions::from_mode(mode)),
            None => Ok(()),
        }
    }

    fn apply_to_directory(&self, path: &Path) -> io::Result<()> {
        self.apply(path, self.mode)
    }

    fn apply_to_file(&self, path: &Path) -> io::Result<()> {
        self.apply(path, self.mode.map(|mode| mode & 0o666))
    }
}

/// Returns the mode of a directory that all users of the host can search: they can read all messages, encrypted on the wire or
/// not.
pub(super) fn open_to_all(directory: &Path) -> Option<u32> {
    let mode = fs::metadata(directory).ok()?.permissions().mode() & 0o777;
    (mode & 0o001 != 0).then_some(mode)
}

/// Returns the number of a group by its name.
fn group_id(groups: &str, name: &str) -> Option<u32> {
    let mut fields = groups.lines().map(|line| line.split(':'));
    fields.find_map(|mut fields| {
        let is_named = fields.next() == Some(name);
        fields.nth(1).filter(|_| is_named)?.parse().ok()
    })
}

/// File storage that sets mode and group of what it creates.
#[derive(Debug)]
pub(super) struct AccessStorage {
    access: Access,
}

impl AccessStorage {
    pub(super) const fn new(access: Access) -> Self {
        Self { access }
    }

    /// Sets the access of a new file; removes the file if that fails.
    fn guard<T, E>(
        &self,
        path: &Path,
        created: T,
        error: impl FnOnce(io::Error) -> E,
    ) -> Result<T, E> {
        self.access.apply_to_file(path).map_err(|source| {
            // The first error is reported.
            let _ = fs::remove_file(path);
            error(source)
        })?;
        Ok(created)
    }
}

impl Storage for AccessStorage {
    fn create(&self, path: &Path, len: u64, options: CreateOptions) -> Result<Region, MemoryError> {
        let region = FileStorage.create(path, len, options)?;
        self.guard(path, region, |source| MemoryError::Io {
            operation: "set mode and group of",
            path: path.to_path_buf(),
            source,
        })
    }

    fn reserve(
        &self,
        path: &Path,
        region: &Region,
        offset: u64,
        len: u64,
    ) -> Result<(), MemoryError> {
        FileStorage.reserve(path, region, offset, len)
    }

    fn open(&self, path: &Path) -> Result<Region, MemoryError> {
        FileStorage.open(path)
    }

    fn open_file(&self, path: &Path) -> io::Result<StoredFile> {
        FileStorage.open_file(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        FileStorage.remove(path)
    }

    fn available(&self, directory: &Path) -> io::Result<u64> {
        FileStorage.available(directory)
    }

    fn capacity(&self, directory: &Path) -> Option<u64> {
        FileStorage.capacity(directory)
    }

    fn insufficient_space(&self, directory: &Path, requested: u64) -> InsufficientSpace {
        FileStorage.insufficient_space(directory, requested)
    }

    fn exists(&self, path: &Path) -> bool {
        FileStorage.exists(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        FileStorage.create_dir_all(path)?;
        self.access.apply_to_directory(path)
    }

    fn try_lock(&self, directory: &Path) -> io::Result<DirectoryLock> {
        FileStorage.try_lock(directory)
    }

    fn create_locked(&self, path: &Path, contents: &[u8]) -> io::Result<LockFile> {
        let lock = FileStorage.create_locked(path, contents)?;
        if !path.exists() {
            // A file system without locks.
            return Ok(lock);
        }
        self.guard(path, lock, |source| source)
    }

    fn find_lock(&self, path: &Path) -> Option<LockProbe> {
        FileStorage.find_lock(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        FileStorage.remove_dir(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        FileStorage.remove_dir_all(path)
    }

    fn write_file(&self, path: &Path, contents: &[u8]) -> io::Result<()> {
        FileStorage.write_file(path, contents)?;
        self.access.apply_to_file(path)
    }
}

#[cfg(test)]
mod tests {
    use taran_protocol::option::Source;

    use super::*;

    fn access(values: &[(OptionId, &str)]) -> Result<Option<Access>, String> {
        let mut options = OptionSet::driver();
        for (option, value) in values {
            options.set(*option, value, &Source::Code).unwrap();
        }
        Access::of(&options).map_err(|error| error.to_string())
    }

    #[test]
    fn access_is_read_from_the_options() {
        assert_eq!(access(&[]), Ok(None));
        let read = access(&[(OptionId::DirMode, "0750"), (OptionId::DirGroup, "7")]);
        let expected = Access {
            mode: Some(0o750),
            group: Some(7),
        };
        assert_eq!(read, Ok(Some(expected)));
        for value in ["0050", "1777", "0o700", "rwx"] {
            let error = access(&[(OptionId::DirMode, value)]).unwrap_err();
            assert!(error.contains("taran.dir.mode"), "{error}");
        }
        let error = access(&[(OptionId::DirGroup, "no such group")]).unwrap_err();
        assert!(error.contains("taran.dir.group"), "{error}");
        assert_eq!(group_id("a:x:1:\nb:x:22:c,d\n", "b"), Some(22));
        assert_eq!(group_id("a:x:1:\nb:x:22:c,d\n", "c"), None);
    }

    #[test]
    fn created_files_and_directories_have_the_mode() {
        let directory = std::env::temp_dir().join(format!("taran-access-{}", std::process::id()));
        let storage = AccessStorage::new(Access {
            mode: Some(0o750),
            group: None,
        });
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        storage.create_dir_all(&directory).unwrap();
        let file = directory.join("log");
        storage
            .create(&file, 4_096, CreateOptions::default())
            .unwrap();
        let report = directory.join("report");
        storage.write_file(&report, b"text").unwrap();
        let found = [mode(&directory), mode(&file), mode(&report)];
        storage.remove_dir_all(&directory).unwrap();
        assert_eq!(found, [0o750, 0o640, 0o640]);
    }
}
