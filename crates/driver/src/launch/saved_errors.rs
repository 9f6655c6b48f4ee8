// SPDX-License-Identifier: Apache-2.0
//! Errors of a dead driver, saved as text (docs/spec/shared-memory.md §1.4).

use std::ffi::OsStr;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Local};
use taran_core::error_log;
use taran_core::memory::{Region, Storage};

use crate::context::DirectorySettings;

/// End of the names of files with saved errors.
const SUFFIX: &str = "-error.log";

/// Errors of a dead driver that were saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedErrors {
    pub(crate) file: PathBuf,
    /// Number of distinct errors.
    pub(crate) distinct: usize,
}

/// Writes the errors in `log`, if there are any, to the file `<directory>-<time>-error.log`, beside the directory or in
/// `taran.errors.dir`, and deletes the oldest files of that directory beyond `taran.errors.kept`.
pub(crate) fn save(
    storage: &dyn Storage,
    settings: &DirectorySettings,
    log: &Region,
    now_epoch_ms: i64,
) -> Result<Option<SavedErrors>, (PathBuf, io::Error)> {
    let mut text = String::new();
    let distinct = error_log::read(log, 0, |error| {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "***\n{} observations from {} to {} for:\n {}",
            error.count,
            date(error.first_ms),
            date(error.last_ms),
            error.text
        );
    });
    if distinct == 0 {
        return Ok(None);
    }
    let _ = writeln!(text, "\n{distinct} distinct errors observed.");
    let place = Place::of(settings);
    if settings.errors_dir.is_some() {
        storage
            .create_dir_all(&place.parent)
            .map_err(|error| (place.parent.clone(), error))?;
    }
    let file = place.file(now_epoch_ms);
    storage
        .write_file(&file, text.as_bytes())
        .map_err(|error| (file.clone(), error))?;
    place.prune(storage, settings.errors_kept);
    Ok(Some(SavedErrors { file, distinct }))
}

/// Place of the errors of earlier drivers of a directory.
struct Place {
    parent: PathBuf,
    /// Beginning of the names of the files.
    prefix: String,
}

impl Place {
    fn of(settings: &DirectorySettings) -> Self {
        let directory = &settings.path;
        let beside = || directory.parent().unwrap_or(Path::new(".")).to_path_buf();
        let name = directory
            .file_name()
            .map_or_else(|| "aeron".into(), OsStr::to_string_lossy);
        Self {
            parent: settings.errors_dir.clone().unwrap_or_else(beside),
            prefix: format!("{name}-"),
        }
    }

    fn file(&self, epoch_ms: i64) -> PathBuf {
        let time = match DateTime::from_timestamp_millis(epoch_ms) {
            Some(utc) => utc
                .with_timezone(&Local)
                .format("%Y-%m-%d-%H-%M-%S-%3f%z")
                .to_string(),
            None => epoch_ms.to_string(),
        };
        self.parent.join(format!("{}{time}{SUFFIX}", self.prefix))
    }

    /// Deletes the oldest files beyond `kept`. A file that cannot be deleted stays, which prevents no start.
    fn prune(&self, storage: &dyn Storage, kept: usize) {
        let Ok(names) = storage.list(&self.parent) else {
            return;
        };
        let mut saved: Vec<(String, &str)> = names
            .iter()
            .filter_map(|name| name.to_str())
            .filter_map(|name| Some((self.time(name)?, name)))
            .collect();
        saved.sort_unstable();
        let excess = saved.len().saturating_sub(kept);
        for (_, name) in &saved[..excess] {
            let _ = storage.remove(&self.parent.join(name));
        }
    }

