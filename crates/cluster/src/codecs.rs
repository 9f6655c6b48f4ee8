// SPDX-License-Identifier: Apache-2.0
//! SBE codecs of the cluster's protocol, which crate `taran-cluster-client` generates.
//!
//! [`protocol`](crate::protocol) has typed messages on top of them.

pub use taran_cluster_client::codecs::cluster;
