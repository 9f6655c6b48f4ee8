//! How a tool ends when it cannot do what it was asked.

use std::io;
use std::process::ExitCode;

use crate::attach::{AttachError, Gone};

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
            ExitCode::FAILURE
        }
    }
}
