//! What the conductor decides about endpoints, publications and images before it hands them to an agent.
//!
//! A spec carries every option its half needs, so that no half looks at a global context on the road. Times are
//! nanoseconds, lengths are bytes.

use std::net::SocketAddr;
use std::sync::Arc;

use taran_core::counters::Counter;
use taran_net::Transport;
use taran_protocol::log::LogBuffers;

use crate::congestion::CongestionControl;
use crate::timestamps::{ReceiveTimestamps, SendTimestamp};

use super::{
    Destination, EndpointId, ImageId, ImageShared, PublicationId, PublicationShared, TransportId,
};
use crate::sender::{FlowControl, StreamLog};

/// A send endpoint: the socket or sockets of one outgoing channel.
#[derive(Debug)]
pub struct SendEndpointSpec {
    /// Identity.
    pub id: EndpointId,
    /// The URI that created it, for error texts.
    pub channel: Arc<str>,
    /// Sends everything; also receives control frames unless `control` is there.
    pub data: Box<dyn Transport>,
    /// Receives control frames where that needs a socket of its own (multicast).
    pub control: Option<Box<dyn Transport>>,
    /// Where `data` sends to.
    pub destination: Destination,
    /// Tell the conductor to resolve the peer's name again after this time without a status message (docs/spec/wire.md §2.14);
    /// `None` for multicast, response channels and literal addresses.
    pub unheard_timeout_ns: Option<i64>,
    /// Chance for the table of publications, that strangers cannot guess.
    pub seed: u64,
}

/// Which flow control a publication uses (docs/spec/wire.md §4).
#[derive(Debug)]
pub enum FlowControlSpec {
    /// The only receiver, or the fastest of a group, sets the limit.
    Max {
        /// Largest retransmission as a multiple of the receiver window: `aeron.unicast.flow.control.rrwm`, 16, for one
        /// receiver; `aeron.multicast.flow.control.rrwm`, 4, for a group.
        retransmit_window_multiple: i32,
    },
    /// The slowest receiver that counts sets the limit.
    Slowest(SlowestSpec),
    /// One from outside of the driver.
    Custom(Box<dyn FlowControl>),
}

/// Flow control by the slowest receiver (docs/spec/wire.md §4.4).
#[derive(Clone, Debug)]
pub struct SlowestSpec {
    /// Only receivers with this tag count; `None`: all do.
    pub group_tag: Option<i64>,
    /// Receivers needed for the publication to be connected.
    pub min_size: usize,
    /// A receiver not heard for so long is waited for no longer.
    pub timeout_ns: i64,
    /// Largest retransmission as a multiple of the receiver window: `aeron.multicast.flow.control.rrwm`, 4.
    pub retransmit_window_multiple: i32,
    /// `fc-receivers`: how many count.
    pub receivers: Counter,
    /// Told of their comings and goings.
    pub log: StreamLog,
}

/// How a publication answers NAKs (docs/spec/wire.md §3.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetransmitSpec {
    /// Concurrent actions: 1 for unicast, else `max-resend`.
    pub max_actions: usize,
    /// `aeron.retransmit.unicast.delay`, 0.
    pub delay_ns: i64,
    /// `aeron.retransmit.unicast.linger`, 10 ms: repeated NAKs are ignored this long.
    pub linger_ns: i64,
}

/// The sender's half of a network publication.
#[derive(Debug)]
pub struct SenderPublicationSpec {
    /// Identity.
    pub id: PublicationId,
    /// The endpoint it sends on, added before it.
    pub endpoint: EndpointId,
    /// Session.
    pub session_id: i32,
    /// Stream.
    pub stream_id: i32,
    /// The log the clients publish into; initial term id and term length come from it.
    pub log: LogBuffers,
    /// Position of the first byte to send.
    pub start_position: i64,
    /// Largest datagram.
    pub mtu: usize,
    /// Multicast TTL told in SETUP, 0 when not set.
    pub ttl: i32,
    /// Multicast or multi-destination: SETUP carries GROUP, an EOS from one receiver is not the end.
    pub is_group: bool,
    /// SETUP asks for a response channel (docs/spec/wire.md §2.10).
    pub wants_response: bool,
    /// It is a response itself: it goes to who asks for its SETUP.
    pub is_response: bool,
    /// URI `eos`: heartbeats carry EOS once the stream ended.
    pub signals_end_of_stream: bool,
    /// URI `ssc`: spies move the sender when there is no receiver.
    pub spies_simulate_connection: bool,
    /// Flow control.
    pub flow_control: FlowControlSpec,
    /// Retransmission.
    pub retransmit: RetransmitSpec,
    /// `aeron.publication.connection.timeout`, 5 s: a receiver not heard for so long is gone.
    pub connection_timeout_ns: i64,
    /// URI `channel-snd-ts-offset`.
    pub send_timestamp: Option<SendTimestamp>,
    /// Most datagrams of one call that sends; `None`: as many as make 64 KiB. (The C driver's
    /// `AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND`, when it was set explicitly.)
    pub max_datagrams_per_send: Option<i32>,
    /// `snd-pos`, at the start position.
    pub sender_position: Counter,
    /// `snd-lmt`, at the start position.
    pub sender_limit: Counter,
    /// `snd-bpe`.
    pub back_pressure_events: Counter,
    /// `snd-naks-received`.
    pub naks_received: Counter,
    /// Told of what is sent again.
    pub log_events: StreamLog,
    /// Shared with the conductor's half.
    pub shared: Arc<PublicationShared>,
}

