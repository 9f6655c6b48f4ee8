// SPDX-License-Identifier: Apache-2.0
//! Common parts of the examples of services: a member with driver and archive in this process, a client that reads requests
//! from its input, snapshots in chunks, and answers that wait for room.

pub(crate) mod answers;
pub(crate) mod chunks;
pub(crate) mod client;
pub(crate) mod member;
pub(crate) mod program;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;
