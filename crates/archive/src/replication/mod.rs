// SPDX-License-Identifier: Apache-2.0
//! Replication: copies a recording of another archive, as a client of it (`docs/spec/archive.md` §6).
//!
//! [`Replication`] decides, without I/O; the conductor does what it decides. [`channels`] derives the channels.

mod channels;
mod machine;
#[cfg(test)]
mod tests;

pub(crate) use channels::{ReplicationChannel, ReplicationTags, SourceReplay};
pub(crate) use machine::{Action, Extent, Facts, ImageFacts, Plan, Replication, State};
