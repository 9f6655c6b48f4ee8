// SPDX-License-Identifier: Apache-2.0
//! Files of a member as bytes (`docs/spec/cluster.md` §6.2 and §6.3), compatible with the official ones, with checked decoding and
//! without I/O; and its mark file (§6.4), which is shared memory.
//!
//! A file that cannot be read is an error that names the remedy: never a fresh start, in which a member would forget votes that it
//! gave and entries that it acknowledged.

mod mark;
mod node_state;
mod recording_log;

pub use mark::{
    MARK_ERROR_LOG_LENGTH_MIN, MARK_HEADER_LENGTH, MARK_LIVENESS_TIMEOUT_MS, Mark, MarkComponent,
    MarkError, MarkFile,
};
pub use node_state::{NODE_STATE_FILE_LENGTH, NodeState, NodeStateError};
pub use recording_log::{EntryKind, Patch, RecordingLog, RecordingLogEntry, RecordingLogError};

/// Reads an integer of 4 bytes. The caller has checked the bounds.
fn i32_at(bytes: &[u8], at: usize) -> i32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[at..at + 4]);
    i32::from_le_bytes(value)
}

/// Reads an integer of 8 bytes. The caller has checked the bounds.
fn i64_at(bytes: &[u8], at: usize) -> i64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    i64::from_le_bytes(value)
}
