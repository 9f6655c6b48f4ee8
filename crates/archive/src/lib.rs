// SPDX-License-Identifier: Apache-2.0
//! An Aeron archive (`docs/spec/archive.md`): records streams to disk and replays them.
//!
//! * [`Archive`] is a running archive, beside a media driver; [`ArchiveConfig`] its configuration.
//! * [`ArchiveParts`] are the agents of an archive without threads, over a disk, memory and time of the caller.
//! * [`security`] has the interfaces that decide which clients may do what.
//! * [`files`] is what an archive keeps on disk: catalog, segment files, mark file, and the tools for a stopped archive.

#![forbid(unsafe_code)]

mod assembly;
mod buffers;
mod channel;
mod clock_steps;
mod conductor;
mod config;
mod counters;
mod disk_io;
mod event_log;
pub mod files;
mod launch;
mod mark;
mod outgoing;
mod parts;
mod recorder;
mod replayer;
mod replication;
mod retention;
pub mod security;
mod session;
#[cfg(test)]
mod simulation;
mod slots;
pub mod type_id;

pub use config::{ArchiveConfig, ArchiveThreadingMode, ConfigError, DiskFullPolicy, StreamConfig};
pub use launch::{Archive, ArchiveBuilder, ArchiveError};
pub use parts::{ArchiveEnvironment, ArchiveParts, ArchiveStart};
pub use retention::{RetentionError, RetentionRule};
