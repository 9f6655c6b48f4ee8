// SPDX-License-Identifier: Apache-2.0
//! Shared memory: regions of bytes, typed overlays on them, and the storage that provides them.
//!
//! A [`Region`] is a checked view of a mapping. A [`Shared`] is a typed view of a piece of it, declared with
//! [`overlay!`](crate::overlay). A [`Storage`] creates and opens the files: real ones ([`FileStorage`]), or
//! memory for tests and simulation ([`MemoryStorage`]).
//!
//! # Guarantees
//!
//! No access through these types leaves the mapping, regardless of what another process writes into it. Values read
//! from a mapping are untrusted: callers check lengths and offsets before they use them.
//!
//! The types do not track which bytes belong to which party at a given moment: the protocol of the data decides that (a
//! claimed record belongs to its producer until the length is released). [`Region::bytes`], [`Region::write`],
//! [`Region::zero`] and [`Region::claim`] are for bytes that belong to the caller by the protocol. Bytes that a
//! peer may rewrite while they are read (broadcast) go through [`Region::copy_racing_out`] and
//! [`Region::copy_racing_in`].

mod error;
mod insufficient_space;
mod lock;
mod lock_file;
mod memory_storage;
mod overlay;
mod prefetch;
mod storage;
mod write_back;

#[cfg(not(loom))]
mod file_storage;
#[cfg(not(loom))]
mod mapping;
#[cfg(not(loom))]
mod region;
#[cfg(not(loom))]
mod reserve;
#[cfg(not(loom))]
mod stored_file;
#[cfg(not(loom))]
mod view;

#[cfg(loom)]
#[path = "model.rs"]
mod region;

pub use error::{MemoryError, OutOfBounds};
#[cfg(not(loom))]
pub use file_storage::FileStorage;
pub use insufficient_space::InsufficientSpace;
pub use lock::DirectoryLock;
pub use lock_file::{LockFile, LockProbe};
pub use memory_storage::MemoryStorage;
pub use overlay::{Overlay, OverlayField, Padding};
pub use prefetch::prefetch_value;
pub use region::Region;
#[cfg(loom)]
pub use region::{Claim, Shared};
pub use storage::{CreateOptions, Storage};
#[cfg(not(loom))]
pub use stored_file::StoredFile;
#[cfg(not(loom))]
pub use view::{Claim, Shared};
pub use write_back::start_write_back;

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
