// SPDX-License-Identifier: Apache-2.0
//! The media driver: conductor, sender and receiver.
//!
//! [`MediaDriver::launch`] starts a driver from a [`DriverContext`]. [`DriverParts::build`] creates its three agents
//! without running them, for programs that supply their own threads, clock, network and files, such as the simulator.
//! [`MediaDriver::add_agent`] runs agents of the embedding program with those of the driver, in each threading mode.
//!
//! ```
//! use taran_driver::{DriverContext, MediaDriver, ThreadingMode};
//!
//! # fn main() -> Result<(), taran_driver::DriverError> {
//! // Options are set by methods, or by the names that property files and the command line use.
//! let context = DriverContext::new()
//!     .threading_mode(ThreadingMode::Shared)
//!     .option("aeron.ipc.term.buffer.length", "1m");
//! // In a directory of its own, which is deleted at the end; clients of this or other processes connect to it.
//! let driver = MediaDriver::launch_embedded(context)?;
//! let directory = driver.aeron_dir().to_path_buf();
//! assert!(directory.join("cnc.dat").exists());
//!
//! driver.close()?;
//! assert!(!directory.exists());
//! # Ok(())
//! # }
//! ```
//!
//! Public are: launching and embedding; [`context`], the configuration and its validation; and what a program can supply:
//! name resolution ([`NameResolver`]), flow control ([`FlowControl`]), congestion control ([`congestion`]), the decision on
//! requested termination ([`TerminationValidator`], [`TerminationHook`]), and a sink for what is printed otherwise
//! ([`Diagnostic`]). The types of other crates that occur here are exported too, so that a program which embeds a driver names
//! this crate alone; one with a network backend of its own also names `taran-net`.

#![forbid(unsafe_code)]
// loom models have no files, so nothing is launched there.
#![cfg_attr(loom, allow(dead_code, unused_imports))]

mod boundary;
mod clock_jumps;
mod conductor;
pub mod congestion;
pub mod context;
mod control_batch;
#[cfg(test)]
mod data_path_tests;
mod diagnostics;
mod error;
mod error_reporter;
mod event_log;
mod ids;
mod interceptors;
mod interval_timer;
#[cfg(not(loom))]
mod launch;
mod park_multiplier;
mod poll_backoff;
mod poll_schedule;
mod receiver;
mod secured;
mod sender;
#[cfg(test)]
mod testing;
mod timestamps;
mod token_bucket;

pub use conductor::{Conductor, NameResolver, TerminationHook, TerminationValidator};
pub use context::DriverContext;
pub use diagnostics::{Diagnostic, DriverWarning};
pub use error::DriverError;
pub use event_log::{EventLog, FieldValue};
#[cfg(not(loom))]
pub use launch::{
    AddAgentError, AgentId, AgentPlacement, DriverParts, Environment, MediaDriver, Termination,
};
pub use receiver::Receiver;
#[cfg(feature = "secure")]
pub use secured::{
    DriverKeys, KeyDirectory, KeyFileError, SecurityControl, default_directory, read_public,
};
pub use sender::{FlowControl, FlowControlRequest, FlowControlSupplier, Sender, StatusReport};
pub use taran_core::affinity::AffinityError;
pub use taran_core::agent::{
    Agent, AgentEnd, AgentEvent, AgentThread, AgentWaker, HostEnded, ThreadWaker, WaitRegistration,
    register_wait,
};
pub use taran_core::clock::{Now, WallClock};
pub use taran_core::counters::{CounterMeta, CounterState, CountersReader};
pub use taran_core::error_log::{ErrorHandler, ErrorLogFull, ErrorObservation, ObservedError};
pub use taran_core::idle;
#[cfg(not(loom))]
pub use taran_core::memory::{FileStorage, StoredFile};
pub use taran_core::memory::{InsufficientSpace, MemoryError, MemoryStorage, Storage};
pub use taran_net::{Backends, NetError, Network, SocketNetwork};
pub use taran_protocol::cnc::Version;
pub use taran_protocol::event::EventCode;
pub use taran_protocol::option::{OptionErrors, OptionId, OptionSet, ThreadingMode, UnknownOption};
