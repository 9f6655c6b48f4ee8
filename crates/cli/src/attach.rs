//! Looking at a driver from outside: its `cnc.dat`, without being one of its clients.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use taran_core::clock::{Clock, SystemClock};
use taran_core::counters::CountersReader;
use taran_core::directory::default_directory;
use taran_core::memory::{FileStorage, MemoryError, Storage};
use taran_core::ring::many_to_one::Producer;
use taran_core::ring::{RingError, WriteError};
use taran_protocol::cnc::{CNC_FILE_NAME, CNC_VERSION, Cnc, CncError, Version};
use taran_protocol::option::{OptionError, OptionId, OptionSet, Source};

use crate::values;

/// Between two looks at a file that is not there yet.
const RETRY: Duration = Duration::from_millis(10);
/// Heartbeat of a driver that has shut down in an orderly way.
const SHUT_DOWN: i64 = -1;

/// Which driver to look at.
#[derive(Args, Clone, Debug)]
pub(crate) struct Target {
    /// Directory of the driver [default: $AERON_DIR, else /dev/shm/aeron-<user>]
    #[arg(short = 'd', long, value_name = "DIR")]
    pub(crate) aeron_dir: Option<PathBuf>,

    /// How long to wait for a driver to appear; a bare number is milliseconds
    #[arg(short = 't', long, value_name = "TIME", default_value = "1s", value_parser = values::millis)]
    pub(crate) timeout: Duration,
}

/// A driver's `cnc.dat`, mapped; the driver itself may be gone.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) directory: PathBuf,
    pub(crate) cnc: Cnc,
    to_driver: Producer,
    driver_timeout_ms: i64,
}

/// How a driver is, judged by its last heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// The heartbeat is young.
    Alive,
    /// The driver has said good-bye.
    ShutDown,
    /// The driver was killed, or hangs.
    Silent,
}

/// Why there is nothing to look at.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttachError {
    #[error(transparent)]
    Option(#[from] OptionError),
    #[error(
        "no driver is running: {} does not exist (waited {waited:?}). Start one with 'taran driver', or name the directory \
         of a running one with --aeron-dir or AERON_DIR", path.display()
    )]
    NoDriver { path: PathBuf, waited: Duration },
    #[error("{0}. Name the directory of a running driver with --aeron-dir or AERON_DIR")]
    Memory(MemoryError),
    #[error(
        "{} has version {found}, this program reads {CNC_VERSION}: use the tools that came with that driver",
        path.display()
    )]
    Version { path: PathBuf, found: Version },
    #[error(
        "{} cannot be read: {source} (waited {waited:?}). Its driver died while it started, or something else wrote \
         there: remove the directory and start the driver again", path.display()
    )]
    Cnc {
        path: PathBuf,
        source: CncError,
        waited: Duration,
    },
    #[error("{} is damaged: the buffer of commands: {source}", path.display())]
    Ring { path: PathBuf, source: RingError },
    #[error("{}: the driver takes no commands: {source}", path.display())]
    Command { path: PathBuf, source: WriteError },
}

/// The driver is gone; what it left behind could still be shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Gone {
    #[error(
        "the driver at {} (pid {pid}) has shut down; what is shown is what it left. Start it again with 'taran driver'",
        directory.display()
    )]
    ShutDown { directory: PathBuf, pid: i64 },
    #[error(
        "the driver at {} (pid {pid}) gave its last sign of life {age_ms} ms ago: it was killed or hangs; what is shown is \
         what it left. See 'ps -p {pid}'; if it is gone, start it again with 'taran driver'", directory.display()
    )]
    Silent {
        directory: PathBuf,
        pid: i64,
        age_ms: i64,
    },
}

impl Attached {
    /// Waits for a driver's file and maps it.
    pub(crate) fn open(target: &Target) -> Result<Self, AttachError> {
        let options = options()?;
        let directory = match (&target.aeron_dir, options.dir()) {
            (Some(directory), _) => directory.clone(),
            (None, Some(directory)) => PathBuf::from(directory),
            (None, None) => default_directory(),
        };
        let path = directory.join(CNC_FILE_NAME);
        let (cnc, to_driver) = wait(&path, target.timeout)?;
        Ok(Self {
            directory,
            cnc,
            to_driver,
            driver_timeout_ms: options.driver_timeout_ms(),
        })
    }

    /// All counters of the driver.
    pub(crate) fn counters(&self) -> CountersReader {
        CountersReader::new(
            self.cnc.counters_metadata.clone(),
            self.cnc.counters_values.clone(),
        )
    }