/// One socket of a receive endpoint.
#[derive(Debug)]
pub struct ReceiveTransportSpec {
    /// Identity: the registration id of the destination, or of what the endpoint was opened for.
    pub id: TransportId,
    /// The bound socket.
    pub transport: Box<dyn Transport>,
    /// Multicast: status messages and NAKs go to this group instead of the source.
    pub control_group: Option<SocketAddr>,
    /// URI `control`: SETUPs are elicited from here once a second (docs/spec/wire.md §5.3).
    pub explicit_control: Option<SocketAddr>,
    /// Tell the conductor to resolve the explicit control address again after this time without data; `None`: never.
    pub unheard_timeout_ns: Option<i64>,
    /// The receive buffer grows with what may be under way to images. Not where somebody has said how long it is to be.
    pub grows: bool,
}

/// A receive endpoint: the sockets of one incoming channel.
#[derive(Debug)]
pub struct ReceiveEndpointSpec {
    /// Identity.
    pub id: EndpointId,
    /// The URI that created it, for error texts.
    pub channel: Arc<str>,
    /// One for a plain subscription.
    pub transports: Vec<ReceiveTransportSpec>,
    /// URI `control-mode=manual`: transports are added and removed later.
    pub has_destinations: bool,
    /// Told in status messages; unique per endpoint, also across drivers.
    pub receiver_id: i64,
    /// Told in status messages, when the URI or the driver names one.
    pub group_tag: Option<i64>,
    /// URI `media-rcv-ts-offset` and `channel-rcv-ts-offset`.
    pub timestamps: Option<ReceiveTimestamps>,
    /// `aeron.driver.stream.session.limit`.
    pub stream_session_limit: usize,
    /// Chance for the tables of streams and sessions, that strangers cannot guess.
    pub seed: u64,
}

/// When a gap is NAKed (docs/spec/wire.md §5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NakDelaySpec {
    /// One receiver: after a fixed delay, then again after a fixed delay.
    Unicast {
        /// `aeron.nak.unicast.delay` or URI `nak-delay`.
        delay_ns: i64,
        /// Delay times `aeron.nak.unicast.retry.delay.ratio`.
        retry_ns: i64,
    },
    /// Many receivers: a random delay, so that few of them speak.
    Group {
        /// `aeron.nak.multicast.max.backoff`.
        max_backoff_ns: i64,
        /// `aeron.nak.multicast.group.size`.
        group_size: u32,
    },
    /// `reliable=false`: gaps are filled with padding at once, nothing is NAKed.
    Unreliable,
}

/// A subscriber of an image.
#[derive(Clone, Debug)]
pub struct SubscriberPosition {
    /// Its `sub-pos`.
    pub position: Counter,
}

/// The receiver's half of an image.
#[derive(Debug)]
pub struct ReceiverImageSpec {
    /// Identity.
    pub id: ImageId,
    /// The endpoint that asked for it.
    pub endpoint: EndpointId,
    /// The transport the SETUP came in on.
    pub transport: TransportId,
    /// Session.
    pub session_id: i32,
    /// Stream.
    pub stream_id: i32,
    /// The log subscribers read; initial term id and term length come from it.
    pub log: LogBuffers,
    /// Position of the first byte expected.
    pub join_position: i64,
    /// Sender's MTU.
    pub mtu: usize,
    /// Where status messages and NAKs go.
    pub control: SocketAddr,
    /// When gaps are NAKed, and whether at all.
    pub nak_delay: NakDelaySpec,
    /// How much may be under way to it at most: the channel's receiver window.
    pub window: i32,
    /// How much of that may be now.
    pub congestion_control: Box<dyn CongestionControl>,
    /// `aeron.rcv.status.message.timeout`, 200 ms.
    pub status_message_timeout_ns: i64,
    /// `aeron.image.liveness.timeout`, 10 s.
    pub liveness_timeout_ns: i64,
    /// Subscription channel, for the loss report.
    pub channel: Arc<str>,
    /// `ip:port` of the source, for the loss report.
    pub source_identity: Arc<str>,
    /// `rcv-hwm`, at the join position.
    pub high_water_mark: Counter,
    /// `rcv-pos`, at the join position.
    pub rebuild_position: Counter,
    /// `rcv-naks-sent`.
    pub naks_sent: Counter,
    /// The subscribers, at the join position; at least one.
    pub subscribers: Vec<SubscriberPosition>,
    /// Seed of the random NAK delay.
    pub seed: u64,
    /// Shared with the conductor's half; made with the same join position and window.
    pub shared: Arc<ImageShared>,
}
