//! `taran errors`: the distinct errors of a driver, oldest first (docs/spec/uri-and-configuration.md §5.6).

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use clap::Args;
use serde::Serialize;
use taran_core::error_log::{ErrorObservation, read};
use taran_core::memory::Region;

use crate::attach::{self, Attached, Target};
use crate::date;
use crate::failure::Failure;
use crate::input;
use crate::output;
use crate::printable;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
For a driver that has ended, its last error log is shown; the exit status is 1, with a message on standard error.

The next driver of the directory saves these errors to a file beside the directory, or in taran.errors.dir, and tells its
name at its start; --previous shows the newest of these files. It needs no driver.

Exit status: 0 shown, 1 no driver or no such file, 2 incorrect usage.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,

    /// Read the error log in this file instead of a driver's (for example in an archive's mark file)
    #[arg(short = 'f', long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Offset of the error log in FILE, in bytes
    #[arg(
        short = 'o',
        long,
        value_name = "BYTES",
        default_value_t = 0,
        requires = "file"
    )]
    offset: usize,

    /// Show the errors of the last driver that ended before the present one
    #[arg(long, conflicts_with_all = ["file", "timeout"])]
    previous: bool,

    /// Directory of the files with errors of earlier drivers [default: $TARAN_ERRORS_DIR, else beside the driver's]
    #[arg(long, value_name = "DIR", requires = "previous")]
    errors_dir: Option<PathBuf>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Observed {
    observations: i32,
    first_observation_ms: i64,
    last_observation_ms: i64,
    error: String,
}

/// Prints the errors.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if arguments.previous {
        return previous(arguments);
    }
    if let Some(file) = &arguments.file {
        show(&load(file, arguments.offset)?, arguments.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let attached = Attached::open(&arguments.target)?;
    show(&attached.cnc.error_log, arguments.json)?;
    attached.check_alive()?;
    Ok(ExitCode::SUCCESS)
}

/// Errors of an earlier driver, as it was saved.
#[derive(Serialize)]
struct Previous {
    file: String,
    text: String,
    /// Files with errors of still earlier drivers, newest first.
    earlier: Vec<String>,
}

/// Prints the newest file with errors of an earlier driver.
fn previous(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let directory = attach::directory(&arguments.target).map_err(Failure::Attach)?;
    let of_environment = || {
        std::env::var_os("TARAN_ERRORS_DIR")
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let place = arguments
        .errors_dir
        .clone()
        .or_else(of_environment)
        .or_else(|| directory.parent().map(Path::to_path_buf))
        .unwrap_or_default();
    let mut files = saved_files(&place, &directory);
    let Some(newest) = files.pop() else {
        return Err(Failure::Other(format!(
            "no errors of an earlier driver of {} are in {}: none was logged, or they are in the driver's taran.errors.dir, \
             which --errors-dir names",
            directory.display(),
            place.display()
        )));
    };
    let bytes = input::read(&newest).map_err(|source| Failure::File {
        path: newest.clone(),
        source,
    })?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let file = newest.display().to_string();
    if arguments.json {
        let earlier = files.iter().rev().map(|file| file.display().to_string());
        output::json(&Previous {
            file,
            text,
            earlier: earlier.collect(),
        })?;
    } else {
        output::text(&format!("{file}:\n{}", printable::lines(&text)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the files with errors of earlier drivers of a directory, the newest one last.
fn saved_files(place: &Path, directory: &Path) -> Vec<PathBuf> {
    let Some(name) = directory.file_name().and_then(|name| name.to_str()) else {
        return Vec::new();
    };
    let prefix = format!("{name}-");
    let is_saved = |file: &str| {
        file.strip_prefix(&prefix)
            .and_then(|rest| rest.strip_suffix("-error.log"))
            .is_some_and(|time| time.len() >= 20 && time.starts_with(|c: char| c.is_ascii_digit()))
    };
    let mut files: Vec<(SystemTime, PathBuf)> = fs::read_dir(place)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(is_saved))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    files.sort_unstable();
    files.into_iter().map(|(_, path)| path).collect()
}

fn show(log: &Region, json: bool) -> Result<(), Failure> {
    if !json {
        return output::text(&report(log));
    }
    let mut errors = Vec::new();
    read(log, 0, |error| {
        errors.push(Observed {
            observations: error.count,
            first_observation_ms: error.first_ms,
            last_observation_ms: error.last_ms,
            error: error.text.clone(),
        });
    });
    output::json(&errors)
}

fn report(log: &Region) -> String {
    let mut text = String::new();
    let distinct = read(log, 0, |error| observation(&mut text, error));
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\n{distinct} distinct errors observed.");
    text
}

fn observation(text: &mut String, error: &ErrorObservation) {
    let _ = writeln!(
        text,
        "***\n{} observations from {} to {} for:\n{}",
        error.count,
        date::format(error.first_ms),
        date::format(error.last_ms),
        printable::lines(&error.text)
    );
}

/// Copies the file into memory, so that read permission suffices.
fn load(path: &Path, offset: usize) -> Result<Region, Failure> {
    let bytes = input::read(path)
        .map_err(|error| Failure::Other(format!("cannot read {}: {error}", path.display())))?;
    let log = bytes
        .get(offset..)
        .filter(|log| !log.is_empty())
        .ok_or_else(|| {
            Failure::Other(format!(
                "{} has {} bytes; offset {offset} is beyond its end",
                path.display(),
                bytes.len()
            ))
        })?;
    let region = Region::anonymous(log.len()).map_err(|error| Failure::Other(error.to_string()))?;
    region.write(0, log);
    Ok(region)
}

#[cfg(test)]
mod tests {
    use super::*;
    use taran_core::error_log::ErrorLog;

    #[test]
    fn report_lists_and_counts_distinct_errors() {
        let region = Region::anonymous(4096).unwrap();
        let mut log = ErrorLog::open(region.clone());
        let _ = log.record(1_000, 0, "one");
        let _ = log.record(2_000, 0, "two");
        let _ = log.record(3_000, 0, "one");
        let text = report(&region);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 8, "{text}");
        assert_eq!(lines[0], "***");
        assert!(lines[1].starts_with("2 observations from 19"), "{text}");
        assert!(lines[1].ends_with(" for:"), "{text}");
        assert_eq!(lines[2], "one");
        assert!(lines[4].starts_with("1 observations from 19"), "{text}");
        assert_eq!(lines[5..], ["two", "", "2 distinct errors observed."]);
    }

    #[test]
    fn report_of_empty_log_counts_zero_errors() {
        let region = Region::anonymous(4096).unwrap();
        assert_eq!(report(&region), "\n0 distinct errors observed.\n");
    }
}
