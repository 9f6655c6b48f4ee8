// SPDX-License-Identifier: Apache-2.0
//! The line that a process prints when it has started: what runs, where, and how.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use taran_protocol::option::OptionSet;

use crate::version;

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
    pub(crate) fn add(&mut self, name: &str, value: impl Display) {
        self.0.push_str(&format!(", {name} {value}"));
    }

    /// Appends the properties of a driver that runs in the process beside something else.
    pub(crate) fn add_driver(&mut self, options: &OptionSet, directory: &Path) {
        self.add("driver", directory.display());
        self.add("driver threading", options.threading_mode_name());
        self.add_profile(options);
    }

    /// Appends the profile and the security of a driver.
    pub(crate) fn add_profile(&mut self, options: &OptionSet) {
        self.add("profile", options.profile_name());
        self.add("security", options.secure_mode_name());
    }

    /// Prints the line on standard output. A closed standard output prevents no start.
    pub(crate) fn print(self) {
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{}", self.0);
        let _ = out.flush();
    }
}
