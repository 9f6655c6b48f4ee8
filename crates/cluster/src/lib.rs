// SPDX-License-Identifier: Apache-2.0
//! Replicated state machine that speaks Aeron Cluster (`docs/spec/cluster.md`).
//!
//! * [`module`] runs a member: the consensus module, with a service in the same process.
//! * [`container`] runs a service in a process of its own, beside a consensus module.
//! * [`service`] is what such a service implements and uses. Crate `taran-cluster-client` is the client of a cluster.
//! * [`consensus`] elects leaders and decides what is committed, without I/O.
//! * [`files`] reads and writes what a member knows at its start, as bytes.
//! * [`protocol`] has a type for each message between members, with encoding and checked decoding.
//! * [`state`] are sessions, timers, pending messages and snapshots of a consensus module, without I/O.
//! * [`members`] reads the list of members.
//! * [`codecs`] are the generated SBE codecs below it.

#![forbid(unsafe_code)]

pub mod codecs;
pub mod consensus;
pub mod container;
pub mod files;
pub mod members;
pub mod module;
pub mod protocol;
pub mod service;
pub mod state;
