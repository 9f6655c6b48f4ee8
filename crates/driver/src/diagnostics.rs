// SPDX-License-Identifier: Apache-2.0
//! Output of a driver for the program that runs it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use taran_core::error_log::ObservedError;

/// One item of output of a driver, for the sink set with
/// [`DriverContext::on_diagnostic`](crate::DriverContext::on_diagnostic). Its `Display` is the text; of configuration and
/// warnings, the one that a driver without a sink prints.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Diagnostic<'a> {
    /// The options and their values, if `aeron.print.configuration` is set.
    Configuration(&'a str),
    /// A warning at the start, which does not prevent it.
    Warning(&'a DriverWarning),
    /// An error that was recorded in the error log, or would have been if it had room. Without a sink only errors that have
    /// no room are printed (`aeron.fallback.logger`).
    Error(&'a ObservedError<'a>),
}

impl fmt::Display for Diagnostic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configuration(text) => f.write_str(text),
            Self::Warning(warning) => write!(f, "WARNING: {warning}"),
            Self::Error(error) => error.fmt(f),
        }
    }
}

/// Condition that an operator should know of, although the driver starts.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DriverWarning {
    /// The directory exists already, and `aeron.dir.warn.if.exists` is set.
    #[error("{} exists", directory.display())]
    DirectoryExists {
        /// The directory.
        directory: PathBuf,
    },
    /// The last driver of the directory has ended, and its errors were saved.
    #[error(
        "the last driver in {} has ended and left {distinct} distinct errors, which are saved in {}; \
         'taran errors --previous' shows them",
        directory.display(), file.display()
    )]
    PreviousErrors {
        /// The directory of the driver.
        directory: PathBuf,
        /// Number of distinct errors.
        distinct: usize,
        /// File with the errors as text.
        file: PathBuf,
    },
    /// All users of the host can read the messages in the directory, although they are encrypted on the wire.
    #[error(
        "{} has mode {mode:04o}: users of this host can read all messages; set taran.dir.mode=0700, or 0750 and \
         taran.dir.group",
        directory.display()
    )]
    OpenDirectory {
        /// The directory.
        directory: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The system grants a smaller socket buffer than configured.
    #[error("{option}={value} exceeds the system limit of {limit}: raise net.core.{sysctl}")]
    SocketBuffer {
        /// The name of the option.
        option: &'static str,
        /// Its value.
        value: String,
        /// The largest length that the system grants, in bytes.
        limit: usize,
        /// The name of the system's limit.
        sysctl: &'static str,
    },
}

taran_core::debug_is_display!(DriverWarning);

/// Destination of diagnostics: a function of the embedding program, or standard output and standard error.
#[derive(Clone, Default)]
pub(crate) struct DiagnosticSink(Option<Arc<OnDiagnostic>>);

type OnDiagnostic = dyn Fn(&Diagnostic<'_>) + Send + Sync;

impl DiagnosticSink {
    pub(crate) fn new(sink: impl Fn(&Diagnostic<'_>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(sink)))
    }

    /// Returns true if the embedding program takes the diagnostics.
    pub(crate) fn is_set(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn configuration(&self, text: &str) {
        match &self.0 {
            Some(sink) => sink(&Diagnostic::Configuration(text)),
            None => print!("{text}"),
        }
    }

    pub(crate) fn warn(&self, warning: &DriverWarning) {
        let warning = Diagnostic::Warning(warning);
        match &self.0 {
            Some(sink) => sink(&warning),
            None => eprintln!("{warning}"),
        }
    }

    /// Passes an error on, if the embedding program takes diagnostics.
    pub(crate) fn error(&self, error: &ObservedError<'_>) {
        if let Some(sink) = &self.0 {
            sink(&Diagnostic::Error(error));
        }
    }
}
