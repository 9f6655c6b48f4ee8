//! Errors of a dead driver, saved as text beside its directory (docs/spec/shared-memory.md §1.4).

use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Local};
use taran_core::error_log;
use taran_core::memory::{Region, Storage};

/// Writes the errors in `log`, if there are any, to `<directory>-<time>-error.log`.
pub(crate) fn save(
    storage: &dyn Storage,
    directory: &Path,
    log: &Region,
    now_epoch_ms: i64,
) -> Result<(), (PathBuf, io::Error)> {
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
        return Ok(());
    }
    let _ = writeln!(text, "\n{distinct} distinct errors observed.");
    let path = PathBuf::from(format!(
        "{}-{}-error.log",
        directory.display(),
        date(now_epoch_ms).replace(':', "-")
    ));
    storage
        .write_file(&path, text.as_bytes())
        .map_err(|error| (path, error))
}

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
