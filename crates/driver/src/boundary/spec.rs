// SPDX-License-Identifier: Apache-2.0
//! Specifications of endpoints, publications and images, made by the conductor and passed to an agent.
//!
//! A spec carries every option that its half needs, so that the data path reads no global settings. Times are in
//! nanoseconds, lengths in bytes.

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
pub(crate) struct SendEndpointSpec {
    /// Endpoint id.
    pub(crate) id: EndpointId,
    /// The URI that created the endpoint, for error texts.
    pub(crate) channel: Arc<str>,
    /// Sends all frames; also receives control frames unless `control` is set.
    pub(crate) data: Box<dyn Transport>,
    /// Receives control frames where they need a separate socket (multicast).
    pub(crate) control: Option<Box<dyn Transport>>,
    /// Destinations of `data`.
    pub(crate) destination: Destination,
    /// Time without a status message after which the peer's name is resolved again (docs/spec/wire.md §2.14); `None`
    /// for multicast, response channels and literal addresses.
    pub(crate) re_resolution_timeout_ns: Option<i64>,
    /// Hash seed of the publication table, not predictable by untrusted peers.
    pub(crate) seed: u64,
}

/// Flow control of a publication (docs/spec/wire.md §4).
#[derive(Debug)]
pub(crate) enum SenderFlowControlSpec {
    /// The only receiver, or the fastest of a group, determines the limit.
    Max {
        /// Maximum retransmission as a multiple of the receiver window: `aeron.unicast.flow.control.rrwm`, 16, for one
        /// receiver; `aeron.multicast.flow.control.rrwm`, 4, for a group.
        retransmit_window_multiple: i32,
    },
    /// The slowest relevant receiver determines the limit (`min` and `tagged`).
    Min(MinFlowControlSpec),
    /// A strategy supplied by the embedding application.
    Custom(Box<dyn FlowControl>),
}

/// Min and tagged flow control (docs/spec/wire.md §4.4).
#[derive(Clone, Debug)]
pub(crate) struct MinFlowControlSpec {
    /// Only receivers with this tag are relevant; `None`: all receivers are.
    pub(crate) group_tag: Option<i64>,
    /// Number of relevant receivers required for the publication to be connected.
    pub(crate) min_size: usize,
    /// A receiver without a status message for this time is removed.
    pub(crate) timeout_ns: i64,
    /// Maximum retransmission as a multiple of the receiver window: `aeron.multicast.flow.control.rrwm`, 4.
    pub(crate) retransmit_window_multiple: i32,
    /// `fc-receivers`: the number of relevant receivers.
    pub(crate) receivers: Counter,
    /// Event log for receivers that are added and removed.
    pub(crate) log: StreamLog,
}

/// Retransmission in answer to NAKs (docs/spec/wire.md §3.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RetransmitSpec {
    /// Maximum concurrent retransmit actions: 1 for unicast, else `max-resend`.
    pub(crate) max_actions: usize,
    /// `aeron.retransmit.unicast.delay`, 0.
    pub(crate) delay_ns: i64,
    /// `aeron.retransmit.unicast.linger`, 10 ms: repeated NAKs are ignored for this time.
    pub(crate) linger_ns: i64,
}

/// The sender's half of a network publication.
#[derive(Debug)]
pub(crate) struct SenderPublicationSpec {
    /// Publication id.
    pub(crate) id: PublicationId,
    /// The endpoint that it sends on, added before it.
    pub(crate) endpoint: EndpointId,
    /// Session id.
    pub(crate) session_id: i32,
    /// Stream id.
    pub(crate) stream_id: i32,
    /// The log that clients publish into; it determines initial term id and term length.
    pub(crate) log: LogBuffers,
    /// Position of the first byte to send.
    pub(crate) start_position: i64,
    /// Maximum datagram length.
    pub(crate) mtu: usize,
    /// Multicast TTL sent in SETUP; 0 when not set.
    pub(crate) ttl: i32,
    /// Multicast or multiple destinations: SETUP carries GROUP, and the EOS of one receiver does not end linger.
    pub(crate) is_group: bool,
    /// SETUP requests a response channel (docs/spec/wire.md §2.10).
    pub(crate) wants_response: bool,
    /// URI `eos`: heartbeats carry EOS after the end of the stream.
    pub(crate) signals_end_of_stream: bool,
    /// URI `ssc`: spies advance the sender when there is no receiver.
    pub(crate) spies_simulate_connection: bool,
    /// Flow control strategy.
    pub(crate) flow_control: SenderFlowControlSpec,
    /// Retransmission parameters.
    pub(crate) retransmit: RetransmitSpec,
    /// `aeron.publication.connection.timeout`, 5 s: a receiver without a status message for this time is disconnected.
    pub(crate) connection_timeout_ns: i64,
    /// URI `channel-snd-ts-offset`.
    pub(crate) send_timestamp: Option<SendTimestamp>,
    /// Maximum datagrams per send call; `None`: as many as fit into 64 KiB. (The C driver's
    /// `AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND`, when set explicitly.)
    pub(crate) max_datagrams_per_send: Option<i32>,
    /// `snd-pos`, set to the start position.
    pub(crate) sender_position: Counter,
    /// `snd-lmt`, set to the start position.
    pub(crate) sender_limit: Counter,
    /// `snd-bpe`.
    pub(crate) back_pressure_events: Counter,
    /// `snd-naks-received`.
    pub(crate) naks_received: Counter,
    /// Event log for retransmissions.
    pub(crate) log_events: StreamLog,
    /// State shared with the conductor's half.
    pub(crate) shared: Arc<PublicationShared>,
}

