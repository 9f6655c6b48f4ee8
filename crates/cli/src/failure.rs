//! How a tool ends when it cannot do what it was asked.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::attach::{AttachError, Gone};
use crate::log::LogFailure;

/// Exit status of wrong usage.
pub(crate) const USAGE: u8 = 2;
/// Exit status after a signal, as shells have it for SIGINT.
const INTERRUPTED: u8 = 130;

/// Why a tool ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// No driver to look at.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The driver is gone, and what it left was shown.
    #[error(transparent)]
    Gone(#[from] Gone),
    /// Whoever reads the output has gone, or its disk is full.
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
    /// Arguments that do not go together.
    #[error("{0}")]
    Usage(String),
    /// A file that cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// A driver that was asked to end and goes on.
    #[error(
        "the driver at {} (pid {pid}) was asked to end, and is alive after {waited:?}: it ends on request only where \
         aeron.driver.termination.validator=allow; send it SIGTERM instead", directory.display()
    )]
    NotEnded {
        directory: PathBuf,
        pid: i64,
        waited: Duration,
    },
    /// No place to serve from.
    #[error(
        "cannot listen on {address}: {source}; --listen needs an address of this machine and a free port, such as \
         127.0.0.1:9464"
    )]
    Listen { address: String, source: io::Error },
    /// A log that cannot be shown.
    #[error(transparent)]
    Log(#[from] LogFailure),
    /// A schema that cannot be used, with all that is wrong with it.
    #[error("the schema cannot be used:\n{}", crate::printable::lines(&.0.to_string()))]
    Schema(#[from] taran_sbe::Rejected),
    /// A signal ended it.
    #[error("interrupted")]
    Interrupted,
    /// Anything else, as a text that says what to do.
    #[error("{0}")]
    Other(String),
}

/// The exit code of a tool; what went wrong is told on standard error.
pub(crate) fn exit_code(result: Result<ExitCode, Failure>) -> ExitCode {
    match result {
        Ok(code) => code,
        // `taran stat | head` has got what it wanted.
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
