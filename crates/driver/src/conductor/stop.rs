//! Why a command did not run to its end.

use super::failure::Failure;
use super::waiting::Need;

/// Either the command cannot be done, or it cannot be done yet.
#[derive(Debug)]
pub(crate) enum Stop {
    Failed(Failure),
    /// It runs again from its start when it has this. Nothing has been changed that a second run would not find as it
    /// is.
    Waits(Need),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
