// SPDX-License-Identifier: Apache-2.0
//! Counters: the system counters, type ids, and the labels and keys of all others (docs/spec/shared-memory.md §5.6 to
//! 5.10).
//!
//! Readers in other processes find counters by key and label, so their bytes are part of the contract. Decoders
//! validate all of the 112 key bytes, which come from another process.

mod key;
mod label;
mod metric;
mod secure;
mod system;
pub mod type_id;

pub use key::{ChannelKey, HeartbeatKey, KEY_LENGTH, Key, SocketKey, StreamKey};
pub use label::{
    CLIENT_NAME_MAX_LENGTH, CONCURRENT_PUBLISHER_POSITION, EXCLUSIVE_PUBLISHER_POSITION,
    LABEL_LENGTH, StreamCounter, channel_label, heartbeat_label, heartbeat_label_suffix,
    socket_label, stream_label, subscriber_position_label,
};
pub use metric::{Metric, MetricKind, MetricUnit};
pub use secure::{SECURE_CHANNEL_TYPE_ID, SecureCounter};
pub use system::{LabelSuffix, SystemCounter, SystemLabels};

/// Values of a channel status counter (types 6, 7, 14).
pub mod channel_status {
    /// The channel is being initialised.
    pub const INITIALIZING: i64 = 0;
    /// The channel failed permanently.
    pub const ERRORED: i64 = -1;
    /// The channel is active.
    pub const ACTIVE: i64 = 1;
    /// The channel is closing.
    pub const CLOSING: i64 = 2;
}

/// Counter id that means none, for example for the status of an IPC channel.
pub const NULL_COUNTER_ID: i32 = -1;
