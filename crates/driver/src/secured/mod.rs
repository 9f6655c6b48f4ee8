// SPDX-License-Identifier: Apache-2.0
//! Transport security of a driver (docs/spec/transport-security.md §4 and §5).
//!
//! The conductor owns the keeper of links and keys ([`Security`]). Each secured socket has a layer that seals and opens
//! datagrams ([`SecuredNetwork`]); the conductor passes keys to it through a queue, and the layer passes frames of
//! handshakes and links back through a queue of its agent. What is secured is decided by local configuration alone
//! ([`policy`]), before a socket is opened, and a socket without a decision carries nothing.

#[cfg(feature = "secure")]
mod active;
#[cfg(feature = "secure")]
mod back;
#[cfg(feature = "secure")]
mod control;
#[cfg(feature = "secure")]
mod forward;
#[cfg(feature = "secure")]
mod jobs;
#[cfg(feature = "secure")]
mod keeper_sender;
#[cfg(feature = "secure")]
mod key_directory;
#[cfg(feature = "secure")]
mod layer;
#[cfg(feature = "secure")]
mod memory;
#[cfg(feature = "secure")]
mod messages;
#[cfg(feature = "secure")]
mod neighbors;
#[cfg(feature = "secure")]
mod options;
pub(crate) mod policy;
#[cfg(feature = "secure")]
mod port_layer;
#[cfg(feature = "secure")]
mod registry;
#[cfg(feature = "secure")]
mod reports;
#[cfg(feature = "secure")]
mod security;
#[cfg(feature = "secure")]
mod table;
#[cfg(feature = "secure")]
mod unknown_keys;

#[cfg(not(feature = "secure"))]
mod absent;

#[cfg(not(feature = "secure"))]
pub(crate) use absent::Security;
#[cfg(feature = "secure")]
pub use control::SecurityControl;
#[cfg(feature = "secure")]
pub(crate) use jobs::{JobQueues, JobRequest};
#[cfg(feature = "secure")]
pub use key_directory::{KeyDirectory, KeyFileError, default_directory, read_public};
#[cfg(feature = "secure")]
pub(crate) use options::read_options;
#[cfg(feature = "secure")]
pub use security::DriverKeys;
#[cfg(feature = "secure")]
pub(crate) use security::{Security, SecuritySpec};