/// One socket of a receive endpoint.
#[derive(Debug)]
pub(crate) struct ReceiveTransportSpec {
    /// Transport id: the registration id of the destination, or of the command that opened the endpoint.
    pub(crate) id: TransportId,
    /// The bound socket.
    pub(crate) transport: Box<dyn Transport>,
    /// Multicast: status messages and NAKs are sent to this group instead of the source.
    pub(crate) control_group: Option<SocketAddr>,
    /// URI `control`: SETUPs are elicited from this address once per second (docs/spec/wire.md §5.3).
    pub(crate) explicit_control: Option<SocketAddr>,
    /// Time without data after which the explicit control address is resolved again; `None`: never.
    pub(crate) re_resolution_timeout_ns: Option<i64>,
    /// True if the receive buffer grows with the windows of the images. False where its length is configured.
    pub(crate) grows: bool,
}

/// A receive endpoint: the sockets of one incoming channel.
#[derive(Debug)]
pub(crate) struct ReceiveEndpointSpec {
    /// Endpoint id.
    pub(crate) id: EndpointId,
    /// The URI that created the endpoint, for error texts.
    pub(crate) channel: Arc<str>,
    /// The sockets; one for a plain subscription.
    pub(crate) transports: Vec<ReceiveTransportSpec>,
    /// URI `control-mode=manual`: transports are added and removed by commands.
    pub(crate) has_destinations: bool,
    /// Receiver id sent in status messages; unique per endpoint, also across drivers.
    pub(crate) receiver_id: i64,
    /// Group tag sent in status messages, if the URI or the driver defines one.
    pub(crate) group_tag: Option<i64>,
    /// URI `media-rcv-ts-offset` and `channel-rcv-ts-offset`.
    pub(crate) timestamps: Option<ReceiveTimestamps>,
    /// `aeron.driver.stream.session.limit`.
    pub(crate) stream_session_limit: usize,
    /// Hash seed of the stream and session tables, not predictable by untrusted peers.
    pub(crate) seed: u64,
}

/// NAK timing for a gap (docs/spec/wire.md §5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NakDelaySpec {
    /// One receiver: a fixed delay before the first NAK and between NAKs.
    Unicast {
        /// `aeron.nak.unicast.delay` or URI `nak-delay`.
        delay_ns: i64,
        /// `delay_ns` times `aeron.nak.unicast.retry.delay.ratio`.
        retry_ns: i64,
    },
    /// Many receivers: a random delay, so that few of them send a NAK.
    Group {
        /// `aeron.nak.multicast.max.backoff`.
        max_backoff_ns: i64,
        /// `aeron.nak.multicast.group.size`.
        group_size: u32,
    },
    /// `reliable=false`: gaps are filled with padding immediately and no NAK is sent.
    Unreliable,
}

/// A subscriber of an image.
#[derive(Clone, Debug)]
pub(crate) struct SubscriberPosition {
    /// Its `sub-pos`.
    pub(crate) position: Counter,
}

/// The receiver's half of an image.
#[derive(Debug)]
pub(crate) struct ReceiverImageSpec {
    /// Image id.
    pub(crate) id: ImageId,
    /// The endpoint that requested it.
    pub(crate) endpoint: EndpointId,
    /// The transport that received the SETUP.
    pub(crate) transport: TransportId,
    /// Session id.
    pub(crate) session_id: i32,
    /// Stream id.
    pub(crate) stream_id: i32,
    /// The log that subscribers read; it determines initial term id and term length.
    pub(crate) log: LogBuffers,
    /// Position of the first expected byte.
    pub(crate) join_position: i64,
    /// Sender's MTU.
    pub(crate) mtu: usize,
    /// Destination of status messages and NAKs.
    pub(crate) control: SocketAddr,
    /// NAK timing, or unreliable.
    pub(crate) nak_delay: NakDelaySpec,
    /// Maximum receiver window: that of the channel.
    pub(crate) window: i32,
    /// Congestion control, which determines the current window.
    pub(crate) congestion_control: Box<dyn CongestionControl>,
    /// `aeron.rcv.status.message.timeout`, 200 ms.
    pub(crate) status_message_timeout_ns: i64,
    /// `aeron.image.liveness.timeout`, 10 s.
    pub(crate) liveness_timeout_ns: i64,
    /// Subscription channel, for the loss report.
    pub(crate) channel: Arc<str>,
    /// `ip:port` of the source, for the loss report.
    pub(crate) source_identity: Arc<str>,
    /// `rcv-hwm`, set to the join position.
    pub(crate) high_water_mark: Counter,
    /// `rcv-pos`, set to the join position.
    pub(crate) rebuild_position: Counter,
    /// `rcv-naks-sent`.
    pub(crate) naks_sent: Counter,
    /// The subscribers, at the join position; at least one.
    pub(crate) subscribers: Vec<SubscriberPosition>,
    /// Seed of the random NAK delay.
    pub(crate) seed: u64,
    /// State shared with the conductor's half; created with the same join position and window.
    pub(crate) shared: Arc<ImageShared>,
}
