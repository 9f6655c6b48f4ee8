// SPDX-License-Identifier: Apache-2.0
//! The consensus module: one member of a cluster, with its service, as an agent over driver and archive
//! (`docs/spec/cluster.md` §1.7).

mod agent;
mod catchup;
mod config;
pub(crate) mod containers;
pub(crate) mod counters;
mod destination;
mod egress;
mod files;
mod launch;
mod leave;
pub(crate) mod log;
pub(crate) mod options;
pub(crate) mod recordings;
mod remote;
mod repeated;
mod replicated;
pub(crate) mod reports;
pub(crate) mod snapshot;
pub mod toggle;
pub mod type_id;

pub use agent::ModuleError;
pub use config::{ClusterConfig, ClusterConfigError};
pub use containers::ContainersError;
pub use files::StateFileError;
pub use launch::{ConsensusModule, ConsensusModuleBuilder, InContainers, LaunchError};
