//! Memory that is shared: regions of bytes, typed overlays on them, and the storage that hands them out.
//!
//! A [`Region`] is a checked view of a mapping. A [`Shared`] is a typed view of a piece of it, declared with
//! [`overlay!`](crate::overlay). A [`Storage`] creates and opens the files behind: real ones ([`FileStorage`]), or
//! memory for tests and simulation ([`MemoryStorage`]).
//!
//! # What is promised
//!
//! Whatever another process writes into a mapping, no access through these types leaves the mapping. Values read from
//! it are untrusted: a length or an offset is checked by whoever uses it.
//!
//! What the types cannot know is which bytes are whose at a given moment: that is decided by the protocol that the
//! bytes carry (a claimed record is its producer's until the length is released). [`Region::bytes`], [`Region::write`],
//! [`Region::zero`] and [`Region::claim`] are for bytes that the protocol gives the caller at that moment. Bytes that a
//! peer may rewrite while they are read (broadcast) go through [`Region::copy_racing_out`] and
//! [`Region::copy_racing_in`].

mod error;
mod insufficient_space;
mod lock;
mod memory_storage;
mod overlay;
mod prefetch;
mod storage;

#[cfg(not(loom))]
mod file_storage;
#[cfg(not(loom))]
mod mapping;
#[cfg(not(loom))]
mod region;
#[cfg(not(loom))]
mod reserve;
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
pub use memory_storage::MemoryStorage;
pub use overlay::{Overlay, OverlayField, Padding};
pub use prefetch::prefetch_value;
pub use region::Region;
#[cfg(loom)]
pub use region::{Claim, Shared};
pub use storage::{CreateOptions, Storage};
#[cfg(not(loom))]
pub use view::{Claim, Shared};

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
