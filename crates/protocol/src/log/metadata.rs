use taran_core::memory::Padding;
use taran_core::overlay;
use taran_core::sync::{AtomicI32, AtomicI64, AtomicU8};

overlay! {
    /// The last 4096 bytes of a log (`docs/spec/shared-memory.md §7.2`). Fields that are written once, before anyone is told of the log,
    /// are accessed relaxed; the others as their methods in [`LogBuffers`](super::LogBuffers) say.
    pub struct LogMetadata: 4096 {
        /// Raw tails of the three partitions.
        0 => tails: [AtomicI64; 3],
        /// Terms since the first one.
        24 => active_term_count: AtomicI32,
        28 => padding_28: Padding<100>,

        /// Where the stream ends; `i64::MAX` while it goes on.
        128 => end_of_stream_position: AtomicI64,
        /// 1 if somebody receives.
        136 => is_connected: AtomicI32,
        /// Images: transports heard of lately.
        140 => active_transport_count: AtomicI32,
        144 => padding_144: Padding<112>,

        /// Registration id of the publication, correlation id of the image.
        256 => correlation_id: AtomicI64,
        /// Id of the first term.
        264 => initial_term_id: AtomicI32,
        /// 32.
        268 => default_header_length: AtomicI32,
        /// Largest frame, aligned.
        272 => mtu: AtomicI32,
        /// Bytes in a term.
        276 => term_length: AtomicI32,
        /// The file length is a multiple of it.
        280 => page_size: AtomicI32,
        /// Bytes a publisher may be ahead of its consumers.
        284 => publication_window: AtomicI32,
        /// Bytes a receiver accepts ahead of its subscribers.
        288 => receiver_window: AtomicI32,
        /// SO_SNDBUF: of the socket, default of the system, maximum of the system.
        292 => send_buffer: [AtomicI32; 3],
        /// SO_RCVBUF likewise.
        304 => receive_buffer: [AtomicI32; 3],
        /// Concurrent retransmissions.
        316 => max_resend: AtomicI32,
        /// Template of frame headers, 32 bytes used.
        320 => default_header: Padding<128>,
        /// Entity tag of the channel.
        448 => entity_tag: AtomicI64,
        /// Response correlation id of the channel.
        456 => response_correlation_id: AtomicI64,
        /// How long a drained publication stays.
        464 => linger_timeout_ns: AtomicI64,
        /// When an untethered subscriber that lags is let go.
        472 => untethered_window_limit_timeout_ns: AtomicI64,
        /// When it may come back.
        480 => untethered_resting_timeout_ns: AtomicI64,
        /// Eight booleans, in the order of [`LogSpec`](super::LogSpec) from `is_group` to `is_tethered`.
        488 => booleans: [AtomicU8; 8],
        /// 1 if the publication was revoked.
        496 => is_revoked: AtomicU8,
        /// See [`LogKind`](super::LogKind).
        497 => kind: AtomicU8,
        498 => padding_498: Padding<2>,
        /// Low and high half of a 64-bit integer that is not aligned: how long a subscriber lingers once let go.
        500 => untethered_linger_timeout_ns: [AtomicI32; 2],
        508 => padding_508: Padding<3584>,
        /// Ours alone, zero in official logs: 1 if the publisher empties the slot behind each of its frames itself, so
        /// that nobody has to clean the log for it.
        4092 => clears_ahead: AtomicI32,
    }
}

/// Offset of the template of frame headers.
pub(super) const DEFAULT_HEADER_OFFSET: usize = 320;
