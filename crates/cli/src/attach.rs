// SPDX-License-Identifier: Apache-2.0
//! Read access to a driver's `cnc.dat` from outside, without a client session.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use taran_core::clock::{Clock, SystemClock};
use taran_core::counters::CountersReader;
use taran_core::directory::default_directory;
use taran_core::memory::{FileStorage, LockProbe, MemoryError, Storage};
use taran_core::ring::many_to_one::Producer;
use taran_core::ring::{RingError, WriteError};
use taran_protocol::cnc::{CNC_FILE_NAME, CNC_VERSION, Cnc, CncError, Version, with_driver_lock};
use taran_protocol::option::{OptionError, OptionId, OptionSet, Source};

use crate::values;

/// Interval between two attempts to open the file.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);
/// Heartbeat value of a driver after an orderly shutdown.
const SHUT_DOWN_HEARTBEAT: i64 = -1;

/// Selects the driver.
#[derive(Args, Clone, Debug)]
pub(crate) struct Target {
    /// Directory of the driver [default: $AERON_DIR, else /dev/shm/aeron-<user>]
    #[arg(short = 'd', long, value_name = "DIR")]
    pub(crate) aeron_dir: Option<PathBuf>,

    /// Time to wait for the driver to start; a bare number is milliseconds
    #[arg(short = 't', long, value_name = "TIME", default_value = "1s", value_parser = values::millis)]
    pub(crate) timeout: Duration,
}

/// Mapped `cnc.dat` of a driver. The driver itself may have ended.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) directory: PathBuf,
    pub(crate) cnc: Cnc,
    to_driver: Producer,
    /// The lock of a Taran driver; official drivers have none.
    lock: Option<LockProbe>,
    driver_timeout_ms: i64,
}

/// State of a driver, derived from its lock, if it has one, and its last heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DriverState {
    /// The heartbeat is recent.
    Alive,
    /// The driver has shut down in an orderly way.
    ShutDown,
    /// The driver has ended without shutting down: it was killed or has crashed.
    Dead,
    /// The heartbeat is older than the driver timeout: the driver hangs, or is an official one that was killed.
    Silent,
}

/// Reason why a driver cannot be inspected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttachError {
    #[error(transparent)]
    Option(#[from] OptionError),
    #[error(
        "no driver is running: {} does not exist{}. Start one with 'taran driver', or give the \
        directory of a running one with --aeron-dir or AERON_DIR", path.display(), waiting(waited)
    )]
    NoDriver { path: PathBuf, waited: Duration },
    #[error("{0}. Give the directory of a running driver with --aeron-dir or AERON_DIR")]
    Memory(MemoryError),
    #[error(
        "{} has version {found}, but this program supports {CNC_VERSION}: use the tools that came with that driver",
        path.display()
    )]
    Version { path: PathBuf, found: Version },
    #[error(
        "{} cannot be read: {source}{}. Its driver died during startup, or another program wrote \
        the file: remove the directory and start the driver again", path.display(), waiting(waited)
    )]
    Cnc {
        path: PathBuf,
        source: CncError,
        waited: Duration,
    },
    #[error("{} is damaged: command buffer: {source}", path.display())]
    Ring { path: PathBuf, source: RingError },
    #[error("{}: cannot send a command to the driver: {source}", path.display())]
    Command { path: PathBuf, source: WriteError },
}

/// The driver has ended. Its last values were shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DriverGone {
    #[error(
        "the driver at {} (pid {pid}) has shut down; the values shown are its last ones. Start it again with \
        'taran driver'",
        directory.display()
    )]
    ShutDown { directory: PathBuf, pid: i64 },
    #[error(
        "the driver at {} (pid {pid}) has ended without shutting down: it was killed or has crashed; the values shown \
        are its last ones. Start it again with 'taran driver'",
        directory.display()
    )]
    Dead { directory: PathBuf, pid: i64 },
    #[error(
        "the driver at {} (pid {pid}) sent its last heartbeat {age_ms} ms ago: it was killed or hangs; the values \
        shown are its last ones. Check with 'ps -p {pid}'; if the process has ended, start it again with \
        'taran driver'", directory.display()
    )]
    Silent {
        directory: PathBuf,
        pid: i64,
        age_ms: i64,
    },
}

impl Attached {
    /// Maps the file of a driver; waits until it exists.
    pub(crate) fn open(target: &Target) -> Result<Self, AttachError> {
        let options = options()?;
        let directory = directory_of(target, &options);
        let Opened {
            cnc,
            to_driver,
            lock,
        } = wait(&directory, target.timeout)?;
        Ok(Self {
            directory,
            cnc,
            to_driver,
            lock,
            driver_timeout_ms: options.driver_timeout_ms(),
        })
    }

    /// Returns a reader of all counters of the driver.
    pub(crate) fn counters(&self) -> CountersReader {
        CountersReader::new(
            self.cnc.counters_metadata.clone(),
            self.cnc.counters_values.clone(),
        )
    }

    /// Returns the path of `cnc.dat`.
    pub(crate) fn cnc_path(&self) -> PathBuf {
        self.directory.join(CNC_FILE_NAME)
    }

    /// Returns the version of the file's layout.
    pub(crate) fn version(&self) -> Version {
        Version(self.cnc.header.version.load(Ordering::Acquire))
    }

    /// Returns the process id of the driver.
    pub(crate) fn pid(&self) -> i64 {
        self.cnc.spec().driver_pid
    }

    /// Sends a command to the driver.
    pub(crate) fn send(&self, type_id: i32, payload: &[u8]) -> Result<(), AttachError> {
        self.to_driver
            .write(type_id, payload)
            .map_err(|source| AttachError::Command {
                path: self.cnc_path(),
                source,
            })
    }

