//! Why a command did not run to its end.

use super::failure::Failure;

/// Either the command cannot be done, or it cannot be done yet.
#[derive(Debug)]
pub(crate) enum Stop {
    Failed(Failure),
    /// These hosts have to be looked up first; then the command runs again from its start. Nothing has been changed.
    NeedsNames(Vec<String>),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
