// SPDX-License-Identifier: Apache-2.0
//! Messages of the cluster as plain values, with encoding and checked decoding (`docs/spec/cluster.md` §2 to §7).
//!
//! Each stream has an enum of its messages: [`ConsensusMessage`] between members is here; those of clients, log, services and
//! snapshots are those of crate [`taran_cluster_client`].
//!
//! [`ConsensusMessage::consensus`] and [`ConsensusMessage::new`] convert from and to the messages of the
//! [core](crate::consensus), which have no fields that it does not decide by: ids, sessions, endpoints.

mod members;
#[cfg(test)]
mod tests;

pub use members::*;
pub use taran_cluster_client::protocol::*;