    /// Returns the time in the name of a file with saved errors, also of an official driver, in a form that sorts by age.
    fn time(&self, name: &str) -> Option<String> {
        let time = name.strip_prefix(&self.prefix)?.strip_suffix(SUFFIX)?;
        let time = time.replace([' ', '.'], "-");
        let is_date = time.len() >= DATE.len()
            && DATE
                .bytes()
                .zip(time.bytes())
                .all(|(shape, byte)| match shape {
                    b'0' => byte.is_ascii_digit(),
                    shape => byte == shape,
                });
        is_date.then_some(time)
    }
}

/// Shape of the time in the name of a file.
const DATE: &str = "0000-00-00-00-00-00-000";

/// Formats a date as the official tools do: `YYYY-MM-DD HH:MM:SS.mmm+zzzz`.
fn date(epoch_ms: i64) -> String {
    match DateTime::from_timestamp_millis(epoch_ms) {
        Some(utc) => utc
            .with_timezone(&Local)
            .format("%Y-%m-%d %H:%M:%S%.3f%z")
            .to_string(),
        None => epoch_ms.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::DriverContext;
    use taran_core::error_log::ErrorLog;
    use taran_core::memory::MemoryStorage;

    /// Returns a storage with the parent of the driver's directory, the settings, and a log with one error.
    fn fixture(options: &[(&str, &str)]) -> (MemoryStorage, DirectorySettings, Region) {
        let storage = MemoryStorage::new();
        storage.create_dir_all(Path::new("/shm")).unwrap();
        let mut context = DriverContext::new().aeron_dir("/shm/one");
        for (name, value) in options {
            context = context.option(name, value);
        }
        let settings = context.build_settings().unwrap().directory;
        let log = Region::anonymous(4096).unwrap();
        ErrorLog::open(log.clone()).record(1, 0, "one").unwrap();
        (storage, settings, log)
    }

    fn names(storage: &MemoryStorage, directory: &str) -> Vec<String> {
        let names = storage.list(Path::new(directory)).unwrap();
        let mut names: Vec<String> = names
            .into_iter()
            .map(|name| name.into_string().unwrap())
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn save_keeps_the_newest_files_and_no_space_is_in_their_names() {
        let (storage, settings, log) = fixture(&[("taran.errors.kept", "2")]);
        for foreign in [
            "one-more-error.log",
            "other-2026-01-01-00-00-00-000+0000-error.log",
        ] {
            storage
                .write_file(&Path::new("/shm").join(foreign), b"")
                .unwrap();
        }
        // The name that the official C driver gives.
        storage
            .write_file(
                Path::new("/shm/one-1970-01-01 00-00-00.000+0000-error.log"),
                b"",
            )
            .unwrap();
        let files: Vec<String> = [1_000_000_000, 2_000_000_000, 3_000_000_000]
            .into_iter()
            .map(|time| {
                let saved = save(&storage, &settings, &log, time).unwrap().unwrap();
                assert_eq!(saved.distinct, 1);
                saved.file.file_name().unwrap().to_str().unwrap().to_owned()
            })
            .collect();
        assert!(
            files.iter().all(|name| !name.contains([' ', ':'])),
            "{files:?}"
        );
        assert_eq!(
            names(&storage, "/shm"),
            [
                &files[1],
                &files[2],
                "one-more-error.log",
                "other-2026-01-01-00-00-00-000+0000-error.log"
            ]
        );
    }

    #[test]
    fn save_in_configured_directory_creates_it() {
        let (storage, settings, log) = fixture(&[("taran.errors.dir", "/var/errors")]);
        save(&storage, &settings, &log, 1_000_000_000)
            .unwrap()
            .unwrap();
        assert_eq!(names(&storage, "/shm"), [""; 0]);
        assert!(names(&storage, "/var/errors")[0].starts_with("one-1970-"));
    }

    #[test]
    fn save_of_empty_log_writes_nothing() {
        let (storage, settings, _) = fixture(&[]);
        let empty = Region::anonymous(4096).unwrap();
        assert_eq!(save(&storage, &settings, &empty, 1).unwrap(), None);
        assert_eq!(names(&storage, "/shm"), [""; 0]);
    }
}
