//! The consensus module: one member of a cluster, with its service, as an agent over driver and archive
//! (`docs/spec/cluster.md` §1.7).

mod agent;
mod config;
mod counters;
mod egress;
mod files;
mod launch;
mod log;
mod remote;
mod replicated;
mod snapshot;

pub use agent::ModuleError;
pub use config::{ClusterConfig, ClusterConfigError};
pub use files::StateFileError;
pub use launch::{ConsensusModule, ConsensusModuleBuilder, LaunchError};
