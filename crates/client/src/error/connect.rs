//! Errors of connecting to a driver.

use std::path::PathBuf;
use std::time::Duration;

use taran_protocol::cnc::Version;

/// Why no connection to a media driver could be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// There is no `cnc.dat`: no driver runs in this directory, or it runs in another one.
    #[error(
        "no media driver runs in {}: waited {waited:?} and there is no cnc.dat. Start a driver (`taran driver`), or \
         name the directory of a running one with the environment variable AERON_DIR, the property aeron.dir or \
         Context::aeron_dir",
        .directory.display()
    )]
    NoDriver {
        /// The Aeron directory.
        directory: PathBuf,
        /// How long a driver was waited for.
        waited: Duration,
    },
    /// There is a `cnc.dat`, but this process may not open or map it.
    #[error(
        "{} can not be opened: {reason}. Name the directory of a running driver with the environment variable AERON_DIR, \
         the property aeron.dir or Context::aeron_dir; if that is the one, run as the same user as its driver, or give \
         this user read and write access",
        .path.display()
    )]
    NotReadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The file is shorter than its own header says, or than any `cnc.dat`.
    #[error(
        "{} has {length} bytes, {needed} are needed: it is no cnc.dat, or its driver died while it made it. Remove the \
         directory and start the driver again",
        .path.display()
    )]
    TooShort {
        /// The file.
        path: PathBuf,
        /// Its length in bytes.
        length: usize,
        /// The length it should have at least, in bytes.
        needed: usize,
    },
    /// The driver has made its file but never said that it is ready.
    #[error(
        "the media driver has not finished making {} within {waited:?}: it hangs, or died while it started; start it again",
        .path.display()
    )]
    NotReady {
        /// The file.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The driver speaks another version of the shared-memory protocol.
    #[error(
        "{} has version {found}, this client needs {expected}: use a driver and a client that agree (Aeron 1.51 \
         speaks 0.2.0)",
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
    /// The driver has stopped in an orderly way and has not been started again.
    #[error(
        "the media driver in {} has shut down (waited {waited:?} for a new one); start a driver, or name the directory \
         of a running one with AERON_DIR, aeron.dir or Context::aeron_dir",
        .directory.display()
    )]
    DriverStopped {
        /// The Aeron directory.
        directory: PathBuf,
        /// How long a new driver was waited for.
        waited: Duration,
    },
    /// A driver has left its files behind, but does not give signs of life.
    #[error(
        "the media driver in {} is dead: its last sign of life was {age:?} ago (aeron.driver.timeout = {timeout:?}). \
         Start it again; it cleans up the directory by itself",
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
    /// The contents of the file contradict each other.
    #[error("{} is damaged: {reason}. Start the driver again", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// An option of the client has an impossible value, or does not exist.
    #[error("{0}")]
    Option(String),
    /// The thread of the client conductor could not be started.
    #[error("the client conductor's thread could not be started: {0}")]
    Thread(String),
}
