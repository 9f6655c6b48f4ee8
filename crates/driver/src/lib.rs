//! The media driver: conductor, sender and receiver.
//!
//! [`MediaDriver::launch`] starts one from a [`DriverContext`]. [`DriverParts::build`] makes its three agents without
//! running them, for whoever has threads, time, network and files of their own: the simulator.

#![forbid(unsafe_code)]
// Models of loom know no files, so nothing is launched there.
#![cfg_attr(loom, allow(dead_code, unused_imports))]

mod allowance;
pub mod boundary;
pub mod conductor;
pub mod congestion;
pub mod context;
mod error;
mod event_log;
mod every;
mod faults;
mod ids;
mod interceptors;
#[cfg(not(loom))]
mod launch;
mod lull;
mod park;
mod poll_schedule;
pub mod receiver;
#[cfg(test)]
mod road_tests;
pub mod sender;
mod signs;
#[cfg(test)]
mod testing;
pub mod timestamps;

pub use conductor::{NameResolver, TerminationHook, TerminationValidator};
pub use context::DriverContext;
pub use error::DriverError;
pub use event_log::{EventLog, Fact};
#[cfg(not(loom))]
pub use launch::{DriverParts, Environment, MediaDriver, Termination};
pub use sender::{FlowControl, FlowControlRequest, FlowControlSupplier, StatusReport};
