// SPDX-License-Identifier: Apache-2.0
//! Errors and exit codes of the tools.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::attach::{AttachError, DriverGone};
use crate::log::LogFailure;

/// Exit status for incorrect usage.
pub(crate) const USAGE: u8 = 2;
/// Exit status after a signal: that of shells for SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// Reason why a tool failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// There is no driver to inspect.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The driver has ended; its last values were shown.
    #[error(transparent)]
    DriverGone(#[from] DriverGone),
    /// Standard output is closed, or its disk is full.
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
    /// Arguments that conflict or are out of range.
    #[error("{0}")]
    Usage(String),
    /// A file that cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// A driver that has not ended after a termination request.
    #[error(
        "the driver at {} (pid {pid}) is still running {waited:?} after the termination request: it accepts requests \
        only if aeron.driver.termination.validator=allow; send it SIGTERM instead", directory.display()
    )]
    NotTerminated {
        directory: PathBuf,
        pid: i64,
        waited: Duration,
    },
    /// The metrics server cannot listen.
    #[error(
        "cannot listen on {address}: {source}; --listen requires an address of this machine and a free port, such as \
        127.0.0.1:9464"
    )]
    Listen { address: String, source: io::Error },
    /// A log buffer that cannot be shown.
    #[error(transparent)]
    Log(#[from] LogFailure),
    /// A file of a key directory that cannot be used.
    #[cfg(feature = "secure")]
    #[error(transparent)]
    KeyFile(#[from] taran_driver::KeyFileError),
    /// A schema that cannot be used, with all its errors.
    #[error("the schema cannot be used:\n{}", crate::printable::lines(&.0.to_string()))]
    Schema(#[from] taran_sbe::Rejected),
    /// The tool was ended by a signal.
    #[error("interrupted")]
    Interrupted,
    /// Any other error; the text says what to do.
    #[error("{0}")]
    Other(String),
}

/// Returns the exit code of a tool and prints its error on standard error.
pub(crate) fn exit_code(result: Result<ExitCode, Failure>) -> ExitCode {
    match result {
        Ok(code) => code,
        // A closed pipe, for example `taran stat | head`, is not an error.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("taran: {failure}");
            ExitCode::from(match failure {
                Failure::Usage(_) => USAGE,
                Failure::Interrupted => INTERRUPTED,
                _ => 1,
            })
        }
    }
}
