// SPDX-License-Identifier: Apache-2.0
//! Errors of connecting to a driver.

use std::path::PathBuf;
use std::time::Duration;

use taran_protocol::cnc::Version;

/// Reason why a connection to a media driver failed.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[doc(alias = "DriverTimeoutException")]
pub enum ConnectError {
    /// There is no `cnc.dat`: no driver runs in this directory.
    #[error(
        "no media driver runs in {}: waited {waited:?} and there is no cnc.dat. Start a driver (`taran driver`), or \
         name the directory of a running one with the environment variable AERON_DIR, the property aeron.dir or \
         ClientBuilder::aeron_dir",
        .directory.display()
    )]
    NoDriver {
        /// The Aeron directory.
        directory: PathBuf,
        /// Time that the client waited for a driver.
        waited: Duration,
    },
    /// There is a `cnc.dat`, but this process cannot open or map it.
    #[error(
        "{} cannot be opened: {reason}. Name the directory of a running driver with the environment variable \
         AERON_DIR, the property aeron.dir or ClientBuilder::aeron_dir; if the directory is correct, run as the same user as \
         its driver, or give this user read and write access",
        .path.display()
    )]
    NotReadable {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        reason: String,
    },
    /// The file is shorter than its header requires.
    #[error(
        "{} has {length} bytes, {needed} are needed: it is not a cnc.dat, or its driver died while creating it. \
         Remove the directory and start the driver again",
        .path.display()
    )]
    TooShort {
        /// The file.
        path: PathBuf,
        /// Its length in bytes.
        length: usize,
        /// Minimum length in bytes.
        needed: usize,
    },
    /// The driver has created its file but has not marked it as ready.
    #[error(
        "the media driver has not finished creating {} within {waited:?}: it hangs, or died during startup; \
         start it again",
        .path.display()
    )]
    NotReady {
        /// The file.
        path: PathBuf,
        /// Time that the client waited.
        waited: Duration,
    },
    /// The driver uses an incompatible version of the shared-memory layout.
    #[error(
        "{} has version {found}, this client needs {expected}: use a driver and a client of the same version \
         (Aeron 1.51 has 0.2.0)",
        .path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Version of the file.
        found: Version,
        /// Version of this client.
        expected: Version,
    },
    /// The driver has shut down in an orderly way, and no new one has started.
    #[error(
        "the media driver in {} has shut down (waited {waited:?} for a new one); start a driver, or name the directory \
         of a running one with AERON_DIR, aeron.dir or ClientBuilder::aeron_dir",
        .directory.display()
    )]
    DriverStopped {
        /// The Aeron directory.
        directory: PathBuf,
        /// Time that the client waited for a new driver.
        waited: Duration,
    },
    /// The driver's files exist, but it has ended without shutting down: it was killed or has crashed.
    #[error(
        "the media driver in {} (process {pid}) has ended without shutting down (waited {waited:?} for a new one, \
         aeron.driver.timeout). Start it again; it cleans up the directory itself",
        .directory.display()
    )]
    DriverProcessEnded {
        /// The Aeron directory.
        directory: PathBuf,
        /// Process id of the driver.
        pid: i64,
        /// Time that the client waited for a new driver.
        waited: Duration,
    },
    /// The driver's files exist, but its heartbeat is older than the driver timeout.
    #[error(
        "the media driver in {} is dead: its last heartbeat was {age:?} ago (aeron.driver.timeout = {timeout:?}). \
         Start it again; it cleans up the directory itself",
        .directory.display()
    )]
    DriverDied {
        /// The Aeron directory.
        directory: PathBuf,
        /// Time since the driver's last heartbeat.
        age: Duration,
        /// The driver timeout in force.
        timeout: Duration,
    },
    /// The contents of the file are inconsistent.
    #[error("{} is damaged: {reason}. Start the driver again", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The inconsistency found.
        reason: String,
    },
    /// An option of the client has an invalid value or does not exist.
    #[error("{0}")]
    Option(String),
    /// The thread of the client conductor could not be started.
    #[error("the client conductor's thread could not be started: {0}")]
    Thread(String),
}

impl ConnectError {
    /// Returns true if connecting can succeed later, when a driver has started: none runs in the directory, it is still
    /// starting or died while it started, it has shut down, or it is dead.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::NoDriver { .. }
                | Self::TooShort { .. }
                | Self::NotReady { .. }
                | Self::DriverStopped { .. }
                | Self::DriverProcessEnded { .. }
                | Self::DriverDied { .. }
        )
    }
}

taran_core::debug_is_display!(ConnectError);
