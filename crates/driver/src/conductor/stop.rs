//! Outcome of a command that did not complete.

use super::failure::Failure;
use super::waiting::Need;

/// Outcome of a command that did not complete.
#[derive(Debug)]
pub(crate) enum Stop {
    Failed(Failure),
    /// The command is deferred and runs again from its start when this is resolved. The first run has made no change
    /// that affects the second.
    Waits(Need),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
