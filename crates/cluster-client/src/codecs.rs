// SPDX-License-Identifier: Apache-2.0
//! SBE codecs of the cluster's protocol, version 16.
//!
//! [`protocol`](crate::protocol) has typed messages on top of them.

/// Messages between members, services and clients, and entries of the log (schema id 111).
pub mod cluster {
    include!(concat!(env!("OUT_DIR"), "/cluster.rs"));
}
