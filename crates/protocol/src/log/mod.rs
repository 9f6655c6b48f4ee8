//! Logs: three terms of frames and a page of metadata in one file (`docs/spec/shared-memory.md §7, §8`).
//!
//! [`LogBuffers`] is the log; it remembers the numbers that never change and that were checked when it was opened. The
//! operations on it are small modules: publishers append ([`SharedAppender`], [`ExclusiveAppender`]), the sender scans
//! ([`scan`], [`scan_run`]), the receiver inserts and looks for gaps ([`insert`], [`insert_received`], [`contiguous_end`],
//! [`find_gap`], [`fill_gap`]),
//! subscribers poll ([`poll`] and its variants), the conductor rotates, unblocks and cleans (methods of
//! [`LogBuffers`]).
//!
//! # What is trusted
//!
//! Every process that maps the log can write anything anywhere in it. What is read from it is checked before it is
//! used: a frame length must hold its header and end inside the term ([`CorruptFrame`] otherwise), tails are cut at the
//! term's end and must be aligned, counts give a valid partition whatever they are.
//!
//! # What orders what
//!
//! A frame is published by the release store of its positive length, the last write to it; it pairs with the acquire
//! load of the length by readers, the sender, the unblocker. The tail counter only hands out space. The zeros which a
//! publisher that shares its log finds in a recycled term are ordered by the release of the publisher limit (driver, after
//! [`LogBuffers::clean`]) and its acquire (client, before it appends). The empty slot that readers find behind a frame
//! of an image, or of our exclusive publications, is ordered by the release of that frame's length (`vacate`).

mod append;
mod append_block;
mod buffers;
mod claim;
mod clean;
mod clear_ahead;
mod error;
mod exclusive_appender;
mod frame;
mod insert;
mod metadata;
mod poll;
mod scan;
mod shared_appender;
mod spec;
mod tail_snapshot;
mod term_reader;
mod unblock;

pub use append::{AppendError, ReservedValueSupplier};
pub use append_block::BlockError;
pub use buffers::LogBuffers;
pub use claim::FrameClaim;
pub use error::{CorruptFrame, LogError};
pub use exclusive_appender::ExclusiveAppender;
pub use frame::{LogFrame, frame_at};
pub use insert::{Gap, GapScan, contiguous_end, fill_gap, find_gap, insert, insert_received};
pub use metadata::LogMetadata;
pub use poll::{Action, Block, Polled, peek, poll, poll_block, poll_bounded, poll_controlled};
pub use scan::{RunLimit, Scan, SegmentRun, scan, scan_run};
pub use shared_appender::{SharedAppender, Tail};
pub use spec::{
    LOG_METADATA_LENGTH, LogKind, LogSpec, PAGE_SIZE_MAX, PAGE_SIZE_MIN, SocketBufferLengths,
    file_length,
};
pub use tail_snapshot::TailSnapshot;

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
