// SPDX-License-Identifier: Apache-2.0
//! Type ids of the counters of an archive (`docs/spec/archive.md` §4.6).

/// Recorded position of an active recording.
pub const RECORDING_POSITION: i32 = 100;
/// Number of errors.
pub const ERRORS: i32 = 101;
/// Number of open control sessions.
pub const CONTROL_SESSIONS: i32 = 102;
/// Longest duty cycle of an agent, in nanoseconds.
pub const MAX_CYCLE_TIME: i32 = 103;
/// Number of duty cycles of an agent above the threshold.
pub const CYCLE_TIME_EXCEEDED: i32 = 104;
/// Longest write of the recorder, in nanoseconds.
pub const RECORDER_MAX_WRITE_TIME: i32 = 105;
/// Bytes that the recorder has written.
pub const RECORDER_TOTAL_WRITE_BYTES: i32 = 106;
/// Time that the recorder has spent on writes, in nanoseconds.
pub const RECORDER_TOTAL_WRITE_TIME: i32 = 107;
/// Longest read of the replayer, in nanoseconds.
pub const REPLAYER_MAX_READ_TIME: i32 = 108;
/// Bytes that the replayer has read.
pub const REPLAYER_TOTAL_READ_BYTES: i32 = 109;
/// Time that the replayer has spent on reads, in nanoseconds.
pub const REPLAYER_TOTAL_READ_TIME: i32 = 110;
/// Number of active recordings.
pub const RECORDING_SESSIONS: i32 = 111;
/// Number of active replays.
pub const REPLAY_SESSIONS: i32 = 112;
/// A control session.
pub const CONTROL_SESSION: i32 = 113;
/// Number of recordings held back by a full disk. The types from here on are Taran's own.
pub const HELD_RECORDINGS: i32 = 2101;
/// Number of purges by retention.
pub const PURGED_BY_RETENTION: i32 = 2102;
/// A client's: position up to which a named consumer has read a recording.
pub const CONSUMER_POSITION: i32 = 2103;
/// Number of recordings unavailable until the next start.
pub const UNAVAILABLE_RECORDINGS: i32 = 2104;
/// Number of recordings found damaged by verification.
pub const DAMAGED_RECORDINGS: i32 = 2105;
/// Bytes verified in the background.
pub const VERIFIED_BYTES: i32 = 2106;
