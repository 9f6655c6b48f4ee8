// SPDX-License-Identifier: Apache-2.0
//! The loss report, file `loss-report.dat` (docs/spec/shared-memory.md §6.2).
//!
//! One entry per image. [`LossReport`] creates entries; the agent that detects the loss then updates its [`LossEntry`]
//! without locks. [`read`] reads a report, from any process.

mod reader;
mod report;

pub use reader::{LossObservation, read};
pub use report::{LossEntry, LossReport};

use crate::overlay;
use crate::sync::{AtomicI32, AtomicI64};

const ALIGNMENT: usize = 64;
/// Offset of the length of the channel; its text follows.
const CHANNEL_OFFSET: usize = 40;
const LENGTH_FIELD: usize = 4;

overlay! {
    /// The head of an entry; channel and source follow, each a length and a text.
    struct Header: 40 {
        /// Zero ends the report. The first is stored last, with release, which publishes the rest.
        0 => count: AtomicI64,
        8 => bytes_lost: AtomicI64,
        16 => first_ms: AtomicI64,
        24 => last_ms: AtomicI64,
        32 => session_id: AtomicI32,
        36 => stream_id: AtomicI32,
    }
}

/// Offset of the source's length in an entry with a channel of that length.
fn source_offset(channel_length: usize) -> usize {
    CHANNEL_OFFSET + (LENGTH_FIELD + channel_length).next_multiple_of(4)
}

/// Length of an entry, which is a multiple of 64.
fn entry_length(channel_length: usize, source_length: usize) -> usize {
    (source_offset(channel_length) + LENGTH_FIELD + source_length).next_multiple_of(ALIGNMENT)
}
