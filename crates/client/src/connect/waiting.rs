// SPDX-License-Identifier: Apache-2.0
//! The notice that a client waits for its driver.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time without a driver after which the notice is given.
pub(super) const NOTICE_AFTER: Duration = Duration::from_secs(1);

/// Notice that a client waits for a media driver; passed to the handler set with
/// [`ClientBuilder::on_waiting`](crate::ClientBuilder::on_waiting). Its `Display` is a line for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingForDriver {
    directory: PathBuf,
    timeout: Duration,
}

impl WaitingForDriver {
    pub(super) fn new(directory: PathBuf, timeout: Duration) -> Self {
        Self { directory, timeout }
    }

    /// Returns the Aeron directory in which a driver is awaited.
    #[must_use]
    pub fn aeron_dir(&self) -> &Path {
        &self.directory
    }

    /// Returns the time after which connecting fails, counted from its start: the driver timeout.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }
}

impl std::fmt::Display for WaitingForDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "waiting for a media driver in {} for up to {:?} (aeron.driver.timeout); start one with `taran driver`, or \
             name the directory of a running one with AERON_DIR",
            self.directory.display(),
            self.timeout
        )
    }
}
