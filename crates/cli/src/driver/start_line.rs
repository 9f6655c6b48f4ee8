//! The line that a process prints when it has started: what runs, where, and how.

use std::io::{self, Write};
use std::path::Path;

use taran_protocol::option::OptionSet;

use crate::version;

/// Prints the line of a driver in `directory`.
pub(super) fn print(options: &OptionSet, directory: &Path) {
    let mut line = StartLine::new("driver");
    line.add("directory", directory.display());
    line.add("threading", options.threading_mode_name());
    line.add("profile", options.profile_name());
    line.add("security", options.secure_mode_name());
    line.print();
}

/// A line under construction: `taran driver 0.1.0 (commit abc): pid 7, directory /dev/shm/one, ...`.
#[derive(Debug)]
pub(crate) struct StartLine(String);

impl StartLine {
    /// Begins the line of a process of this kind with version and process id.
    pub(crate) fn new(kind: &str) -> Self {
        Self(format!(
            "taran {kind} {} (commit {}): pid {}",
            version::VERSION,
            version::COMMIT,
            std::process::id()
        ))
    }

    /// Appends a property.
    pub(crate) fn add(&mut self, name: &str, value: impl std::fmt::Display) {
        self.0.push_str(&format!(", {name} {value}"));
    }

    /// Prints the line on standard output. A closed standard output prevents no start.
    pub(crate) fn print(self) {
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{}", self.0);
        let _ = out.flush();
    }
}
