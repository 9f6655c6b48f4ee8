//! Why a driver could not be started, or not be closed in order.

use std::fmt;
use std::io;
use std::path::PathBuf;

use taran_core::idle::IdleError;
use taran_core::memory::{InsufficientSpace, MemoryError};
use taran_net::NetError;
use taran_protocol::cnc::Version;
use taran_protocol::option::{OptionErrors, UnknownOption};

use crate::context::Conflict;

/// Why a driver could not be started, or not be closed in order. Texts name the option, its value, the value needed,
/// and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// Options have values that they cannot have.
    #[error("{0}")]
    Options(OptionErrors),
    /// No option has this name.
    #[error("{0}")]
    UnknownOption(UnknownOption),
    /// Options do not go together, or not with what the system grants.
    #[error("{}", Lines(.0))]
    Conflicts(Vec<Conflict>),
    /// The arguments of an idle strategy do not fit it.
    #[error("{0}")]
    Idle(#[from] IdleError),
    /// Another driver lives in the directory.
    #[error(
        "active media driver detected in {} (process {pid}, heartbeat {age_ms} ms ago): stop it, or choose another \
         directory with aeron.dir; if it was killed, start again when that heartbeat is older than \
         aeron.driver.timeout={timeout_ms} ms", directory.display()
    )]
    ActiveDriver {
        /// The directory.
        directory: PathBuf,
        /// Process id of the driver that lives there.
        pid: i64,
        /// Age of its last sign of life.
        age_ms: i64,
        /// Age at which it would count as dead.
        timeout_ms: i64,
    },
    /// Another driver is starting in the directory, and does not get to an end.
    #[error(
        "another driver has been starting in {} for aeron.driver.timeout={waited_ms} ms: stop it, or choose another \
         directory with aeron.dir", directory.display()
    )]
    Starting {
        /// The directory.
        directory: PathBuf,
        /// How long its end was waited for.
        waited_ms: i64,
    },
    /// The directory was left by a driver whose files this one does not understand.
    #[error(
        "{} was made by a driver of cnc version {found}, this one has {expected}: make sure that no driver uses it and \
         remove it, or choose another directory with aeron.dir", directory.display()
    )]
    ForeignVersion {
        /// The directory.
        directory: PathBuf,
        /// Version found.
        found: Version,
        /// Version of this driver.
        expected: Version,
    },
    /// The directory could not be made, cleared or removed.
    #[error(
        "cannot {action} {}: {source}; aeron.dir must name a directory in which this user may create files",
        path.display()
    )]
    Directory {
        /// What was tried.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file system has no room for the driver's files.
    #[error(
        "no room for cnc.dat and loss-report.dat in {}: {shortage}, or use a smaller \
         aeron.counters.buffer.length={counters} (which counts five times), or choose a directory on another file system \
         with aeron.dir", directory.display()
    )]
    Space {
        /// The directory.
        directory: PathBuf,
        /// What is asked for, and what there is.
        shortage: InsufficientSpace,
        /// The present length of the counters' buffer, which makes up most of it, in bytes.
        counters: usize,
    },
    /// A file of the directory could not be made.
    #[error("{0}")]
    Memory(#[from] MemoryError),
    /// The file of the event log could not be opened.
    #[error(
        "cannot append events to {}: {source}; aeron.event.log.filename must name a file that this user may write, remove it \
         for standard output", path.display()
    )]
    EventLog {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// What lives in memory that is shared, with clients or between threads, could not be set up.
    #[error("cannot set up {what}: {reason}")]
    Cnc {
        /// Which part.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// The address at which drivers exchange names cannot be had.
    #[error(
        "cannot resolve names at aeron.driver.resolver.interface={interface}: {reason}; it must be host:port of this \
         machine, with a port that nobody else uses, or port 0"
    )]
    ResolverInterface {
        /// The value of the option.
        interface: String,
        /// Why not.
        reason: String,
    },
    /// The system did not tell its limits.
    #[error("{0}")]
    Network(#[from] NetError),
    /// The system gave no thread.
    #[error("cannot start a thread for {agent}: {source}")]
    Thread {
        /// The agent that was to run on it.
        agent: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

/// One per line.
struct Lines<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for Lines<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, item) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{item}")?;
        }
        Ok(())
    }
}
