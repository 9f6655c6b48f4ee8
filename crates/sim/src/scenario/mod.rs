// SPDX-License-Identifier: Apache-2.0
//! Scenarios as data: a list of timed operations on a world, generated from a seed.
//!
//! [`Scenario::random`] generates one, [`run()`] executes it with all checks, [`shrink()`] reduces one that fails, and
//! [`Scenario::to_text`] writes it with one operation per line, so that it can be read, edited and run again.
//!
//! At the end of each scenario the network is restored and every live flow must make progress; then everything is
//! closed and nothing may be left.

mod channel;
mod commands;
mod coverage;
mod definition;
mod disk_fault;
mod drain;
mod execute;
mod flows;
mod generate;
mod link_profile;
mod losses;
mod memory_limit;
mod op;
mod route;
mod runner;
mod shrink;
mod suite;
#[cfg(test)]
mod suite_tests;

pub use coverage::Coverage;
pub use definition::{CustomOp, HostConfig, Scenario, ScenarioError, TimedOp};
pub use disk_fault::{BitRot, DiskFault, Failing};
pub use drain::RECOVERY_BOUND;
pub(crate) use execute::is_silent;
pub use execute::{Failure, Observer, run, run_with, silence_panics, without_panic_output};
pub use link_profile::LinkProfile;
pub use memory_limit::{MemoryLimit, MemoryLimits};
pub use op::{Op, Publish, RequestResponse, Subscribe};
pub use shrink::{Shrunk, shrink};
pub use suite::{Operation, Setting, Suite};
