// SPDX-License-Identifier: Apache-2.0
//! Clients of a cluster over crate `taran`: [`ClusterConnection`] is polled, [`ClusterClient`] blocks,
//! [`AsyncCluster`] is for asynchronous tasks.

mod asynchronous;
mod blocking;
mod connection;
mod context;
mod error;

pub use asynchronous::AsyncCluster;
pub use blocking::ClusterClient;
pub use connection::{ClusterClaim, ClusterConnection, EgressMessageInfo};
pub use context::{ClusterContext, MAX_CLIENT_NAME_LENGTH};
pub use error::{ClusterOfferError, ConnectClusterError};
