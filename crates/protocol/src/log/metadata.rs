// SPDX-License-Identifier: Apache-2.0
use taran_core::memory::Padding;
use taran_core::overlay;
use taran_core::sync::{AtomicI32, AtomicI64, AtomicU8};

overlay! {
    /// The metadata in the last 4096 bytes of a log. Fields that are written once, before the log is announced, are
    /// accessed relaxed; for the others see their methods in [`LogBuffers`](super::LogBuffers)
    /// (docs/spec/shared-memory.md §7.2).
    pub struct LogMetadata: 4096 {
        /// Raw tails of the three partitions.
        0 => tails: [AtomicI64; 3],
        /// Number of terms since the initial one.
        24 => active_term_count: AtomicI32,
        28 => padding_28: Padding<100>,

        /// End of the stream; `i64::MAX` while it is open.
        128 => end_of_stream_position: AtomicI64,
        /// 1 if the publication has a receiver or subscriber.
        136 => is_connected: AtomicI32,
        /// Images: number of active transports.
        140 => active_transport_count: AtomicI32,
        144 => padding_144: Padding<112>,

        /// Registration id of the publication or correlation id of the image.
        256 => correlation_id: AtomicI64,
        /// Id of the initial term.
        264 => initial_term_id: AtomicI32,
        /// Always 32.
        268 => default_header_length: AtomicI32,
        /// Maximum frame length, aligned.
        272 => mtu: AtomicI32,
        /// Term length in bytes.
        276 => term_length: AtomicI32,
        /// Page size; the file length is a multiple of it.
        280 => page_size: AtomicI32,
        /// Maximum bytes a publisher may be ahead of its consumers.
        284 => publication_window: AtomicI32,
        /// Maximum bytes a receiver accepts ahead of its subscribers.
        288 => receiver_window: AtomicI32,
        /// SO_SNDBUF: of the socket, system default, system maximum.
        292 => send_buffer: [AtomicI32; 3],
        /// SO_RCVBUF likewise.
        304 => receive_buffer: [AtomicI32; 3],
        /// Maximum concurrent retransmits.
        316 => max_resend: AtomicI32,
        /// Template of frame headers, 32 bytes used.
        320 => default_header: Padding<128>,
        /// Entity tag of the channel.
        448 => entity_tag: AtomicI64,
        /// Response correlation id of the channel.
        456 => response_correlation_id: AtomicI64,
        /// Linger time of a drained publication.
        464 => linger_timeout_ns: AtomicI64,
        /// Time an untethered subscriber may stay below the window before it is dropped.
        472 => untethered_window_limit_timeout_ns: AtomicI64,
        /// Time an untethered subscriber rests before it becomes active again.
        480 => untethered_resting_timeout_ns: AtomicI64,
        /// Eight booleans, in the order of [`LogSpec`](super::LogSpec) from `is_group` to `is_tethered`.
        488 => booleans: [AtomicU8; 8],
        /// 1 if the publication was revoked.
        496 => is_revoked: AtomicU8,
        /// See [`LogKind`](super::LogKind).
        497 => kind: AtomicU8,
        498 => padding_498: Padding<2>,
        /// Low and high half of an unaligned 64-bit integer: time an untethered subscriber lingers once dropped.
        500 => untethered_linger_timeout_ns: [AtomicI32; 2],
        508 => padding_508: Padding<3584>,
        /// Taran only, zero in official logs: 1 if the publisher clears the slot after each of its frames itself, so
        /// that the driver need not clean the log.
        4092 => clears_ahead: AtomicI32,
    }
}

/// Offset of the frame header template.
pub(super) const DEFAULT_HEADER_OFFSET: usize = 320;
