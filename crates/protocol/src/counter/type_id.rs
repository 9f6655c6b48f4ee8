// SPDX-License-Identifier: Apache-2.0
//! Type ids of counters allocated by driver and clients (docs/spec/shared-memory.md §5.7).

/// System counter, see [`SystemCounter`](super::SystemCounter).
pub const SYSTEM: i32 = 0;
/// `pub-lmt`: limit up to which a publisher may write.
pub const PUBLISHER_LIMIT: i32 = 1;
/// `snd-pos`: position of the sender.
pub const SENDER_POSITION: i32 = 2;
/// `rcv-hwm`: highest position received, including gaps.
pub const RECEIVER_HIGH_WATER_MARK: i32 = 3;
/// `sub-pos`: position of a subscriber, written by the client.
pub const SUBSCRIBER_POSITION: i32 = 4;
/// `rcv-pos`: position up to which an image is contiguous.
pub const RECEIVER_POSITION: i32 = 5;
/// `snd-channel`: status of a send channel endpoint.
pub const SEND_CHANNEL_STATUS: i32 = 6;
/// `rcv-channel`: status of a receive channel endpoint.
pub const RECEIVE_CHANNEL_STATUS: i32 = 7;
/// `snd-lmt`: limit up to which the sender may send.
pub const SENDER_LIMIT: i32 = 9;
/// Congestion control values of an image.
pub const PER_IMAGE: i32 = 10;
/// `client-heartbeat`: time in milliseconds since the epoch, written by the client.
pub const CLIENT_HEARTBEAT: i32 = 11;
/// `pub-pos (concurrent)` or `pub-pos (exclusive)`: position of the publisher, sampled by the driver.
pub const PUBLISHER_POSITION: i32 = 12;
/// `snd-bpe`: back-pressure events of the sender.
pub const SENDER_BACK_PRESSURE_EVENTS: i32 = 13;
/// `snd-local-sockaddr` or `rcv-local-sockaddr`: local address of a channel.
pub const LOCAL_SOCKET_ADDRESS: i32 = 14;
/// Number of neighbors of the name resolver.
pub const RESOLVER_NEIGHBORS: i32 = 15;
/// Number of cache entries of the name resolver.
pub const RESOLVER_CACHE_ENTRIES: i32 = 16;
/// `fc-receivers`: receivers tracked by flow control.
pub const FLOW_CONTROL_RECEIVERS: i32 = 17;
/// `mdc-num-dest`: destinations of a multi-destination publication.
pub const MDC_DESTINATIONS: i32 = 18;
/// `snd-naks-received`: NAKs received for a publication.
pub const SENDER_NAKS_RECEIVED: i32 = 19;
/// `rcv-naks-sent`: NAKs sent for an image.
pub const RECEIVER_NAKS_SENT: i32 = 20;
/// Bootstrap neighbor of the name resolver: 1 while it is known and alive.
pub const RESOLVER_BOOTSTRAP_NEIGHBOR: i32 = 21;
/// Current address of a name of the `csv_table` resolver.
pub const NAME_TABLE_ENTRY: i32 = 2001;

/// First type id for applications. Lower ids are reserved for Aeron and Taran.
pub const FIRST_USER_TYPE_ID: i32 = 1000;
