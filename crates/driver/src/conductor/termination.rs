//! Whether a client may stop the driver, and how the driver learns of it.

use std::fmt;
use std::path::{Path, PathBuf};

/// Decides about a request to terminate, given the driver's directory and the client's token.
pub type TerminationValidator = Box<dyn FnMut(&Path, &[u8]) -> bool + Send>;

/// Called when a request to terminate was accepted. It must return at once: it runs on the conductor.
pub type TerminationHook = Box<dyn FnMut() + Send>;

/// Requests of clients to stop the driver.
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

    /// A client asks the driver to stop. Denied requests leave no trace (docs/spec/uri-and-configuration.md §5.4).
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
