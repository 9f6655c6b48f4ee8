// SPDX-License-Identifier: Apache-2.0
//! Outcome of a command that did not complete.

use super::deferred_commands::Prerequisite;
use super::failure::Failure;

/// Outcome of a command that did not complete.
#[derive(Debug)]
pub(crate) enum CommandError {
    Failed(Failure),
    /// The command is deferred and runs again from its start when this is resolved. The first run has made no change
    /// that affects the second.
    Pending(Prerequisite),
}

impl From<Failure> for CommandError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
