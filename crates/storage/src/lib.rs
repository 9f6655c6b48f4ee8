// SPDX-License-Identifier: Apache-2.0
//! Files and directories with explicit durability behind one interface, and an asynchronous queue for them.
//!
//! [`Disk`] and [`DiskFile`] are the interface: positional reads and writes, sync, names and their sync, reserved space,
//! locks. [`OsDisk`] implements it for Linux; the simulator has a disk that loses what was not synced, tears writes,
//! fills up, fails and rots. Nothing here knows a record format.
//!
//! [`DiskQueue`] is for agents, which must not wait for a device: [`Request`]s go in with their buffers, [`Completion`]s
//! come out. [`ThreadedQueue`] executes them on threads, [`InlineQueue`] on the caller's thread in virtual time, with the
//! same code for order, group commit and failures.
//!
//! # Example
//!
//! Appends a record to a new log and acknowledges it when it is durable:
//!
//! ```
//! use std::path::PathBuf;
//! use std::sync::Arc;
//! use taran_storage::{
//!     AlignedBuf, Disk, DiskQueue, OpenOptions, OsDisk, Request, SyncKind, ThreadedQueue,
//!     ThreadedQueueOptions,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory: PathBuf = std::env::temp_dir().join(format!("taran-storage-doc-{}", std::process::id()));
//! let disk: Arc<dyn Disk> = Arc::new(OsDisk);
//! disk.create_directory(&directory)?;
//! // Another process that uses this directory is an error now, and its end is known at once.
//! let _lock = disk.try_lock(&directory)?;
//!
//! // At start waiting is allowed: create the file with its space, and make its name durable.
//! let options = OpenOptions::create_new().with_allocate(64 * 1024);
//! let file = disk.open(&directory.join("0.log"), options)?;
//! disk.sync_directory(&directory)?;
//!
//! // From now on only requests. Three of them are in flight at a time.
//! let mut queue = ThreadedQueue::start(&disk, &ThreadedQueueOptions::default())?;
//! let file = queue.attach(file);
//! let mut buffer = AlignedBuf::new(4096);
//! buffer[..6].copy_from_slice(b"record");
//! let write = Request::Write { file: file.clone(), offset: 0, buffer, range: 0..6 };
//! queue.submit(1, write)?;
//! queue.submit(2, Request::Sync { file: file.clone(), kind: SyncKind::Data })?;
//! queue.submit(3, Request::Close { file })?;
//!
//! let mut durable = false;
//! while queue.in_flight() > 0 {
//!     // An agent polls once per duty cycle.
//!     while let Some(completion) = queue.poll(0) {
//!         completion.result?;
//!         if completion.token == 2 {
//!             durable = true; // acknowledge the record
//!         }
//!     }
//!     std::thread::yield_now();
//! }
//! assert!(durable);
//! # drop(queue);
//! # std::fs::remove_dir_all(&directory)?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod buffer;
#[doc(hidden)]
pub mod conformance;
mod disk;
mod error;
mod os;
mod queue;

pub use buffer::{ALIGNMENT, AlignedBuf};
pub use disk::{
    Advice, Create, DirEntry, Disk, DiskFile, DiskLock, FileKind, Metadata, OpenOptions, Space,
    SyncKind,
};
pub use error::{DiskError, ErrorKind, Operation};
pub use os::OsDisk;
pub use queue::{
    Completion, DiskQueue, InlineQueue, Outcome, QueuedFile, RejectReason, Rejected, Request,
    ServiceTime, ServiceTimes, ThreadedQueue, ThreadedQueueOptions, WritePart,
};
pub use taran_core::agent::AgentWaker;
