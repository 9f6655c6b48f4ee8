// SPDX-License-Identifier: Apache-2.0
//! Termination of the driver by clients.

use std::fmt;
use std::path::{Path, PathBuf};

/// Validates a request to terminate, given the driver's directory and the client's token.
pub type TerminationValidator = Box<dyn FnMut(&Path, &[u8]) -> bool + Send>;

/// Called when a request to terminate is accepted. It runs on the conductor and must return at once.
pub type TerminationHook = Box<dyn FnMut() + Send>;

/// Handler of requests to terminate the driver.
pub(crate) struct Termination {
    directory: PathBuf,
    validator: TerminationValidator,
    hook: TerminationHook,
}

impl Termination {
    pub(crate) fn new(
        directory: PathBuf,
        validator: TerminationValidator,
        hook: TerminationHook,
    ) -> Self {
        Self {
            directory,
            validator,
            hook,
        }
    }

    /// Handles a request to terminate. Rejected requests leave no trace (docs/spec/uri-and-configuration.md §5.4).
    pub(crate) fn request(&mut self, token: &[u8]) {
        if (self.validator)(&self.directory, token) {
            (self.hook)();
        }
    }
}

impl fmt::Debug for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Termination")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}
