// SPDX-License-Identifier: Apache-2.0
//! Containers: services in processes of their own, beside a consensus module of Taran or Aeron on the same driver
//! (`docs/spec/cluster.md` §7).

mod agent;
mod config;
mod counters;
mod entries;
mod joining;
mod launch;
mod requests;
mod snapshots;

pub use agent::ContainerError;
pub use config::ContainerConfig;
pub use launch::{ContainerLaunchError, ServiceContainer, ServiceContainerBuilder};
pub(crate) use requests::Requests;
