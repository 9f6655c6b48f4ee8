// SPDX-License-Identifier: Apache-2.0
//! Table of options, one row each (docs/spec/uri-and-configuration.md §2, §3).
//!
//! A row consists of variant, getter, scope, kind, property, environment variable, default, status and help. For
//! options that only the C driver has, and only as a variable, the property name is derived from the variable.

use super::choices::{
    ARCHIVE_DISK_FULL, ARCHIVE_THREADING_MODE, ARCHIVE_VERIFY_DAMAGE, AUTHENTICATOR, AUTHORISATION,
    CHECKSUM, CLUSTER_CLOCK, CLUSTER_TIMERS, CONGESTION_CONTROL, EVENT_CLOCK, FALLBACK_LOGGER,
    GROUP, MULTICAST_FLOW_CONTROL, MULTICAST_STRATEGY, NAME_RESOLVER, PROFILE, RANDOM, SECURE_MODE,
    TERMINATION_VALIDATOR, THREADING_MODE, UNICAST_FLOW_CONTROL, UNICAST_STRATEGY,
};
use super::kind::{Affinity, Form, Kind, Value};
use super::set::OptionSet;
use super::spec::{OptionSpec, Scope, Status};

const K: i64 = 1024;
const M: i64 = 1024 * K;
const G: i64 = 1024 * M;
const UNLIMITED: i64 = i64::MAX;
const INT_MAX: i64 = i32::MAX as i64;
const INT_MIN: i64 = i32::MIN as i64;
/// Minimum of durations that must not be zero.
const US: i64 = 1_000;
const MS: i64 = 1_000_000;
const NAME_LENGTH: usize = 4095;

const FEEDBACK: &str = "application-specific feedback was replaced by the group tag: use aeron.receiver.group.tag and tagged flow \
     control";
const LIBRARIES: &str = "no other libraries are loaded into this driver; a program that embeds the driver supplies its own \
     implementations in DriverContext";
const CLASSES: &str = "Java classes cannot run in this driver; a program that embeds the driver supplies its own implementations in \
     DriverContext";
const SYNC_LEVEL: &str = "the files of a member are always flushed, and the official module ignores this option, too: \
     aeron.archive.file.sync.level determines the durability of the log";
const TIMERS: &str = "there is no timer wheel: timers fire at their deadlines";
const STANDBY: &str = "there is no standby whose snapshots a member could take";
const EXTENSIONS: &str = "the consensus module has no extensions";
const SERVICES: &str = "Java classes cannot run in this container; --service names a service of the command, and a program \
     that embeds ServiceContainer supplies its own";

macro_rules! kind {
    (bool) => {
        Kind::Bool
    };
    (size $min:expr, $max:expr) => {
        Kind::Size {
            min: $min,
            max: $max,
            form: Form::Any,
        }
    };
    (size $min:expr, $max:expr, $form:expr) => {
        Kind::Size {
            min: $min,
            max: $max,
            form: $form,
        }
    };
    (duration $min:expr) => {
        Kind::Duration { min: $min }
    };
    (optional_duration $min:expr) => {
        Kind::Duration { min: $min }
    };
    (millis) => {
        Kind::Millis
    };
    (int $min:expr, $max:expr) => {
        Kind::Int {
            min: $min,
            max: $max,
        }
    };
    (optional_int $min:expr, $max:expr) => {
        Kind::Int {
            min: $min,
            max: $max,
        }
    };
    (text) => {
        Kind::Text { max: NAME_LENGTH }
    };
    (text $max:expr) => {
        Kind::Text { max: $max }
    };
    (choice $choices:expr) => {
        Kind::Choice($choices)
    };
    (idle) => {
        Kind::Idle
    };
    (ports) => {
        Kind::Ports
    };
    (affinity) => {
        Kind::Affinity
    };
    (events) => {
        Kind::Events
    };
    (archive_events) => {
        Kind::ArchiveEvents
    };
}

// A value of another type would mean that kind and getter of a row disagree, which a test excludes. The getters then
// return a neutral value.
macro_rules! getter {
    ($getter:ident $variant:ident $help:literal bool) => {
        #[doc = $help]
        #[must_use]
        pub fn $getter(&self) -> bool {
            matches!(self.value(OptionId::$variant), Value::Bool(true))
        }
    };
    ($getter:ident $variant:ident $help:literal size) => {
        #[doc = concat!($help, " (bytes)")]
        #[must_use]
        pub fn $getter(&self) -> usize {
            self.integer(OptionId::$variant)
                .and_then(|n| usize::try_from(n).ok())
                .unwrap_or(0)
        }
    };
    ($getter:ident $variant:ident $help:literal duration) => {
        #[doc = concat!($help, " (nanoseconds)")]
        #[must_use]
        pub fn $getter(&self) -> i64 {
            self.integer(OptionId::$variant).unwrap_or(0)
        }
    };
    ($getter:ident $variant:ident $help:literal optional_duration) => {
        #[doc = concat!($help, " (nanoseconds)")]
        #[must_use]
        pub fn $getter(&self) -> Option<i64> {
            self.integer(OptionId::$variant)
        }
    };
    ($getter:ident $variant:ident $help:literal millis) => {
        #[doc = concat!($help, " (milliseconds)")]
        #[must_use]
        pub fn $getter(&self) -> i64 {
            self.integer(OptionId::$variant).unwrap_or(0)
        }
    };
    ($getter:ident $variant:ident $help:literal int) => {
        #[doc = $help]
        #[must_use]
        pub fn $getter(&self) -> i64 {
            self.integer(OptionId::$variant).unwrap_or(0)
        }
    };
    ($getter:ident $variant:ident $help:literal optional_int) => {
        #[doc = $help]
        #[must_use]
        pub fn $getter(&self) -> Option<i64> {
            self.integer(OptionId::$variant)
        }
    };
    ($getter:ident $variant:ident $help:literal choice) => {
        #[doc = $help]
        #[must_use]
        pub fn $getter(&self) -> &'static str {
            match self.value(OptionId::$variant) {
                Value::Choice(name) => name,
                _ => "",
            }
        }
    };
    ($getter:ident $variant:ident $help:literal ports) => {
        #[doc = $help]
        #[must_use]
        pub fn $getter(&self) -> (u16, u16) {
            match self.value(OptionId::$variant) {
                Value::Ports(low, high) => (*low, *high),
                _ => (0, 0),
            }
        }
    };
    ($getter:ident $variant:ident $help:literal affinity) => {
        #[doc = $help]
        #[must_use]
        pub fn $getter(&self) -> Affinity {
            match self.value(OptionId::$variant) {
                Value::Affinity(affinity) => *affinity,
                _ => Affinity::None,
            }
        }
    };
    // text and idle
    ($getter:ident $variant:ident $help:literal $text:ident) => {
        #[doc = $help]
        #[must_use]
        pub fn $getter(&self) -> Option<&str> {
            match self.value(OptionId::$variant) {
                Value::Text(text) => Some(text),
                _ => None,
            }
        }
    };
}

macro_rules! options {
    ($($variant:ident $getter:ident: $scope:ident $kind:ident $(($($range:expr),*))?
        $property:literal $variable:literal = $default:literal $(, fixed $reason:expr)?, $help:literal;)*) => {
        /// Identifier of an option.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum OptionId {
            $(#[doc = concat!("`", $property, "`: ", $help)] $variant,)*
        }

        impl OptionId {
            /// Declarations of all options.
            pub const ALL: &'static [OptionSpec] = &[
                $(OptionSpec {
                    id: OptionId::$variant,
                    scope: Scope::$scope,
                    property: $property,
                    variable: $variable,
                    kind: kind!($kind $($($range),*)?),
                    default: $default,
                    status: options!(@status $($reason)?),
                    help: $help,
                },)*
            ];
        }

        impl OptionSet {
            $(getter!($getter $variant $help $kind);)*
        }
    };
    (@status) => { Status::Supported };
    (@status $reason:expr) => { Status::Fixed($reason) };
}

impl OptionId {
    /// Returns the declaration of the option.
    #[must_use]
    pub fn spec(self) -> &'static OptionSpec {
        &Self::ALL[self as usize]
    }
}

