//! Type ids of the counters that driver and clients allocate (docs/spec/shared-memory.md §5.7).

/// A system counter, see [`SystemCounter`](super::SystemCounter).
pub const SYSTEM: i32 = 0;
/// `pub-lmt`: the position up to which a publisher may write.
pub const PUBLISHER_LIMIT: i32 = 1;
/// `snd-pos`: the position the sender has reached.
pub const SENDER_POSITION: i32 = 2;
/// `rcv-hwm`: the highest position received, gaps included.
pub const RECEIVER_HIGH_WATER_MARK: i32 = 3;
/// `sub-pos`: the position a subscriber has reached; written by the client.
pub const SUBSCRIBER_POSITION: i32 = 4;
/// `rcv-pos`: the position up to which an image has no gaps.
pub const RECEIVER_POSITION: i32 = 5;
/// `snd-channel`: the status of a send channel.
pub const SEND_CHANNEL_STATUS: i32 = 6;
/// `rcv-channel`: the status of a receive channel.
pub const RECEIVE_CHANNEL_STATUS: i32 = 7;
/// `snd-lmt`: the position up to which the sender may send.
pub const SENDER_LIMIT: i32 = 9;
/// Values of a congestion control, by image.
pub const PER_IMAGE: i32 = 10;
/// `client-heartbeat`: epoch milliseconds, written by the client.
pub const CLIENT_HEARTBEAT: i32 = 11;
/// `pub-pos (concurrent)` or `pub-pos (exclusive)`: the publisher's position, sampled by the driver.
pub const PUBLISHER_POSITION: i32 = 12;
/// `snd-bpe`: back-pressure events of a sender.
pub const SENDER_BACK_PRESSURE_EVENTS: i32 = 13;
/// `snd-local-sockaddr` or `rcv-local-sockaddr`: an address a channel is bound to.
pub const LOCAL_SOCKET_ADDRESS: i32 = 14;
/// Number of neighbours of the name resolver.
pub const RESOLVER_NEIGHBORS: i32 = 15;
/// Number of cache entries of the name resolver.
pub const RESOLVER_CACHE_ENTRIES: i32 = 16;
/// `fc-receivers`: receivers tracked by a flow control.
pub const FLOW_CONTROL_RECEIVERS: i32 = 17;
/// `mdc-num-dest`: destinations of a multi-destination publication.
pub const MDC_DESTINATIONS: i32 = 18;
/// `snd-naks-received`: NAKs received for a publication.
pub const SENDER_NAKS_RECEIVED: i32 = 19;
/// `rcv-naks-sent`: NAKs sent for an image.
pub const RECEIVER_NAKS_SENT: i32 = 20;
/// A bootstrap neighbour of the name resolver: 1 while it is known and alive.
pub const RESOLVER_BOOTSTRAP_NEIGHBOR: i32 = 21;
/// What a name of the `csv_table` resolver stands for.
pub const NAME_TABLE_ENTRY: i32 = 2001;

/// Ids below this one are reserved for Aeron and Taran.
pub const FIRST_USER_TYPE_ID: i32 = 1000;
