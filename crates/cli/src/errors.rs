// SPDX-License-Identifier: Apache-2.0
//! `taran errors`: the distinct errors of a driver, oldest first (docs/spec/uri-and-configuration.md §5.6).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use clap::Args;
use serde::Serialize;
use taran_core::memory::Region;

use crate::attach::{self, Attached, Target};
use crate::error_log;
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

/// Prints the errors.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if arguments.previous {
        return previous(arguments);
    }
    if let Some(file) = &arguments.file {
        let log = load(file, arguments.offset)?;
        error_log::show(&error_log::read(&log), arguments.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let attached = Attached::open(&arguments.target)?;
    error_log::show(&error_log::read(&attached.cnc.error_log), arguments.json)?;
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