    /// The file.
    pub(crate) fn cnc_path(&self) -> PathBuf {
        self.directory.join(CNC_FILE_NAME)
    }

    /// The version of its layout.
    pub(crate) fn version(&self) -> Version {
        Version(self.cnc.header.version.load(Ordering::Acquire))
    }

    /// Process id of the driver.
    pub(crate) fn pid(&self) -> i64 {
        self.cnc.spec().driver_pid
    }

    /// Writes a command to the driver.
    pub(crate) fn send(&self, type_id: i32, payload: &[u8]) -> Result<(), AttachError> {
        self.to_driver
            .write(type_id, payload)
            .map_err(|source| AttachError::Command {
                path: self.cnc_path(),
                source,
            })
    }

    /// An id for a command.
    pub(crate) fn next_correlation_id(&self) -> i64 {
        self.to_driver.next_correlation_id()
    }

    /// When the driver last showed itself, milliseconds since the epoch; -1 after an orderly shutdown.
    pub(crate) fn heartbeat_ms(&self) -> i64 {
        self.to_driver.consumer_heartbeat_ms()
    }

    /// Milliseconds since the last heartbeat; `None` after an orderly shutdown.
    pub(crate) fn heartbeat_age_ms(&self) -> Option<i64> {
        let heartbeat = self.to_driver.consumer_heartbeat_ms();
        let now = SystemClock::new().now().epoch_millis;
        (heartbeat != SHUT_DOWN).then(|| now.saturating_sub(heartbeat))
    }

    pub(crate) fn life(&self) -> Life {
        match self.heartbeat_age_ms() {
            None => Life::ShutDown,
            Some(age) if age > self.driver_timeout_ms => Life::Silent,
            Some(_) => Life::Alive,
        }
    }

    /// An error where the driver is gone.
    pub(crate) fn check_alive(&self) -> Result<(), Gone> {
        let directory = self.directory.clone();
        let pid = self.pid();
        match self.life() {
            Life::Alive => Ok(()),
            Life::ShutDown => Err(Gone::ShutDown { directory, pid }),
            Life::Silent => Err(Gone::Silent {
                directory,
                pid,
                age_ms: self.heartbeat_age_ms().unwrap_or(0),
            }),
        }
    }
}

/// Of the environment, what concerns tools; nothing else there can be at fault.
fn options() -> Result<OptionSet, OptionError> {
    let mut options = OptionSet::client();
    for id in [OptionId::Dir, OptionId::DriverTimeout] {
        if let Ok(value) = std::env::var(id.spec().variable) {
            options.set(id, &value, &Source::Environment)?;
        }
    }
    Ok(options)
}

fn wait(path: &Path, timeout: Duration) -> Result<(Cnc, Producer), AttachError> {
    let start = Instant::now();
    loop {
        let error = match open(path, timeout) {
            Ok(opened) => return Ok(opened),
            Err(error) => error,
        };
        if !may_pass(&error) || start.elapsed() >= timeout {
            return Err(error);
        }
        thread::sleep(RETRY.min(timeout));
    }
}

fn open(path: &Path, waited: Duration) -> Result<(Cnc, Producer), AttachError> {
    let path = || path.to_path_buf();
    let region = FileStorage.open(&path()).map_err(|error| match error {
        MemoryError::NotFound { .. } => AttachError::NoDriver {
            path: path(),
            waited,
        },
        error => AttachError::Memory(error),
    })?;
    let cnc = Cnc::open(&region).map_err(|error| match error {
        CncError::Version { found, .. } => AttachError::Version {
            path: path(),
            found,
        },
        source => AttachError::Cnc {
            path: path(),
            source,
            waited,
        },
    })?;
    let to_driver = Producer::open(&cnc.to_driver).map_err(|source| AttachError::Ring {
        path: path(),
        source,
    })?;
    Ok((cnc, to_driver))
}

/// True where a driver that is just starting would look like that.
fn may_pass(error: &AttachError) -> bool {
    match error {
        AttachError::NoDriver { .. } => true,
        AttachError::Memory(error) => matches!(
            error,
            MemoryError::Empty { .. } | MemoryError::Truncated { .. }
        ),
        AttachError::Cnc { source, .. } => source.is_not_ready(),
        AttachError::Option(_)
        | AttachError::Version { .. }
        | AttachError::Ring { .. }
        | AttachError::Command { .. } => false,
    }
}