options! {
    Profile profile_name: Driver choice(PROFILE) "taran.profile" "TARAN_PROFILE" = "balanced",
        "preset of option values; every other option overrides it";

    // Directory and files (§2.2)
    Dir dir: Both text "aeron.dir" "AERON_DIR" = "",
        "Aeron directory; unset means /dev/shm/aeron-USER";
    DirMode dir_mode: Driver text "taran.dir.mode" "TARAN_DIR_MODE" = "",
        "octal mode of the Aeron directory, such as 0750, and without x of its files; unset means 0777 and 0666 less the umask";
    DirGroup dir_group: Driver text "taran.dir.group" "TARAN_DIR_GROUP" = "",
        "name or number of the group of the Aeron directory and its files; unset means that of the process";
    DirWarnIfExists dir_warn_if_exists: Driver bool "aeron.dir.warn.if.exists" "AERON_DIR_WARN_IF_EXISTS" = "false",
        "warn if the Aeron directory exists at start";
    DirDeleteOnStart dir_delete_on_start: Driver bool "aeron.dir.delete.on.start" "AERON_DIR_DELETE_ON_START" = "false",
        "delete an existing Aeron directory at start, even if a driver or client uses it";
    DirDeleteOnShutdown dir_delete_on_shutdown: Driver bool "aeron.dir.delete.on.shutdown" "AERON_DIR_DELETE_ON_SHUTDOWN" = "false",
        "delete the Aeron directory at shutdown";
    DriverTimeout driver_timeout_ms: Both millis "aeron.driver.timeout" "AERON_DRIVER_TIMEOUT" = "10000",
        "heartbeat age above which a driver is considered dead";
    PrintConfiguration print_configuration: Driver bool "aeron.print.configuration" "AERON_PRINT_CONFIGURATION" = "false",
        "print all option values at start";
    EnableExperimentalFeatures enable_experimental_features: Both bool "aeron.enable.experimental.features" "AERON_ENABLE_EXPERIMENTAL_FEATURES" = "false",
        "enable experimental features; there are none";
    FilePageSize file_page_size: Driver size(4 * K, G, Form::PowerOfTwo) "aeron.file.page.size" "AERON_FILE_PAGE_SIZE" = "4k",
        "page size to which file lengths are rounded up";
    PerformStorageChecks perform_storage_checks: Driver bool "aeron.perform.storage.checks" "AERON_PERFORM_STORAGE_CHECKS" = "true",
        "reject a log if the storage has no space for its full length";
    LowFileStoreWarningThreshold low_file_store_warning_threshold: Driver size(0, UNLIMITED) "aeron.low.file.store.warning.threshold" "AERON_LOW_FILE_STORE_WARNING_THRESHOLD" = "160m",
        "usable storage space at or below which a warning is written to the error log";

    // Buffers (§2.3)
    ConductorBufferLength conductor_buffer_length: Driver size(M + 768, INT_MAX, Form::PowerOfTwoAnd(768)) "aeron.conductor.buffer.length" "AERON_CONDUCTOR_BUFFER_LENGTH" = "1049344",
        "length of the to-driver command ring buffer, including its trailer";
    ClientsBufferLength clients_buffer_length: Driver size(M + 128, INT_MAX, Form::PowerOfTwoAnd(128)) "aeron.clients.buffer.length" "AERON_CLIENTS_BUFFER_LENGTH" = "1048704",
        "length of the to-clients broadcast buffer, including its trailer";
    CountersBufferLength counters_buffer_length: Driver size(M, 500 * M) "aeron.counters.buffer.length" "AERON_COUNTERS_BUFFER_LENGTH" = "8m",
        "length of the counter values buffer, 128 bytes per counter; the metadata buffer is four times as long";
    ErrorBufferLength error_buffer_length: Driver size(4 * M, INT_MAX) "aeron.error.buffer.length" "AERON_ERROR_BUFFER_LENGTH" = "4m",
        "length of the distinct error log";
    LossReportBufferLength loss_report_buffer_length: Driver size(K, INT_MAX) "aeron.loss.report.buffer.length" "AERON_LOSS_REPORT_BUFFER_LENGTH" = "1m",
        "length of the loss report";
    TermBufferLength term_buffer_length: Driver size(64 * K, G, Form::PowerOfTwo) "aeron.term.buffer.length" "AERON_TERM_BUFFER_LENGTH" = "16m",
        "length of each of the three term buffers of a UDP publication";
    IpcTermBufferLength ipc_term_buffer_length: Driver size(64 * K, G, Form::PowerOfTwo) "aeron.ipc.term.buffer.length" "AERON_IPC_TERM_BUFFER_LENGTH" = "64m",
        "length of each of the three term buffers of an IPC publication";
    TermBufferSparseFile term_buffer_sparse_file: Driver bool "aeron.term.buffer.sparse.file" "AERON_TERM_BUFFER_SPARSE_FILE" = "true",
        "true: pages of log files are reserved as the stream proceeds; false: all are reserved and touched at creation";

    // Publication (§2.4)
    MtuLength mtu_length: Driver size(64, 65504, Form::MultipleOf(32)) "aeron.mtu.length" "AERON_MTU_LENGTH" = "1408",
        "maximum frame length and datagram payload of UDP publications";
    IpcMtuLength ipc_mtu_length: Driver size(64, 65504, Form::MultipleOf(32)) "aeron.ipc.mtu.length" "AERON_IPC_MTU_LENGTH" = "1408",
        "maximum frame length of IPC publications";
    PublicationTermWindowLength publication_term_window_length: Driver size(0, G) "aeron.publication.term.window.length" "AERON_PUBLICATION_TERM_WINDOW_LENGTH" = "0",
        "maximum bytes a UDP publisher may be ahead of its consumers; 0 means half a term, the upper limit";
    IpcPublicationTermWindowLength ipc_publication_term_window_length: Driver size(0, G) "aeron.ipc.publication.term.window.length" "AERON_IPC_PUBLICATION_TERM_WINDOW_LENGTH" = "0",
        "maximum bytes an IPC publisher may be ahead of its consumers; 0 means half a term, the upper limit";
    PublicationLingerTimeout publication_linger_timeout_ns: Driver duration(US) "aeron.publication.linger.timeout" "AERON_PUBLICATION_LINGER_TIMEOUT" = "5s",
        "time a drained publication lingers to serve late retransmit requests";
    PublicationUnblockTimeout publication_unblock_timeout_ns: Driver duration(US) "aeron.publication.unblock.timeout" "AERON_PUBLICATION_UNBLOCK_TIMEOUT" = "15s",
        "time after which a claimed but uncommitted frame is unblocked with padding";
    PublicationConnectionTimeout publication_connection_timeout_ns: Driver duration(US) "aeron.publication.connection.timeout" "AERON_PUBLICATION_CONNECTION_TIMEOUT" = "5s",
        "time without status messages after which a publication is no longer connected";
    SpiesSimulateConnection spies_simulate_connection: Driver bool "aeron.spies.simulate.connection" "AERON_SPIES_SIMULATE_CONNECTION" = "false",
        "spies alone make a publication connected";
    ReservedSessionIdLow publication_reserved_session_id_low: Driver int(INT_MIN, INT_MAX) "aeron.publication.reserved.session.id.low" "AERON_PUBLICATION_RESERVED_SESSION_ID_LOW" = "-1",
        "lowest session id of the reserved range, which is never generated";
    ReservedSessionIdHigh publication_reserved_session_id_high: Driver int(INT_MIN, INT_MAX) "aeron.publication.reserved.session.id.high" "AERON_PUBLICATION_RESERVED_SESSION_ID_HIGH" = "1000",
        "highest session id of the reserved range, which is never generated";
    MaxResend max_resend: Driver int(1, 256) "aeron.max.resend" "AERON_MAX_RESEND" = "16",
        "maximum concurrent retransmits of a publication to multiple receivers";
    RetransmitUnicastDelay retransmit_unicast_delay_ns: Driver duration(0) "aeron.retransmit.unicast.delay" "AERON_RETRANSMIT_UNICAST_DELAY" = "0",
        "delay before a requested retransmit";
    RetransmitUnicastLinger retransmit_unicast_linger_ns: Driver duration(US) "aeron.retransmit.unicast.linger" "AERON_RETRANSMIT_UNICAST_LINGER" = "10ms",
        "time during which repeated requests for the same retransmit are ignored";

    // Network and sockets (§2.5)
    NetworkBackend network_backend: Driver text "taran.net" "TARAN_NET" = "",
        "network backend of channels that name none with their parameter taran.net; unset means the first one of the driver";
    SecureMode secure_mode_name: Driver choice(SECURE_MODE) "taran.secure.mode" "TARAN_SECURE_MODE" = "off",
        "transport security: off, for the channels that ask for it (channels), or for every UDP channel (all)";
    SecureAllowPlain secure_allow_plain: Driver text "taran.secure.allow.plain" "TARAN_SECURE_ALLOW_PLAIN" = "",
        "addresses and streams that may be plain with taran.secure=false although the mode is all: ADDRESS[:PORTS][#STREAMS], separated by commas";
    SecureKeysDir secure_keys_dir: Driver text "taran.secure.keys.dir" "TARAN_SECURE_KEYS_DIR" = "",
        "directory with the driver's identity and its trust file; unset means that of the command taran keys";
    SecureSuites secure_suites: Driver text "taran.secure.suites" "TARAN_SECURE_SUITES" = "aes-256-gcm,aes-128-gcm,chacha20-poly1305",
        "allowed cipher suites in order of preference, separated by commas";
    SecureRotateInterval secure_rotate_interval_ns: Driver duration(60_000 * MS) "taran.secure.rotate.interval" "TARAN_SECURE_ROTATE_INTERVAL" = "3600s",
        "interval at which stream and back keys are rotated; at most 43200s";
    SecureRotateOnLeave secure_rotate_on_leave: Driver bool "taran.secure.rotate.on.leave" "TARAN_SECURE_ROTATE_ON_LEAVE" = "false",
        "rotate the keys of its streams when a receiver leaves";
    SecureLinkLifetime secure_link_lifetime_ns: Driver duration(60_000 * MS) "taran.secure.link.lifetime" "TARAN_SECURE_LINK_LIFETIME" = "3600s",
        "time after which the link between two drivers makes a new handshake";
    SecureHandshakeRate secure_handshake_rate: Driver int(2, 100_000) "taran.secure.handshake.rate" "TARAN_SECURE_HANDSHAKE_RATE" = "100",
        "handshakes that are answered in a second";
    SocketReceiveBuffer socket_so_rcvbuf: Driver size(0, INT_MAX) "aeron.socket.so_rcvbuf" "AERON_SOCKET_SO_RCVBUF" = "128k",
        "SO_RCVBUF of sockets; 0 keeps the system default; if not set explicitly, it grows with the receiver windows of the socket's streams";
    SocketSendBuffer socket_so_sndbuf: Driver size(0, INT_MAX) "aeron.socket.so_sndbuf" "AERON_SOCKET_SO_SNDBUF" = "0",
        "SO_SNDBUF of sockets; 0 keeps the system default";
    SocketMulticastTtl socket_multicast_ttl: Driver int(0, 255) "aeron.socket.multicast.ttl" "AERON_SOCKET_MULTICAST_TTL" = "0",
        "time to live of multicast datagrams; 0 keeps the system default";
    SendToStatusPollRatio send_to_status_poll_ratio: Driver int(1, 255) "aeron.send.to.status.poll.ratio" "AERON_SEND_TO_STATUS_POLL_RATIO" = "6",
        "sender duty cycles per poll of its control sockets, while data is sent";
    SenderWildcardPortRange sender_wildcard_port_range: Driver ports "aeron.sender.wildcard.port.range" "AERON_SENDER_WILDCARD_PORT_RANGE" = "0 0",
        "port range for publications whose control address has port 0";
    ReceiverWildcardPortRange receiver_wildcard_port_range: Driver ports "aeron.receiver.wildcard.port.range" "AERON_RECEIVER_WILDCARD_PORT_RANGE" = "0 0",
        "port range for subscriptions whose endpoint has port 0";
    DriverConnect driver_connect: Driver bool "aeron.driver.connect" "AERON_DRIVER_CONNECT" = "true",
        "connect sockets that send to a single peer";
    ReceiverIoVectorCapacity receiver_io_vector_capacity: Driver int(1, 16) "aeron.receiver.io.vector.capacity" "AERON_RECEIVER_IO_VECTOR_CAPACITY" = "4",
        "maximum datagrams per receive call";
    SenderIoVectorCapacity sender_io_vector_capacity: Driver int(1, 16) "aeron.sender.io.vector.capacity" "AERON_SENDER_IO_VECTOR_CAPACITY" = "4",
        "maximum datagrams per send call";
    MaxMessagesPerSend network_publication_max_messages_per_send: Driver int(1, 16) "aeron.network.publication.max.messages.per.send" "AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND" = "4",
        "maximum datagrams sent for one publication per duty cycle";
    TransportBindings udp_channel_transport_bindings: Driver text "aeron.udp.channel.transport.bindings.media" "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA" = "default", fixed LIBRARIES,
        "socket implementation";
    ConductorTransportBindings conductor_udp_channel_transport_bindings: Driver text "aeron.conductor.udp.channel.transport.bindings.media" "AERON_CONDUCTOR_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA" = "default", fixed LIBRARIES,
        "socket implementation of the conductor";
    OutgoingInterceptors udp_channel_outgoing_interceptors: Driver text "aeron.udp.channel.outgoing.interceptors" "AERON_UDP_CHANNEL_OUTGOING_INTERCEPTORS" = "",
        "interceptors of outgoing datagrams: loss, fixed-loss, multi-gap-loss";
    IncomingInterceptors udp_channel_incoming_interceptors: Driver text "aeron.udp.channel.incoming.interceptors" "AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS" = "",
        "interceptors of incoming datagrams: loss, fixed-loss, multi-gap-loss";
    LossArgs transport_bindings_loss_args: Driver text "aeron.udp.channel.transport.bindings.loss.args" "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS" = "",
        "arguments of the loss interceptor";
    FixedLossArgs transport_bindings_fixed_loss_args: Driver text "aeron.udp.channel.transport.bindings.fixed.loss.args" "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_FIXED_LOSS_ARGS" = "",
        "arguments of the fixed-loss interceptor";
    MultiGapLossArgs transport_bindings_multi_gap_loss_args: Driver text "aeron.udp.channel.transport.bindings.multi.gap.loss.args" "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MULTI_GAP_LOSS_ARGS" = "",
        "arguments of the multi-gap-loss interceptor";
    SendChannelEndpointSupplier send_channel_endpoint_supplier: Driver text "aeron.SendChannelEndpoint.supplier" "AERON_SENDCHANNELENDPOINT_SUPPLIER" = "io.aeron.driver.DefaultSendChannelEndpointSupplier", fixed CLASSES,
        "send channel endpoint implementation";
    ReceiveChannelEndpointSupplier receive_channel_endpoint_supplier: Driver text "aeron.ReceiveChannelEndpoint.supplier" "AERON_RECEIVECHANNELENDPOINT_SUPPLIER" = "io.aeron.driver.DefaultReceiveChannelEndpointSupplier", fixed CLASSES,
        "receive channel endpoint implementation";

    // Receiver, congestion control, loss (§2.6)
    InitialWindowLength rcv_initial_window_length: Driver size(256, INT_MAX) "aeron.rcv.initial.window.length" "AERON_RCV_INITIAL_WINDOW_LENGTH" = "128k",
        "initial receiver window, at most SO_RCVBUF and half a term";
    StatusMessageTimeout rcv_status_message_timeout_ns: Driver duration(US) "aeron.rcv.status.message.timeout" "AERON_RCV_STATUS_MESSAGE_TIMEOUT" = "200ms",
        "maximum interval between status messages";
    ImageLivenessTimeout image_liveness_timeout_ns: Driver duration(US) "aeron.image.liveness.timeout" "AERON_IMAGE_LIVENESS_TIMEOUT" = "10s",
        "time without data or heartbeats after which an image becomes unavailable";
    ReliableStream reliable_stream: Driver bool "aeron.reliable.stream" "AERON_RELIABLE_STREAM" = "true",
        "retransmit lost frames; false fills gaps with padding";
    RejoinStream rejoin_stream: Driver bool "aeron.rejoin.stream" "AERON_REJOIN_STREAM" = "true",
        "accept a stream again after its image became unavailable";
    TetherSubscriptions tether_subscriptions: Driver bool "aeron.tether.subscriptions" "AERON_TETHER_SUBSCRIPTIONS" = "true",
        "tether subscribers; false drops a slow subscriber instead of letting it hold back the stream";
    ReceiverGroupConsideration receiver_group_consideration: Driver choice(GROUP) "aeron.receiver.group.consideration" "AERON_RECEIVER_GROUP_CONSIDERATION" = "infer",
        "whether receivers consider themselves part of a group, which affects NAK delays";
    ReceiverGroupTag receiver_group_tag: Driver optional_int(i64::MIN, i64::MAX) "aeron.receiver.group.tag" "AERON_RECEIVER_GROUP_TAG" = "",
        "group tag sent in status messages";
    CongestionControlSupplier congestion_control_supplier: Driver choice(CONGESTION_CONTROL) "aeron.CongestionControl.supplier" "AERON_CONGESTIONCONTROL_SUPPLIER" = "default",
        "congestion control of images; default follows the channel's cc, which is static if unset";
    CubicMeasureRtt cubic_measure_rtt: Driver bool "aeron.CubicCongestionControl.measureRtt" "AERON_CUBICCONGESTIONCONTROL_MEASURERTT" = "false",
        "measure the round-trip time in CUBIC congestion control";
    CubicInitialRtt cubic_initial_rtt_ns: Driver duration(0) "aeron.CubicCongestionControl.initialRtt" "AERON_CUBICCONGESTIONCONTROL_INITIALRTT" = "100us",
        "initial round-trip time of CUBIC congestion control";
    CubicTcpMode cubic_tcp_mode: Driver bool "aeron.CubicCongestionControl.tcpMode" "AERON_CUBICCONGESTIONCONTROL_TCPMODE" = "false",
        "TCP-friendly mode of CUBIC congestion control";
    NakUnicastDelay nak_unicast_delay_ns: Driver duration(US) "aeron.nak.unicast.delay" "AERON_NAK_UNICAST_DELAY" = "1us",
        "delay before the first NAK for a gap on unicast channels";
    NakUnicastRetryDelayRatio nak_unicast_retry_delay_ratio: Driver int(1, UNLIMITED) "aeron.nak.unicast.retry.delay.ratio" "AERON_NAK_UNICAST_RETRY_DELAY_RATIO" = "100",
        "delay before a repeated NAK, as a multiple of the NAK delay";
    NakMulticastGroupSize nak_multicast_group_size: Driver int(1, INT_MAX) "aeron.nak.multicast.group.size" "AERON_NAK_MULTICAST_GROUP_SIZE" = "10",
        "assumed number of receivers in a multicast group, for NAK suppression";
    NakMulticastMaxBackoff nak_multicast_max_backoff_ns: Driver duration(US) "aeron.nak.multicast.max.backoff" "AERON_NAK_MULTICAST_MAX_BACKOFF" = "10ms",
        "maximum NAK backoff on multicast channels";
    StreamSessionLimit stream_session_limit: Driver int(1, INT_MAX) "aeron.driver.stream.session.limit" "AERON_DRIVER_STREAM_SESSION_LIMIT" = "2147483647",
        "maximum number of sessions per stream of an endpoint";
    PendingImagesSourceLimit pending_images_source_limit: Driver size(M, UNLIMITED) "taran.pending.images.source.limit" "TARAN_PENDING_IMAGES_SOURCE_LIMIT" = "1g",
        "maximum bytes reserved for images from one source address that have received nothing yet, at most an eighth of the file system; a SETUP beyond is refused";
    PendingImagesStreamLimit pending_images_stream_limit: Driver size(M, UNLIMITED) "taran.pending.images.stream.limit" "TARAN_PENDING_IMAGES_STREAM_LIMIT" = "2g",
        "maximum bytes reserved for images of one subscribed stream that have received nothing yet, at most a quarter of the file system; a SETUP beyond is refused";

    // Flow control (§2.7)
    UnicastFlowControlSupplier unicast_flow_control_supplier: Driver choice(UNICAST_FLOW_CONTROL) "aeron.unicast.FlowControl.supplier" "AERON_UNICAST_FLOWCONTROL_SUPPLIER" = "unicast_max",
        "flow control supplier of unicast publications";
    MulticastFlowControlSupplier multicast_flow_control_supplier: Driver choice(MULTICAST_FLOW_CONTROL) "aeron.multicast.FlowControl.supplier" "AERON_MULTICAST_FLOWCONTROL_SUPPLIER" = "multicast_max",
        "flow control supplier of publications to multiple receivers whose channel does not set fc";
    UnicastFlowControlStrategy unicast_flow_control_strategy: Driver choice(UNICAST_STRATEGY) "aeron.unicast.flow.control.strategy" "AERON_UNICAST_FLOW_CONTROL_STRATEGY" = "io.aeron.driver.UnicastFlowControl",
        "flow control class of unicast publications";
    MulticastFlowControlStrategy multicast_flow_control_strategy: Driver choice(MULTICAST_STRATEGY) "aeron.multicast.flow.control.strategy" "AERON_MULTICAST_FLOW_CONTROL_STRATEGY" = "io.aeron.driver.MaxMulticastFlowControl",
        "flow control class of publications to multiple receivers";
    FlowControlReceiverTimeout flow_control_receiver_timeout_ns: Driver duration(0) "aeron.flow.control.receiver.timeout" "AERON_FLOW_CONTROL_RECEIVER_TIMEOUT" = "5s",
        "time without status messages after which flow control removes a receiver";
    FlowControlGroupTag flow_control_group_tag: Driver int(i64::MIN, i64::MAX) "aeron.flow.control.group.tag" "AERON_FLOW_CONTROL_GROUP_TAG" = "-1",
        "group tag of the receivers that tagged flow control considers";
    FlowControlGroupMinSize flow_control_group_min_size: Driver int(0, INT_MAX) "aeron.flow.control.group.min.size" "AERON_FLOW_CONTROL_GROUP_MIN_SIZE" = "0",
        "minimum number of receivers for a publication with group flow control to be connected";
    UnicastWindowMultiple unicast_flow_control_rrwm: Driver int(1, INT_MAX) "aeron.unicast.flow.control.rrwm" "AERON_UNICAST_FLOW_CONTROL_RRWM" = "16",
        "maximum retransmit range of unicast publications, in receiver windows";
    MulticastWindowMultiple multicast_flow_control_rrwm: Driver int(1, INT_MAX) "aeron.multicast.flow.control.rrwm" "AERON_MULTICAST_FLOW_CONTROL_RRWM" = "4",
        "maximum retransmit range of publications to multiple receivers, in receiver windows";
    PreferredFlowControlAsf preferred_flow_control_asf: Driver text "aeron.PreferredMulticastFlowControl.asf" "AERON_PREFERREDMULTICASTFLOWCONTROL_ASF" = "", fixed FEEDBACK,
        "deprecated: use tagged flow control";
    ApplicationSpecificFeedback application_specific_feedback: Driver text "aeron.flow.control.sm.applicationSpecificFeedback" "AERON_FLOW_CONTROL_SM_APPLICATIONSPECIFICFEEDBACK" = "", fixed FEEDBACK,
        "deprecated: use the group tag";

    // Liveness, timers, resources (§2.8)
    TimerInterval timer_interval_ns: Driver duration(US) "aeron.timer.interval" "AERON_TIMER_INTERVAL" = "1s",
        "interval at which the conductor checks timeouts";
    ClientLivenessTimeout client_liveness_timeout_ns: Driver duration(US) "aeron.client.liveness.timeout" "AERON_CLIENT_LIVENESS_TIMEOUT" = "10s",
        "time without a heartbeat after which a client is closed";
    CountersFreeToReuseTimeout counters_free_to_reuse_timeout_ns: Driver duration(0) "aeron.counters.free.to.reuse.timeout" "AERON_COUNTERS_FREE_TO_REUSE_TIMEOUT" = "1s",
        "time before the id of a freed counter is reused";
    UntetheredWindowLimitTimeout untethered_window_limit_timeout_ns: Driver duration(0) "aeron.untethered.window.limit.timeout" "AERON_UNTETHERED_WINDOW_LIMIT_TIMEOUT" = "5s",
        "time an untethered subscriber may stay below the window before it is dropped";
    UntetheredLingerTimeout untethered_linger_timeout_ns: Driver optional_duration(0) "aeron.untethered.linger.timeout" "AERON_UNTETHERED_LINGER_TIMEOUT" = "",
        "time a dropped untethered subscriber lingers; unset means the window limit timeout";
    UntetheredRestingTimeout untethered_resting_timeout_ns: Driver duration(0) "aeron.untethered.resting.timeout" "AERON_UNTETHERED_RESTING_TIMEOUT" = "10s",
        "time an untethered subscriber rests before it becomes active again";
    ResourceFreeLimit driver_resource_free_limit: Driver int(1, INT_MAX) "aeron.driver.resource.free.limit" "AERON_DRIVER_RESOURCE_FREE_LIMIT" = "10",
        "maximum files freed per conductor duty cycle";
    ConductorCycleThreshold conductor_cycle_threshold_ns: Driver duration(0) "aeron.driver.conductor.cycle.threshold" "AERON_DRIVER_CONDUCTOR_CYCLE_THRESHOLD" = "100ms",
        "duration above which conductor duty cycles are counted";
    SenderCycleThreshold sender_cycle_threshold_ns: Driver duration(0) "aeron.driver.sender.cycle.threshold" "AERON_DRIVER_SENDER_CYCLE_THRESHOLD" = "100ms",
        "duration above which sender duty cycles are counted";
    ReceiverCycleThreshold receiver_cycle_threshold_ns: Driver duration(0) "aeron.driver.receiver.cycle.threshold" "AERON_DRIVER_RECEIVER_CYCLE_THRESHOLD" = "100ms",
        "duration above which receiver duty cycles are counted";
    NameResolverThreshold name_resolver_threshold_ns: Driver duration(0) "aeron.name.resolver.threshold" "AERON_DRIVER_NAME_RESOLVER_THRESHOLD" = "5s",
        "duration above which name resolutions are counted";

    // Name resolution (§2.9)
    ResolverName resolver_name: Driver text "aeron.driver.resolver.name" "AERON_DRIVER_RESOLVER_NAME" = "",
        "name of this driver for name resolution between drivers";
    ResolverInterface resolver_interface: Driver text "aeron.driver.resolver.interface" "AERON_DRIVER_RESOLVER_INTERFACE" = "",
        "local address for name resolution between drivers";
    ResolverBootstrapNeighbor resolver_bootstrap_neighbor: Driver text "aeron.driver.resolver.bootstrap.neighbor" "AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR" = "",
        "addresses of the initial neighbors for name resolution between drivers";
    NameResolverSupplier name_resolver_supplier: Driver choice(NAME_RESOLVER) "aeron.name.resolver.supplier" "AERON_NAME_RESOLVER_SUPPLIER" = "default",
        "name resolver used before the system resolver";
    NameResolverInitArgs name_resolver_init_args: Driver text "aeron.name.resolver.init.args" "AERON_NAME_RESOLVER_INIT_ARGS" = "",
        "arguments of the name resolver";
    NameResolverCsvTable name_resolver_csv_lookup_table_args: Driver text "aeron.name.resolver.csv.lookup.table.args" "AERON_NAME_RESOLVER_CSV_LOOKUP_TABLE_ARGS" = "",
        "ignored; the official drivers do not read it either";
    ResolverNeighborTimeout resolver_neighbor_timeout_ns: Driver duration(MS) "aeron.driver.resolver.neighbor.timeout" "AERON_DRIVER_RESOLVER_NEIGHBOR_TIMEOUT" = "10s",
        "time without an update after which a neighbor is removed";
    ResolverSelfInterval resolver_self_resolution_interval_ns: Driver duration(MS) "aeron.driver.resolver.self.resolution.interval" "AERON_DRIVER_RESOLVER_SELF_RESOLUTION_INTERVAL" = "1s",
        "interval at which the driver announces its own name";
    ResolverNeighborInterval resolver_neighbor_resolution_interval_ns: Driver duration(MS) "aeron.driver.resolver.neighbor.resolution.interval" "AERON_DRIVER_RESOLVER_NEIGHBOR_RESOLUTION_INTERVAL" = "2s",
        "interval at which the driver announces its known neighbors";
    ResolverBootstrapInterval resolver_bootstrap_neighbor_resolution_interval_ns: Driver duration(MS) "aeron.driver.resolver.bootstrap.neighbor.resolution.interval" "AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR_RESOLUTION_INTERVAL" = "10s",
        "interval at which the bootstrap neighbors are resolved again";
    ReResolutionCheckInterval re_resolution_check_interval_ns: Driver duration(0) "aeron.driver.reresolution.check.interval" "AERON_DRIVER_RERESOLUTION_CHECK_INTERVAL" = "1s",
        "interval at which host names of silent peers are resolved again; 0 disables it";

    // Threading and idling (§2.10)
    ThreadingMode threading_mode_name: Driver choice(THREADING_MODE) "aeron.threading.mode" "AERON_THREADING_MODE" = "DEDICATED",
        "threading mode: which agents share a thread";
    ConductorIdleStrategy conductor_idle_strategy: Driver idle "aeron.conductor.idle.strategy" "AERON_CONDUCTOR_IDLE_STRATEGY" = "backoff",
        "idle strategy of the conductor thread";
    ConductorIdleStrategyInitArgs conductor_idle_strategy_init_args: Driver text "aeron.conductor.idle.strategy.init.args" "AERON_CONDUCTOR_IDLE_STRATEGY_INIT_ARGS" = "",
        "arguments of the conductor idle strategy";
    SenderIdleStrategy sender_idle_strategy: Driver idle "aeron.sender.idle.strategy" "AERON_SENDER_IDLE_STRATEGY" = "backoff",
        "idle strategy of the sender thread";
    SenderIdleStrategyInitArgs sender_idle_strategy_init_args: Driver text "aeron.sender.idle.strategy.init.args" "AERON_SENDER_IDLE_STRATEGY_INIT_ARGS" = "",
        "arguments of the sender idle strategy";
    ReceiverIdleStrategy receiver_idle_strategy: Driver idle "aeron.receiver.idle.strategy" "AERON_RECEIVER_IDLE_STRATEGY" = "backoff",
        "idle strategy of the receiver thread";
    ReceiverIdleStrategyInitArgs receiver_idle_strategy_init_args: Driver text "aeron.receiver.idle.strategy.init.args" "AERON_RECEIVER_IDLE_STRATEGY_INIT_ARGS" = "",
        "arguments of the receiver idle strategy";
    SharedNetworkIdleStrategy sharednetwork_idle_strategy: Driver idle "aeron.sharednetwork.idle.strategy" "AERON_SHAREDNETWORK_IDLE_STRATEGY" = "backoff",
        "idle strategy of the thread shared by sender and receiver (SHARED_NETWORK)";
    SharedNetworkIdleStrategyInitArgs sharednetwork_idle_strategy_init_args: Driver text "aeron.sharednetwork.idle.strategy.init.args" "AERON_SHAREDNETWORK_IDLE_STRATEGY_INIT_ARGS" = "",
        "arguments of the shared network idle strategy";
    SharedIdleStrategy shared_idle_strategy: Driver idle "aeron.shared.idle.strategy" "AERON_SHARED_IDLE_STRATEGY" = "backoff",
        "idle strategy of the thread shared by all agents (SHARED)";
    SharedIdleStrategyInitArgs shared_idle_strategy_init_args: Driver text "aeron.shared.idle.strategy.init.args" "AERON_SHARED_IDLE_STRATEGY_INIT_ARGS" = "",
        "arguments of the shared idle strategy";
    AsyncExecutorEnabled async_executor_enabled: Driver bool "aeron.driver.async.executor.enabled" "AERON_DRIVER_ASYNC_EXECUTOR_ENABLED" = "true",
        "resolve names and open endpoints on a separate thread";
    AsyncExecutorIdleStrategy async_executor_idle_strategy: Driver idle "aeron.driver.async.executor.idle.strategy" "AERON_DRIVER_ASYNC_EXECUTOR_IDLE_STRATEGY" = "sleep-ms",
        "idle strategy of the async executor thread";
    AsyncExecutorIdleStrategyInitArgs async_executor_idle_strategy_init_args: Driver text "aeron.driver.async.executor.idle.strategy.init.args" "AERON_DRIVER_ASYNC_EXECUTOR_IDLE_STRATEGY_INIT_ARGS" = "",
        "arguments of the async executor idle strategy";
    ConductorCpuAffinity conductor_cpu_affinity: Driver affinity "aeron.conductor.cpu.affinity" "AERON_CONDUCTOR_CPU_AFFINITY" = "-1",
        "core of the conductor thread, or of the thread shared by all agents";
    SenderCpuAffinity sender_cpu_affinity: Driver affinity "aeron.sender.cpu.affinity" "AERON_SENDER_CPU_AFFINITY" = "-1",
        "core of the sender thread, or of the thread shared by sender and receiver";
    ReceiverCpuAffinity receiver_cpu_affinity: Driver affinity "aeron.receiver.cpu.affinity" "AERON_RECEIVER_CPU_AFFINITY" = "-1",
        "core of the receiver thread";
    AgentOnStartFunction agent_on_start_function: Driver text "aeron.agent.on.start.function" "AERON_AGENT_ON_START_FUNCTION" = "", fixed LIBRARIES,
        "function called on each agent thread at start";
    UseWindowsHighResTimer use_windows_high_res_timer: Driver bool "aeron.use.windows.high.res.timer" "AERON_USE_WINDOWS_HIGH_RES_TIMER" = "false",
        "high-resolution timer; has an effect on Windows only";

    // Termination, extension, diagnostics (§2.12)
    TerminationValidator termination_validator: Driver choice(TERMINATION_VALIDATOR) "aeron.driver.termination.validator" "AERON_DRIVER_TERMINATION_VALIDATOR" = "deny",
        "whether a client command may terminate the driver";
    DynamicLibraries driver_dynamic_libraries: Driver text "aeron.driver.dynamic.libraries" "AERON_DRIVER_DYNAMIC_LIBRARIES" = "", fixed LIBRARIES,
        "dynamic libraries to load";
    FallbackLogger fallback_logger: Both choice(FALLBACK_LOGGER) "aeron.fallback.logger" "AERON_FALLBACK_LOGGER" = "stderr",
        "destination of errors when the error log is unavailable";
    DebugTimeout debug_timeout_ns: Both optional_duration(0) "aeron.debug.timeout" "AERON_DEBUG_TIMEOUT" = "",
        "liveness timeout of clients and drivers while a debugger is attached";
    SecureRandomAlgorithm secure_random_algorithm: Both choice(RANDOM) "aeron.secure.random.algorithm" "AERON_SECURE_RANDOM_ALGORITHM" = "NativePRNGNonBlocking",
        "Java random number generator; ignored, random numbers come from the operating system";
    EventLog event_log: Driver events "aeron.event.log" "AERON_EVENT_LOG" = "",
        "events to log: names, numbers, all or admin, separated by commas";
    EventLogDisable event_log_disable: Driver events "aeron.event.log.disable" "AERON_EVENT_LOG_DISABLE" = "",
        "events to exclude from the log";
    EventLogFilename event_log_filename: Driver text "aeron.event.log.filename" "AERON_EVENT_LOG_FILENAME" = "",
        "file to which events are appended; unset means standard output";
    EventLogReader event_log_reader: Driver text "aeron.event.log.reader.classname" "AERON_EVENT_LOG_READER_CLASSNAME" = "io.aeron.agent.EventLogReaderAgent", fixed CLASSES,
        "event log reader class";
    EventBufferLength event_buffer_length: Driver size(64 * K, G, Form::PowerOfTwo) "aeron.event.buffer.length" "AERON_EVENT_BUFFER_LENGTH" = "8m",
        "length of the event buffer between the agents and the log writer";

    EventLogClock event_log_clock: Driver choice(EVENT_CLOCK) "taran.event.log.clock" "TARAN_EVENT_LOG_CLOCK" = "wall",
        "clock of the times in the event log: wall (date, time and zone) or monotonic (seconds since the system's start)";
    ErrorsDir errors_dir: Driver text "taran.errors.dir" "TARAN_ERRORS_DIR" = "",
        "directory for the errors of earlier drivers that died; unset means beside the directory of the driver";
    ErrorsKept errors_kept: Driver int(1, 1000) "taran.errors.kept" "TARAN_ERRORS_KEPT" = "10",
        "number of files with errors of earlier drivers that are kept; older ones are deleted";

    // Client (§3)
    ClientName client_name: Client text(100) "aeron.client.name" "AERON_CLIENT_NAME" = "",
        "client name, shown in the label of its heartbeat counter";
    ClientIdleSleepDuration client_idle_sleep_duration_ns: Client duration(0) "aeron.client.idle.sleep.duration" "AERON_CLIENT_IDLE_SLEEP_DURATION" = "16ms",
        "sleep time of the client conductor between duty cycles";
    ClientResourceLingerDuration client_resource_linger_duration_ns: Client duration(0) "aeron.client.resource.linger.duration" "AERON_CLIENT_RESOURCE_LINGER_DURATION" = "3s",
        "time unused log buffers stay mapped before the client conductor unmaps them";
    ClientCloseLingerDuration client_close_linger_duration_ns: Both duration(0) "aeron.client.close.linger.duration" "AERON_CLIENT_CLOSE_LINGER_DURATION" = "0",
        "time a closing client waits before it notifies the driver, so that other threads can commit their claims";
    PreTouchMappedMemory pre_touch_mapped_memory: Client bool "aeron.pre.touch.mapped.memory" "AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY" = "false",
        "touch all pages of a log when it is mapped";

    // Archive (docs/spec/archive.md §8.1)
    ArchiveDir archive_dir: Archive text "aeron.archive.dir" "AERON_ARCHIVE_DIR" = "aeron-archive",
        "directory of catalog and recordings";
    ArchiveDirDeleteOnStart archive_dir_delete_on_start: Archive bool "aeron.archive.dir.delete.on.start" "AERON_ARCHIVE_DIR_DELETE_ON_START" = "false",
        "delete the archive directory with all recordings at start";
    ArchiveMarkFileDir archive_mark_file_dir: Archive text "aeron.archive.mark.file.dir" "AERON_ARCHIVE_MARK_FILE_DIR" = "",
        "directory of the mark file; unset means the archive directory";
    ArchiveId archive_id: Archive optional_int(i64::MIN, i64::MAX) "aeron.archive.id" "AERON_ARCHIVE_ID" = "",
        "id of the archive; unset means a number that is unique for the driver";
    ArchiveControlChannel archive_control_channel: Archive text "aeron.archive.control.channel" "AERON_ARCHIVE_CONTROL_CHANNEL" = "",
        "UDP channel on which the archive receives requests";
    ArchiveControlChannelEnabled archive_control_channel_enabled: Archive bool "aeron.archive.control.channel.enabled" "AERON_ARCHIVE_CONTROL_CHANNEL_ENABLED" = "true",
        "false: requests over IPC only";
    ArchiveControlStreamId archive_control_stream_id: Archive int(INT_MIN, INT_MAX) "aeron.archive.control.stream.id" "AERON_ARCHIVE_CONTROL_STREAM_ID" = "10",
        "stream id of requests over UDP";
    ArchiveLocalControlChannel archive_local_control_channel: Archive text "aeron.archive.local.control.channel" "AERON_ARCHIVE_LOCAL_CONTROL_CHANNEL" = "aeron:ipc?term-length=64k",
        "IPC channel on which the archive receives requests";
    ArchiveLocalControlStreamId archive_local_control_stream_id: Archive int(INT_MIN, INT_MAX) "aeron.archive.local.control.stream.id" "AERON_ARCHIVE_LOCAL_CONTROL_STREAM_ID" = "10",
        "stream id of requests over IPC";
    ArchiveControlTermBufferLength archive_control_term_buffer_length: Archive size(64 * K, G, Form::PowerOfTwo) "aeron.archive.control.term.buffer.length" "AERON_ARCHIVE_CONTROL_TERM_BUFFER_LENGTH" = "64k",
        "term length of response streams whose channel does not set one";
    ArchiveControlTermBufferSparse archive_control_term_buffer_sparse: Archive bool "aeron.archive.control.term.buffer.sparse" "AERON_ARCHIVE_CONTROL_TERM_BUFFER_SPARSE" = "true",
        "reserve pages of control streams as they proceed";
    ArchiveControlMtuLength archive_control_mtu_length: Archive size(64, 65504, Form::MultipleOf(32)) "aeron.archive.control.mtu.length" "AERON_ARCHIVE_CONTROL_MTU_LENGTH" = "",
        "maximum frame length of response streams whose channel does not set one; unset means aeron.mtu.length";
    ArchiveRecordingEventsEnabled archive_recording_events_enabled: Archive bool "aeron.archive.recording.events.enabled" "AERON_ARCHIVE_RECORDING_EVENTS_ENABLED" = "false",
        "publish the progress of recordings";
    ArchiveRecordingEventsChannel archive_recording_events_channel: Archive text "aeron.archive.recording.events.channel" "AERON_ARCHIVE_RECORDING_EVENTS_CHANNEL" = "",
        "channel of the progress of recordings";
    ArchiveRecordingEventsStreamId archive_recording_events_stream_id: Archive int(INT_MIN, INT_MAX) "aeron.archive.recording.events.stream.id" "AERON_ARCHIVE_RECORDING_EVENTS_STREAM_ID" = "30",
        "stream id of the progress of recordings";
    ArchiveReplicationChannel archive_replication_channel: Archive text "aeron.archive.replication.channel" "AERON_ARCHIVE_REPLICATION_CHANNEL" = "",
        "channel on which this archive receives replays of other archives; its endpoint may have port 0";
    ArchiveSegmentFileLength archive_segment_file_length: Archive size(64 * K, G, Form::PowerOfTwo) "aeron.archive.segment.file.length" "AERON_ARCHIVE_SEGMENT_FILE_LENGTH" = "128m",
        "length of the segment files of new recordings; at least the term length of the stream";
    ArchiveFileIoMaxLength archive_file_io_max_length: Archive size(64 * K, G, Form::PowerOfTwo) "aeron.archive.file.io.max.length" "AERON_ARCHIVE_FILE_IO_MAX_LENGTH" = "1m",
        "maximum length of one read or write of a segment file";
    ArchiveFileSyncLevel archive_file_sync_level: Archive int(0, 2) "aeron.archive.file.sync.level" "AERON_ARCHIVE_FILE_SYNC_LEVEL" = "0",
        "durability of recorded data: 0 page cache, 1 data on the device, 2 data and metadata";
    ArchiveCatalogFileSyncLevel archive_catalog_file_sync_level: Archive int(0, 2) "aeron.archive.catalog.file.sync.level" "AERON_ARCHIVE_CATALOG_FILE_SYNC_LEVEL" = "0",
        "durability of the catalog, at least that of recorded data";
    ArchiveCatalogCapacity archive_catalog_capacity: Archive size(32, INT_MAX) "aeron.archive.catalog.capacity" "AERON_ARCHIVE_CATALOG_CAPACITY" = "1m",
        "initial length of the catalog file, which grows";
    ArchiveMaxCatalogEntries archive_max_catalog_entries: Archive int(0, UNLIMITED) "aeron.archive.max.catalog.entries" "AERON_ARCHIVE_MAX_CATALOG_ENTRIES" = "8192",
        "ignored, as by the official archive";
    ArchiveLowStorageSpaceThreshold archive_low_storage_space_threshold: Archive size(0, UNLIMITED) "aeron.archive.low.storage.space.threshold" "AERON_ARCHIVE_LOW_STORAGE_SPACE_THRESHOLD" = "128m",
        "usable storage space at or below which no recording is started";
    ArchiveMaxConcurrentRecordings archive_max_concurrent_recordings: Archive int(0, INT_MAX) "aeron.archive.max.concurrent.recordings" "AERON_ARCHIVE_MAX_CONCURRENT_RECORDINGS" = "20",
        "maximum number of active recordings";
    ArchiveMaxConcurrentReplays archive_max_concurrent_replays: Archive int(0, INT_MAX) "aeron.archive.max.concurrent.replays" "AERON_ARCHIVE_MAX_CONCURRENT_REPLAYS" = "20",
        "maximum number of active replays";
    ArchiveConnectTimeout archive_connect_timeout_ns: Archive duration(MS) "aeron.archive.connect.timeout" "AERON_ARCHIVE_CONNECT_TIMEOUT" = "5s",
        "time limit for the connection of control sessions and replays, and for responses that cannot be sent";
    ArchiveSessionLivenessCheckInterval archive_session_liveness_check_interval_ns: Archive duration(MS) "aeron.archive.session.liveness.check.interval" "AERON_ARCHIVE_SESSION_LIVENESS_CHECK_INTERVAL" = "1s",
        "interval of pings to clients";
    ArchiveReplayLingerTimeout archive_replay_linger_timeout_ns: Archive optional_duration(0) "aeron.archive.replay.linger.timeout" "AERON_ARCHIVE_REPLAY_LINGER_TIMEOUT" = "",
        "linger of replay publications; unset means aeron.publication.linger.timeout";
    ArchiveRecordChecksum archive_record_checksum: Archive choice(CHECKSUM) "aeron.archive.record.checksum" "AERON_ARCHIVE_RECORD_CHECKSUM" = "",
        "checksum written into recorded frames and catalog entries";
    ArchiveReplayChecksum archive_replay_checksum: Archive choice(CHECKSUM) "aeron.archive.replay.checksum" "AERON_ARCHIVE_REPLAY_CHECKSUM" = "",
        "checksum verified by replays";
    ArchiveThreadingMode archive_threading_mode_name: Archive choice(ARCHIVE_THREADING_MODE) "aeron.archive.threading.mode" "AERON_ARCHIVE_THREADING_MODE" = "DEDICATED",
        "DEDICATED: conductor, recorder and replayer have a thread each; SHARED: one thread; INVOKER: the caller's thread";
    ArchiveIdleStrategy archive_idle_strategy: Archive idle "aeron.archive.idle.strategy" "AERON_ARCHIVE_IDLE_STRATEGY" = "backoff",
        "idle strategy of the conductor, or of the shared thread";
    ArchiveRecorderIdleStrategy archive_recorder_idle_strategy: Archive idle "aeron.archive.recorder.idle.strategy" "AERON_ARCHIVE_RECORDER_IDLE_STRATEGY" = "",
        "idle strategy of the recorder; unset means that of the conductor";
    ArchiveReplayerIdleStrategy archive_replayer_idle_strategy: Archive idle "aeron.archive.replayer.idle.strategy" "AERON_ARCHIVE_REPLAYER_IDLE_STRATEGY" = "",
        "idle strategy of the replayer; unset means that of the conductor";
    ArchiveConductorCycleThreshold archive_conductor_cycle_threshold_ns: Archive duration(0) "aeron.archive.conductor.cycle.threshold" "AERON_ARCHIVE_CONDUCTOR_CYCLE_THRESHOLD" = "100ms",
        "duration above which a duty cycle of the conductor is counted";
    ArchiveRecorderCycleThreshold archive_recorder_cycle_threshold_ns: Archive duration(0) "aeron.archive.recorder.cycle.threshold" "AERON_ARCHIVE_RECORDER_CYCLE_THRESHOLD" = "100ms",
        "duration above which a duty cycle of the recorder is counted";
    ArchiveReplayerCycleThreshold archive_replayer_cycle_threshold_ns: Archive duration(0) "aeron.archive.replayer.cycle.threshold" "AERON_ARCHIVE_REPLAYER_CYCLE_THRESHOLD" = "100ms",
        "duration above which a duty cycle of the replayer is counted";
    ArchiveErrorBufferLength archive_error_buffer_length: Archive size(M, INT_MAX - 8192) "aeron.archive.error.buffer.length" "AERON_ARCHIVE_ERROR_BUFFER_LENGTH" = "1m",
        "length of the distinct error log in the mark file";
    ArchiveAuthenticatorSupplier archive_authenticator_supplier: Archive choice(AUTHENTICATOR) "aeron.archive.authenticator.supplier" "AERON_ARCHIVE_AUTHENTICATOR_SUPPLIER" = "default",
        "authenticator of clients; default accepts all, a program that embeds the archive supplies its own";
    ArchiveAuthorisationServiceSupplier archive_authorisation_service_supplier: Archive choice(AUTHORISATION) "aeron.archive.authorisation.service.supplier" "AERON_ARCHIVE_AUTHORISATION_SERVICE_SUPPLIER" = "ALLOW_ALL",
        "authorisation of requests; a program that embeds the archive supplies its own";
    ArchiveDiskFull archive_disk_full: Archive choice(ARCHIVE_DISK_FULL) "taran.archive.disk.full" "TARAN_ARCHIVE_DISK_FULL" = "hold",
        "what a recording does on a full disk: hold its publisher back until there is space, or stop, as the official archive";
    ArchiveRetention archive_retention: Archive text "taran.archive.retention" "TARAN_ARCHIVE_RETENTION" = "",
        "rules by which segments are purged, separated by ;, the first match decides: [CHANNEL PATTERN] [recording=ID] [stream=ID] [bytes=SIZE] [age=DURATION] [consumers=NAME+NAME]";
    ArchiveRetentionInterval archive_retention_interval_ns: Archive duration(MS) "taran.archive.retention.interval" "TARAN_ARCHIVE_RETENTION_INTERVAL" = "10s",
        "time between two passes of retention over all recordings";
    ArchiveTimeIndexInterval archive_time_index_interval_ns: Archive duration(0) "taran.archive.time.index.interval" "TARAN_ARCHIVE_TIME_INDEX_INTERVAL" = "1s",
        "time between entries of the time index of an active recording; 0 writes none";
    ArchiveVerifyRate archive_verify_rate: Archive size(0, UNLIMITED) "taran.archive.verify.rate" "TARAN_ARCHIVE_VERIFY_RATE" = "0",
        "bytes per second that the verification of recordings in the background reads; 0 verifies nothing";
    ArchiveVerifyInterval archive_verify_interval_ns: Archive duration(MS) "taran.archive.verify.interval" "TARAN_ARCHIVE_VERIFY_INTERVAL" = "86400s",
        "time between two passes of verification over all recordings";
    ArchiveVerifyDamage archive_verify_damage: Archive choice(ARCHIVE_VERIFY_DAMAGE) "taran.archive.verify.damage" "TARAN_ARCHIVE_VERIFY_DAMAGE" = "report",
        "what verification does with a damaged recording: report it, or also invalidate it, so that it is not used";
    ArchiveEventLog archive_event_log: Archive archive_events "aeron.event.archive.log" "AERON_EVENT_ARCHIVE_LOG" = "",
        "events of the archive to log: names, numbers or all, separated by commas";
    ArchiveEventLogDisable archive_event_log_disable: Archive archive_events "aeron.event.archive.log.disable" "AERON_EVENT_ARCHIVE_LOG_DISABLE" = "",
        "events of the archive to exclude from the log";

    // Archive client (docs/spec/archive.md §8.2)
    ArchiveMessageTimeout archive_message_timeout_ns: Archive duration(MS) "aeron.archive.message.timeout" "AERON_ARCHIVE_MESSAGE_TIMEOUT" = "10s",
        "time limit for a response of an archive";
    ArchiveMessageRetryAttempts archive_message_retry_attempts: Archive int(1, INT_MAX) "aeron.archive.message.retry.attempts" "AERON_ARCHIVE_MESSAGE_RETRY_ATTEMPTS" = "3",
        "number of attempts to send a request to an archive";
    ArchiveControlResponseChannel archive_control_response_channel: Archive text "aeron.archive.control.response.channel" "AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL" = "",
        "channel on which responses of an archive are received";
    ArchiveControlResponseStreamId archive_control_response_stream_id: Archive int(INT_MIN, INT_MAX) "aeron.archive.control.response.stream.id" "AERON_ARCHIVE_CONTROL_RESPONSE_STREAM_ID" = "20",
        "stream id of responses of an archive";
    ArchiveClientName archive_client_name: Archive text(100) "aeron.archive.client.name" "AERON_ARCHIVE_CLIENT_NAME" = "",
        "name of an archive client, shown in the label of its control session counter";

    // Cluster: consensus module and containers (docs/spec/cluster.md §11.1, §11.2)
    ClusterId cluster_id: Member int(INT_MIN, INT_MAX) "aeron.cluster.id" "AERON_CLUSTER_ID" = "0",
        "id of the cluster; clusters that share a driver need different ones";
    ClusterMemberId cluster_member_id: Cluster int(INT_MIN, INT_MAX) "aeron.cluster.member.id" "AERON_CLUSTER_MEMBER_ID" = "0",
        "id of this member in aeron.cluster.members";
    ClusterMembers cluster_members: Cluster text "aeron.cluster.members" "AERON_CLUSTER_MEMBERS" = "",
        "all members, the same text at each: ID,INGRESS,CONSENSUS,LOG,CATCHUP,ARCHIVE with an endpoint host:port per field, separated by |";
    ClusterMemberEndpoints cluster_member_endpoints: Cluster text "aeron.cluster.member.endpoints" "AERON_CLUSTER_MEMBER_ENDPOINTS" = "",
        "the five endpoints of this member, to check aeron.cluster.members against; unset means no check";
    ClusterAppointedLeaderId cluster_appointed_leader_id: Cluster int(-1, INT_MAX) "aeron.cluster.appointed.leader.id" "AERON_CLUSTER_APPOINTED_LEADER_ID" = "-1",
        "the only member that may lead, for tests; -1 means any";
    ClusterDir cluster_dir: Member text "aeron.cluster.dir" "AERON_CLUSTER_DIR" = "aeron-cluster",
        "directory of the files of the member";
    ClusterMarkFileDir cluster_mark_file_dir: Member text "aeron.cluster.mark.file.dir" "AERON_CLUSTER_MARK_FILE_DIR" = "",
        "directory of mark files; unset means aeron.cluster.dir";
    ClusterServicesDir cluster_services_dir: Cluster text "aeron.cluster.services.dir" "AERON_CLUSTER_SERVICES_DIR" = "",
        "directory in which services have their files; unset means aeron.cluster.dir";
    ClusterServiceCount cluster_service_count: Cluster int(1, 10) "aeron.cluster.service.count" "AERON_CLUSTER_SERVICE_COUNT" = "1",
        "number of services in containers of their own";
    ClusterIngressChannel cluster_ingress_channel: Sessions text "aeron.cluster.ingress.channel" "AERON_CLUSTER_INGRESS_CHANNEL" = "aeron:udp?term-length=64k",
        "channel of requests of clients; the ingress endpoint of the member is added";
    ClusterIngressStreamId cluster_ingress_stream_id: Sessions int(INT_MIN, INT_MAX) "aeron.cluster.ingress.stream.id" "AERON_CLUSTER_INGRESS_STREAM_ID" = "101",
        "stream id of requests of clients";
    ClusterIngressFragmentLimit cluster_ingress_fragment_limit: Cluster int(1, INT_MAX) "aeron.cluster.ingress.fragment.limit" "AERON_CLUSTER_INGRESS_FRAGMENT_LIMIT" = "50",
        "maximum fragments of requests per duty cycle";
    ClusterIngressIpcAllowed cluster_ingress_ipc_allowed: Cluster bool "aeron.cluster.ingress.ipc.allowed" "AERON_CLUSTER_INGRESS_IPC_ALLOWED" = "false",
        "the leader takes requests over IPC, too";
    ClusterEgressChannel cluster_egress_channel: Sessions text "aeron.cluster.egress.channel" "AERON_CLUSTER_EGRESS_CHANNEL" = "",
        "member: parameters that override those of the response channels of clients; client: channel of answers, unset means a free port of localhost";
    ClusterLogChannel cluster_log_channel: Cluster text "aeron.cluster.log.channel" "AERON_CLUSTER_LOG_CHANNEL" = "aeron:udp?term-length=64m",
        "channel of the log; without an endpoint the leader sends it to each member";
    ClusterLogStreamId cluster_log_stream_id: Cluster int(INT_MIN, INT_MAX) "aeron.cluster.log.stream.id" "AERON_CLUSTER_LOG_STREAM_ID" = "100",
        "stream id of the log";
    ClusterLogControlEnable cluster_log_control_enable: Cluster bool "aeron.cluster.log.control.enable" "AERON_CLUSTER_LOG_CONTROL_ENABLE" = "true",
        "bind the socket from which the leader sends the log to the host of its log endpoint";
    ClusterLogFragmentLimit cluster_log_fragment_limit: Member int(1, INT_MAX) "aeron.cluster.log.fragment.limit" "AERON_CLUSTER_LOG_FRAGMENT_LIMIT" = "50",
        "maximum fragments of the log per duty cycle";
    ClusterConsensusChannel cluster_consensus_channel: Cluster text "aeron.cluster.consensus.channel" "AERON_CLUSTER_CONSENSUS_CHANNEL" = "aeron:udp?term-length=64k",
        "channel between members; their consensus endpoints are added";
    ClusterConsensusStreamId cluster_consensus_stream_id: Cluster int(INT_MIN, INT_MAX) "aeron.cluster.consensus.stream.id" "AERON_CLUSTER_CONSENSUS_STREAM_ID" = "108",
        "stream id between members";
    ClusterConsensusControlEnable cluster_consensus_control_enable: Cluster bool "aeron.cluster.consensus.control.enable" "AERON_CLUSTER_CONSENSUS_CONTROL_ENABLE" = "true",
        "bind the sockets that send to other members to the host of the own consensus endpoint";
    ClusterControlChannel cluster_control_channel: Member text "aeron.cluster.control.channel" "AERON_CLUSTER_CONTROL_CHANNEL" = "aeron:ipc?term-length=128k",
        "IPC channel between consensus module and containers";
    ClusterConsensusModuleStreamId cluster_consensus_module_stream_id: Member int(INT_MIN, INT_MAX) "aeron.cluster.consensus.module.stream.id" "AERON_CLUSTER_CONSENSUS_MODULE_STREAM_ID" = "105",
        "stream id from containers to the consensus module";
    ClusterServiceStreamId cluster_service_stream_id: Member int(INT_MIN, INT_MAX) "aeron.cluster.service.stream.id" "AERON_CLUSTER_SERVICE_STREAM_ID" = "104",
        "stream id from the consensus module to containers";
    ClusterReplayChannel cluster_replay_channel: Member text "aeron.cluster.replay.channel" "AERON_CLUSTER_REPLAY_CHANNEL" = "aeron:ipc",
        "channel of replays of the own log and of snapshots";
    ClusterReplayStreamId cluster_replay_stream_id: Member int(INT_MIN, INT_MAX) "aeron.cluster.replay.stream.id" "AERON_CLUSTER_REPLAY_STREAM_ID" = "103",
        "stream id of these replays";
    ClusterSnapshotChannel cluster_snapshot_channel: Member text "aeron.cluster.snapshot.channel" "AERON_CLUSTER_SNAPSHOT_CHANNEL" = "aeron:ipc?alias=snapshot",
        "channel on which snapshots are recorded";
    ClusterSnapshotStreamId cluster_snapshot_stream_id: Member int(INT_MIN, INT_MAX) "aeron.cluster.snapshot.stream.id" "AERON_CLUSTER_SNAPSHOT_STREAM_ID" = "106",
        "stream id on which snapshots of services are recorded";
    ClusterReplicationChannel cluster_replication_channel: Cluster text "aeron.cluster.replication.channel" "AERON_CLUSTER_REPLICATION_CHANNEL" = "aeron:udp?endpoint=localhost:0",
        "channel on which the own archive receives the log of other members; its endpoint may have port 0";
    ClusterFollowerCatchupChannel cluster_follower_catchup_channel: Cluster text "aeron.cluster.follower.catchup.channel" "AERON_CLUSTER_FOLLOWER_CATCHUP_CHANNEL" = "aeron:udp",
        "channel on which a leader replays its log to a follower; the catch-up endpoint of the follower is added";
    ClusterLeaderArchiveControlChannel cluster_leader_archive_control_channel: Cluster text "aeron.cluster.leader.archive.control.channel" "AERON_CLUSTER_LEADER_ARCHIVE_CONTROL_CHANNEL" = "aeron:udp?term-length=64k",
        "channel to the archives of other members; their archive endpoints are added";
    ClusterLeaderHeartbeatTimeout cluster_leader_heartbeat_timeout_ns: Cluster duration(MS) "aeron.cluster.leader.heartbeat.timeout" "AERON_CLUSTER_LEADER_HEARTBEAT_TIMEOUT" = "200ms",
        "silence after which a member counts as dead; set it to 10s, the official default, in a cluster with official members";
    ClusterLeaderHeartbeatInterval cluster_leader_heartbeat_interval_ns: Cluster duration(MS) "aeron.cluster.leader.heartbeat.interval" "AERON_CLUSTER_LEADER_HEARTBEAT_INTERVAL" = "25ms",
        "interval of heartbeats of the leader, and of reports of followers";
    ClusterStartupCanvassTimeout cluster_startup_canvass_timeout_ns: Cluster duration(MS) "aeron.cluster.startup.canvass.timeout" "AERON_CLUSTER_STARTUP_CANVASS_TIMEOUT" = "1s",
        "time after the start of a member for which all members are awaited before a quorum is enough";
    ClusterElectionTimeout cluster_election_timeout_ns: Cluster duration(MS) "aeron.cluster.election.timeout" "AERON_CLUSTER_ELECTION_TIMEOUT" = "200ms",
        "duration of a ballot that no quorum decides";
    ClusterElectionStatusInterval cluster_election_status_interval_ns: Cluster duration(MS) "aeron.cluster.election.status.interval" "AERON_CLUSTER_ELECTION_STATUS_INTERVAL" = "20ms",
        "interval of messages in an election";
    ClusterSessionTimeout cluster_session_timeout_ns: Cluster duration(MS) "aeron.cluster.session.timeout" "AERON_CLUSTER_SESSION_TIMEOUT" = "10s",
        "silence after which the session of a client is closed";
    ClusterMaxSessions cluster_max_sessions: Cluster int(1, INT_MAX) "aeron.cluster.max.sessions" "AERON_CLUSTER_MAX_SESSIONS" = "10",
        "maximum sessions of clients";
    ClusterTerminationTimeout cluster_termination_timeout_ns: Cluster duration(0) "aeron.cluster.termination.timeout" "AERON_CLUSTER_TERMINATION_TIMEOUT" = "10s",
        "time for which a leader that ends the cluster waits for its followers";
    ClusterClock cluster_clock: Cluster choice(CLUSTER_CLOCK) "aeron.cluster.clock" "AERON_CLUSTER_CLOCK" = "ms",
        "unit of the time of the cluster: milliseconds, microseconds or nanoseconds";
    ClusterAuthenticatorSupplier cluster_authenticator_supplier: Cluster choice(AUTHENTICATOR) "aeron.cluster.authenticator.supplier" "AERON_CLUSTER_AUTHENTICATOR_SUPPLIER" = "default",
        "authenticator of clients; default accepts all, a program that embeds the member supplies its own";
    ClusterAuthorisationServiceSupplier cluster_authorisation_service_supplier: Cluster choice(AUTHORISATION) "aeron.cluster.authorisation.service.supplier" "AERON_CLUSTER_AUTHORISATION_SERVICE_SUPPLIER" = "",
        "authorisation of requests such as that of a snapshot; unset denies those of clients; a program that embeds the member supplies its own";
    ClusterCredentialsFile cluster_credentials_file: Cluster text "taran.cluster.credentials.file" "TARAN_CLUSTER_CREDENTIALS_FILE" = "",
        "file with a line NAME:SECRET for each client that may connect, which sends that line as its credentials; unset accepts all clients";
    ClusterAdmins cluster_admins: Cluster text "taran.cluster.admins" "TARAN_CLUSTER_ADMINS" = "",
        "names of clients in taran.cluster.credentials.file whose administrative requests, such as for a snapshot, are allowed, separated by commas";
    ClusterErrorBufferLength cluster_error_buffer_length: Cluster size(M, INT_MAX - 8192) "aeron.cluster.error.buffer.length" "AERON_CLUSTER_ERROR_BUFFER_LENGTH" = "1m",
        "length of the distinct error log in the mark file of the member";
    ClusterIdleStrategy cluster_idle_strategy: Member idle "aeron.cluster.idle.strategy" "AERON_CLUSTER_IDLE_STRATEGY" = "backoff",
        "idle strategy of the thread of the consensus module, or of a container";
    ClusterCycleThreshold cluster_cycle_threshold_ns: Cluster duration(0) "aeron.cluster.cycle.threshold" "AERON_CLUSTER_CYCLE_THRESHOLD" = "100ms",
        "duration above which a duty cycle of the consensus module is counted";
    ClusterTotalSnapshotThreshold cluster_total_snapshot_threshold_ns: Cluster duration(0) "aeron.cluster.total.snapshot.threshold" "AERON_CLUSTER_TOTAL_SNAPSHOT_THRESHOLD" = "1s",
        "duration above which a snapshot is counted";
    ClusterAgentRoleName cluster_consensus_module_agent_role_name: Cluster text(100) "aeron.cluster.consensus.module.agent.role.name" "AERON_CLUSTER_CONSENSUS_MODULE_AGENT_ROLE_NAME" = "",
        "name of the thread of the consensus module, and of its client of the driver; unset means consensus-module-CLUSTER-MEMBER";
    ClusterAppVersion cluster_app_version: Member int(0, INT_MAX) "aeron.cluster.app.version" "AERON_CLUSTER_APP_VERSION" = "1",
        "version of the application, MAJOR * 65536 + MINOR * 256 + PATCH: members and snapshots of another major version are refused";
    ClusterFileSyncLevel cluster_file_sync_level: Cluster int(0, 2) "aeron.cluster.file.sync.level" "AERON_CLUSTER_FILE_SYNC_LEVEL" = "0", fixed SYNC_LEVEL,
        "durability of the files of the member";
    ClusterTimerServiceSupplier cluster_timer_service_supplier: Cluster choice(CLUSTER_TIMERS) "aeron.cluster.timer.service.supplier" "AERON_CLUSTER_TIMER_SERVICE_SUPPLIER" = "default",
        "implementation of timers: there is one, which fires them in the order of their deadlines";
    ClusterWheelTickResolution cluster_wheel_tick_resolution_ns: Cluster duration(MS) "aeron.cluster.wheel.tick.resolution" "AERON_CLUSTER_WHEEL_TICK_RESOLUTION" = "8ms", fixed TIMERS,
        "resolution of a timer wheel";
    ClusterTicksPerWheel cluster_ticks_per_wheel: Cluster int(1, INT_MAX) "aeron.cluster.ticks.per.wheel" "AERON_CLUSTER_TICKS_PER_WHEEL" = "128", fixed TIMERS,
        "ticks of a timer wheel";
    ClusterReplicationProgressTimeout cluster_replication_progress_timeout_ns: Cluster duration(MS) "aeron.cluster.replication.progress.timeout" "AERON_CLUSTER_REPLICATION_PROGRESS_TIMEOUT" = "10s", fixed STANDBY,
        "time limit of progress of the replication of a standby snapshot";
    ClusterReplicationProgressInterval cluster_replication_progress_interval_ns: Cluster duration(MS) "aeron.cluster.replication.progress.interval" "AERON_CLUSTER_REPLICATION_PROGRESS_INTERVAL" = "1s", fixed STANDBY,
        "interval of checks of this progress";
    ClusterAcceptStandbySnapshots cluster_accept_standby_snapshots: Cluster bool "aeron.cluster.accept.standby.snapshots" "AERON_CLUSTER_ACCEPT_STANDBY_SNAPSHOTS" = "false", fixed STANDBY,
        "accept snapshots of standby members";
    ClusterStandbyNotificationDelay cluster_standby_snapshot_notification_processing_delay_ns: Cluster duration(0) "aeron.cluster.standby.snapshot.notification.processing.delay" "AERON_CLUSTER_STANDBY_SNAPSHOT_NOTIFICATION_PROCESSING_DELAY" = "0", fixed STANDBY,
        "time after which notifications of standby snapshots are processed";
    ClusterConsensusModuleExtension cluster_consensus_module_extension: Cluster text "aeron.cluster.consensus.module.extension" "AERON_CLUSTER_CONSENSUS_MODULE_EXTENSION" = "", fixed EXTENSIONS,
        "extension of the consensus module";

    // Containers of services (docs/spec/cluster.md §11.2)
    ClusterServiceId cluster_service_id: Container int(0, 9) "aeron.cluster.service.id" "AERON_CLUSTER_SERVICE_ID" = "0",
        "id of the service of a container, from 0 without gaps";
    ClusterServiceName cluster_service_name: Container text(100) "aeron.cluster.service.name" "AERON_CLUSTER_SERVICE_NAME" = "",
        "name of the service; unset means clustered-service-CLUSTER-SERVICE";
    ClusterServiceResponder cluster_service_responder: Container bool "aeron.cluster.service.responder" "AERON_CLUSTER_SERVICE_RESPONDER" = "true",
        "false: the service never answers clients, and has no publications to them";
    ClusterServiceErrorBufferLength cluster_service_error_buffer_length: Container size(M, INT_MAX - 8192) "aeron.cluster.service.error.buffer.length" "AERON_CLUSTER_SERVICE_ERROR_BUFFER_LENGTH" = "1m",
        "length of the distinct error log in the mark file of a container";
    ClusterServiceCycleThreshold cluster_service_cycle_threshold_ns: Container duration(0) "aeron.cluster.service.cycle.threshold" "AERON_CLUSTER_SERVICE_CYCLE_THRESHOLD" = "100ms",
        "duration above which a duty cycle of a container is counted";
    ClusterServiceSnapshotThreshold cluster_service_snapshot_threshold_ns: Container duration(0) "aeron.cluster.service.snapshot.threshold" "AERON_CLUSTER_SERVICE_SNAPSHOT_THRESHOLD" = "1s",
        "duration above which a snapshot of a service is counted";
    ClusterServiceClassName cluster_service_class_name: Container text "aeron.cluster.service.class.name" "AERON_CLUSTER_SERVICE_CLASS_NAME" = "", fixed SERVICES,
        "class of the service of a container";
    ClusterServiceDelegatingErrorHandler cluster_service_delegating_error_handler: Container text "aeron.cluster.service.delegating.error.handler" "AERON_CLUSTER_SERVICE_DELEGATING_ERROR_HANDLER" = "", fixed SERVICES,
        "class that handles errors of a container";

    // Client of a cluster (docs/spec/cluster.md §11.3)
    ClusterMessageTimeout cluster_message_timeout_ns: ClusterClient duration(MS) "aeron.cluster.message.timeout" "AERON_CLUSTER_MESSAGE_TIMEOUT" = "5s",
        "time limit for a session of a client, and for its connection to a new leader";
    ClusterIngressEndpoints cluster_ingress_endpoints: ClusterClient text "aeron.cluster.ingress.endpoints" "AERON_CLUSTER_INGRESS_ENDPOINTS" = "",
        "ingress endpoints of the members: 0=host:port,1=host:port; unset for an ingress over IPC or multicast";
    ClusterEgressStreamId cluster_egress_stream_id: ClusterClient int(INT_MIN, INT_MAX) "aeron.cluster.egress.stream.id" "AERON_CLUSTER_EGRESS_STREAM_ID" = "102",
        "stream id on which a client receives answers";
    ClusterClientName cluster_client_name: ClusterClient text "aeron.cluster.client.name" "AERON_CLUSTER_CLIENT_NAME" = "",
        "name of a client, at most 100 characters, shown by the cluster";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn option_names_are_unique_and_correspond() {
        let mut seen = HashSet::new();
        for (index, spec) in OptionId::ALL.iter().enumerate() {
            assert_eq!(spec.id as usize, index);
            assert!(seen.insert(spec.property), "{}", spec.property);
            assert!(seen.insert(spec.variable), "{}", spec.variable);
            let irregular = [
                OptionId::NameResolverThreshold,
                OptionId::PreTouchMappedMemory,
            ];
            if !irregular.contains(&spec.id) {
                assert_eq!(
                    spec.property.to_ascii_uppercase().replace('.', "_"),
                    spec.variable
                );
            }
        }
    }

    #[test]
    fn option_defaults_are_valid() {
        for spec in OptionId::ALL {
            if !spec.default.is_empty() {
                let value = spec.kind.parse(spec.default);
                assert!(value.is_ok(), "{}={}", spec.property, spec.default);
                assert_eq!(
                    spec.kind.parse(&spec.kind.format(&spec.default_value())),
                    value,
                    "{}",
                    spec.property
                );
            }
        }
    }
}
