//! How a tool ends when it cannot do what it was asked.

use std::io;
use std::process::ExitCode;

use crate::attach::{AttachError, Gone};

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