    /// Returns a correlation id for a command.
    pub(crate) fn next_correlation_id(&self) -> i64 {
        self.to_driver.next_correlation_id()
    }

    /// Returns the time of the last heartbeat in milliseconds since the epoch; -1 after an orderly shutdown.
    pub(crate) fn heartbeat_ms(&self) -> i64 {
        self.to_driver.consumer_heartbeat_ms()
    }

    /// Returns the milliseconds since the last heartbeat; `None` after an orderly shutdown.
    pub(crate) fn heartbeat_age_ms(&self) -> Option<i64> {
        let heartbeat = self.to_driver.consumer_heartbeat_ms();
        let now = SystemClock::new().now().epoch_millis;
        (heartbeat != SHUT_DOWN_HEARTBEAT).then(|| now.saturating_sub(heartbeat))
    }

    pub(crate) fn state(&self) -> DriverState {
        let has_ended = self.lock.as_ref().is_some_and(|lock| !lock.is_held());
        // Read after the lock: a driver sets its last heartbeat before it releases the lock.
        match self.heartbeat_age_ms() {
            None => DriverState::ShutDown,
            Some(_) if has_ended => DriverState::Dead,
            Some(age) if age > self.driver_timeout_ms => DriverState::Silent,
            Some(_) => DriverState::Alive,
        }
    }

    /// Returns an error if the driver has ended.
    pub(crate) fn check_alive(&self) -> Result<(), DriverGone> {
        let directory = self.directory.clone();
        let pid = self.pid();
        match self.state() {
            DriverState::Alive => Ok(()),
            DriverState::ShutDown => Err(DriverGone::ShutDown { directory, pid }),
            DriverState::Dead => Err(DriverGone::Dead { directory, pid }),
            DriverState::Silent => Err(DriverGone::Silent {
                directory,
                pid,
                age_ms: self.heartbeat_age_ms().unwrap_or(0),
            }),
        }
    }
}

/// Maps the files of several drivers, each with its directory. Those that do not exist are waited for together, so that one
/// missing driver delays the others once.
pub(crate) fn open_all(targets: &[Target]) -> Vec<(PathBuf, Result<Attached, AttachError>)> {
    let started = Instant::now();
    let open = |target: &Target| {
        let timeout = target.timeout.saturating_sub(started.elapsed());
        let directory = directory(target).unwrap_or_default();
        let target = Target {
            timeout,
            ..target.clone()
        };
        (directory, Attached::open(&target))
    };
    targets.iter().map(open).collect()
}

/// Returns the directory of the selected driver, which may not exist.
pub(crate) fn directory(target: &Target) -> Result<PathBuf, AttachError> {
    Ok(directory_of(target, &options()?))
}

fn directory_of(target: &Target, options: &OptionSet) -> PathBuf {
    match (&target.aeron_dir, options.dir()) {
        (Some(directory), _) => directory.clone(),
        (None, Some(directory)) => PathBuf::from(directory),
        (None, None) => default_directory(),
    }
}

/// Reads the options for tools from the environment. Errors in other variables do not matter here.
fn options() -> Result<OptionSet, OptionError> {
    let mut options = OptionSet::client();
    for id in [OptionId::Dir, OptionId::DriverTimeout] {
        if let Ok(value) = std::env::var(id.spec().variable) {
            options.set(id, &value, &Source::Environment)?;
        }
    }
    Ok(options)
}

/// The parts of a driver's files.
struct Opened {
    cnc: Cnc,
    to_driver: Producer,
    lock: Option<LockProbe>,
}

fn wait(directory: &Path, timeout: Duration) -> Result<Opened, AttachError> {
    let start = Instant::now();
    loop {
        let error = match open(directory, timeout) {
            Ok(opened) => return Ok(opened),
            Err(error) => error,
        };
        if !error.is_transient() || start.elapsed() >= timeout {
            return Err(error);
        }
        thread::sleep(RETRY_INTERVAL.min(timeout));
    }
}

fn open(directory: &Path, waited: Duration) -> Result<Opened, AttachError> {
    let (cnc, lock) = with_driver_lock(&FileStorage, directory, || open_cnc(directory, waited))?;
    let to_driver = Producer::open(&cnc.to_driver).map_err(|source| AttachError::Ring {
        path: directory.join(CNC_FILE_NAME),
        source,
    })?;
    Ok(Opened {
        cnc,
        to_driver,
        lock,
    })
}

fn open_cnc(directory: &Path, waited: Duration) -> Result<Cnc, AttachError> {
    let path = || directory.join(CNC_FILE_NAME);
    let region = FileStorage.open(&path()).map_err(|error| match error {
        MemoryError::NotFound { .. } => AttachError::NoDriver {
            path: path(),
            waited,
        },
        error => AttachError::Memory(error),
    })?;
    Cnc::open(&region).map_err(|error| match error {
        CncError::Version { found, .. } => AttachError::Version {
            path: path(),
            found,
        },
        source => AttachError::Cnc {
            path: path(),
            source,
            waited,
        },
    })
}

impl AttachError {
    /// Returns true if the error can be caused by a driver that is still starting.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::NoDriver { .. } => true,
            Self::Memory(error) => matches!(
                error,
                MemoryError::Empty { .. } | MemoryError::Truncated { .. }
            ),
            Self::Cnc { source, .. } => source.is_not_ready(),
            Self::Option(_) | Self::Version { .. } | Self::Ring { .. } | Self::Command { .. } => {
                false
            }
        }
    }
}

/// Returns a remark on the time for which a driver was waited for; none if it was not.
fn waiting(waited: &Duration) -> String {
    if waited.is_zero() {
        String::new()
    } else {
        format!(" (waited {waited:?})")
    }
}
