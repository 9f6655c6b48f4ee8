// SPDX-License-Identifier: Apache-2.0
//! Log buffers: three terms of frames and a page of metadata in one file (docs/spec/shared-memory.md §7, §8).
//!
//! [`LogBuffers`] is the log. It keeps copies of the constant metadata, validated when the log is opened. The
//! operations are grouped by their caller:
//!
//! * publishers append: [`SharedAppender`], [`ExclusiveAppender`];
//! * the sender scans: [`scan`], [`scan_run`];
//! * the receiver inserts packets and finds gaps: [`insert`], [`insert_received`], [`contiguous_end`], [`find_gap`],
//!   [`fill_gap`];
//! * subscribers poll: [`poll`] and its variants;
//! * the conductor rotates, unblocks and cleans: methods of [`LogBuffers`].
//!
//! # Trust
//!
//! Every process that maps the log can write any bytes to it, so every value is validated before use. A frame must be
//! at least as long as its header and end inside the term ([`CorruptFrame`] otherwise). Tails are clamped to the end of
//! the term and must be aligned. Any term count yields a valid partition.
//!
//! # Memory ordering
//!
//! The release store of a positive frame length, the last write to a frame, publishes it. It pairs with the acquire
//! load of the length by readers, the sender and the unblocker. The tail counter only allocates space. The zeros that a
//! shared publisher relies on in a recycled term are ordered by the release of the publisher limit (driver, after
//! [`LogBuffers::clean`]) and its acquire (client, before it appends). The zero length after a frame of an image, or of
//! our exclusive publications, is ordered by the release of that frame's length (`clear_ahead`).

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
pub use clear_ahead::CLEAR_DISTANCE;
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
