//! The vocabulary of counters: the system counters, type ids, and the texts and keys of the rest (docs/spec/shared-memory.md §5.6 to 5.10).
//!
//! Keys and labels are what readers in other processes find counters by, so their bytes are part of the contract.
//! Decoders take the 112 bytes of a foreign process and trust none of them.

mod key;
mod label;
mod metric;
mod system;
pub mod type_id;

pub use key::{ChannelKey, HeartbeatKey, KEY_LENGTH, Key, SocketKey, StreamKey};
pub use label::{
    CLIENT_NAME_MAX_LENGTH, CONCURRENT_PUBLISHER_POSITION, EXCLUSIVE_PUBLISHER_POSITION,
    LABEL_LENGTH, StreamCounter, channel_label, heartbeat_label, heartbeat_label_suffix,
    socket_label, stream_label, subscriber_position_label,
};
pub use metric::{Metric, MetricKind, MetricUnit};
pub use system::{LabelSuffix, SystemCounter, SystemLabels};

/// The value of a channel status counter (types 6, 7, 14).
pub mod channel_status {
    /// The channel is being set up.
    pub const INITIALIZING: i64 = 0;
    /// The channel failed and will not recover.
    pub const ERRORED: i64 = -1;
    /// The channel is in use.
    pub const ACTIVE: i64 = 1;
    /// The channel is being closed.
    pub const CLOSING: i64 = 2;
}

/// The counter id that says "there is no such counter", for example the status indicator of an IPC channel.
pub const NULL_COUNTER_ID: i32 = -1;
