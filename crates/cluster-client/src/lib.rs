// SPDX-License-Identifier: Apache-2.0
//! Client of an Aeron cluster (`docs/spec/cluster.md` §2).
//!
//! A cluster is a replicated state machine. A client opens a *session* with its leader, sends messages on the ingress stream, and
//! receives answers on an egress stream of its own. When the leader changes, the session goes on with the new one.
//!
//! * [`client`] has clients over crate `taran`; its types are also at the root.
//! * [`session`] has the state machine of a session, without I/O.
//! * [`protocol`] has a type for each message of clients, log, services and snapshots, with encoding and checked decoding.
//! * [`codecs`] are the generated SBE codecs below it.
//!
//! ```no_run
//! use taran_cluster_client::ClusterContext;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = taran::Client::builder().connect()?;
//! let mut cluster = ClusterContext::new("0=host-a:20110,1=host-b:20110,2=host-c:20110")
//!     .egress_channel("aeron:udp?endpoint=host-d:0")
//!     .connect(&client)?;
//! cluster.offer_blocking(b"buy 100")?;
//! loop {
//!     cluster.poll(|message, _| println!("{}", String::from_utf8_lossy(message)))?;
//! #   break;
//! }
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod client;
pub mod codecs;
pub mod protocol;
pub mod session;

pub use client::{
    AsyncCluster, ClusterClaim, ClusterClient, ClusterConnection, ClusterContext,
    ClusterOfferError, ConnectClusterError, EgressMessageInfo, MAX_CLIENT_NAME_LENGTH,
};
pub use session::{
    ClosedReason, ClusterEvent, ClusterState, Credentials, EndpointsError, IngressEndpoint,
    MemberId,
};
