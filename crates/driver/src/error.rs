// SPDX-License-Identifier: Apache-2.0
//! Errors of starting and closing a driver.

use std::fmt;
use std::io;
use std::path::PathBuf;

use taran_core::idle::IdleError;
use taran_core::memory::{InsufficientSpace, MemoryError};
use taran_net::NetError;
use taran_protocol::cnc::Version;
use taran_protocol::option::{OptionErrors, UnknownOption};

use crate::context::Conflict;

/// Error of starting or closing a driver. Texts name the option, its value, the value needed,
/// and what to do.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// Options have invalid values.
    #[error("{0}")]
    Options(OptionErrors),
    /// No option has this name.
    #[error("{0}")]
    UnknownOption(UnknownOption),
    /// Options conflict with each other or with limits of the system.
    #[error("{}", Lines(.0))]
    Conflicts(Vec<Conflict>),
    /// The arguments of an idle strategy do not fit it.
    #[error("{0}")]
    Idle(#[from] IdleError),
    /// Another driver is active in the directory.
    #[error(
        "active media driver detected in {} (process {pid}, heartbeat {age_ms} ms ago): stop it, or choose another \
         directory with aeron.dir; if it was killed, start again when that heartbeat is older than \
         aeron.driver.timeout={timeout_ms} ms", directory.display()
    )]
    ActiveDriver {
        /// The directory.
        directory: PathBuf,
        /// Process id of that driver.
        pid: i64,
        /// Age of its last heartbeat.
        age_ms: i64,
        /// Age at which it would count as dead.
        timeout_ms: i64,
    },
    /// Another driver is starting in the directory and does not finish.
    #[error(
        "another driver has been starting in {} for aeron.driver.timeout={waited_ms} ms: stop it, or choose another \
         directory with aeron.dir", directory.display()
    )]
    Starting {
        /// The directory.
        directory: PathBuf,
        /// Time waited for it.
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
        /// The action that failed.
        action: &'static str,
        /// The file or directory.
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
        /// Space needed and available.
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
    /// A part of the memory shared with clients or between threads could not be set up.
    #[error("cannot set up {what}: {reason}")]
    Cnc {
        /// Name of the part.
        what: &'static str,
        /// The reason.
        reason: String,
    },
    /// The address at which drivers exchange names cannot be bound.
    #[error(
        "cannot resolve names at aeron.driver.resolver.interface={interface}: {reason}; it must be host:port of this \
         machine, with an unused port, or port 0"
    )]
    ResolverInterface {
        /// The value of the option.
        interface: String,
        /// The reason.
        reason: String,
    },
    /// The network backend of the option `taran.net` cannot be used.
    #[error("taran.net={name}: {source}")]
    Backend {
        /// The value of the option.
        name: Box<str>,
        /// The reason.
        source: NetError,
    },
    /// Transport security cannot be set up.
    #[error("taran.secure.mode={mode}: {reason}")]
    Security {
        /// The value of the option.
        mode: String,
        /// The reason.
        reason: String,
    },
    /// The network cannot be used: its limits could not be read, or a backend is not available.
    #[error("{0}")]
    Network(#[from] NetError),
    /// A thread could not be started.
    #[error("cannot start a thread for {agent}: {source}")]
    Thread {
        /// The agent that was to run on it.
        agent: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

taran_core::debug_is_display!(DriverError);

/// Displays one item per line.
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
