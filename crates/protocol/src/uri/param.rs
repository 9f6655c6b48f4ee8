//! The parameters of a channel, declared once (docs/spec/uri-and-configuration.md §1.7).

use super::address::{Address, Interface};
use super::flow_control::FlowControlValue;
use super::tags::{SessionIdValue, Tags};
use super::value::{Requirement, parse_bool, parse_duration_ns, parse_i32, parse_i64, parse_size};
use super::{ControlMode, ResponseCorrelation, TimestampOffset};

/// Who uses a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A publication.
    Publication,
    /// A subscription.
    Subscription,
    /// A destination of a publication with manual control.
    SendDestination,
    /// A destination of a subscription with manual control.
    ReceiveDestination,
}

/// The form and range of a parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// `host:port`
    Address,
    /// `addr[:port][/len]`, `name[/len]` or `{ifname}[:port]`
    Interface,
    /// `manual`, `dynamic` or `response`
    ControlMode,
    /// `<channel tag>[,<entity tag>]`
    Tags,
    /// Any text.
    Text,
    /// 0..255
    Ttl,
    /// A size: a multiple of 32 in 64..65504.
    Mtu,
    /// A size: a power of two in 64k..1g.
    TermLength,
    /// A size: a multiple of 32 in 0..1g.
    TermOffset,
    /// An integer of 32 bits.
    Int32,
    /// An integer of 64 bits.
    Int64,
    /// An integer of 32 bits, or `tag:<entity tag>`.
    SessionId,
    /// 1..256
    MaxResend,
    /// A size in bytes.
    Size,
    /// A duration.
    Duration,
    /// `true` or `false`
    Bool,
    /// `true`, `false` or `infer`; any other text counts as false.
    TriState,
    /// An integer of 32 bits, or `reserved`.
    TimestampOffset,
    /// docs/spec/uri-and-configuration.md §1.8.
    FlowControl,
    /// −1 and above, or `prototype`.
    ResponseCorrelationId,
}

/// Largest frame and datagram payload.
pub const MAX_MTU: i64 = 65504;
/// Shortest term.
pub const MIN_TERM_LENGTH: i64 = 64 * 1024;
/// Longest term.
pub const MAX_TERM_LENGTH: i64 = 1024 * 1024 * 1024;
/// Frames are aligned to this many bytes.
pub const FRAME_ALIGNMENT: i64 = 32;
/// Most concurrent retransmits of a publication.
pub const MAX_RESEND: i64 = 256;

impl ParamKind {
    /// Checks one value by itself: its form and its range.
    ///
    /// # Errors
    /// What the value should have been.
    pub fn check(self, text: &str) -> Result<(), Requirement> {
        match self {
            ParamKind::Text | ParamKind::TriState => Ok(()),
            ParamKind::Address => Address::parse(text).map(drop),
            ParamKind::Interface => Interface::parse(text).map(drop),
            ParamKind::ControlMode => ControlMode::parse(text).map(drop),
            ParamKind::Tags => Tags::parse(text).map(drop).map_err(|e| e.needed),
            ParamKind::Ttl => parse_ttl(text).map(drop),
            ParamKind::Mtu => parse_mtu(text).map(drop),
            ParamKind::TermLength => parse_term_length(text).map(drop),
            ParamKind::TermOffset => parse_term_offset(text).map(drop),
            ParamKind::Int32 => parse_i32(text).map(drop),
            ParamKind::Int64 => parse_i64(text).map(drop),
            ParamKind::SessionId => SessionIdValue::parse(text).map(drop),
            ParamKind::MaxResend => parse_max_resend(text).map(drop),
            ParamKind::Size => parse_size(text).map(drop),
            ParamKind::Duration => parse_duration_ns(text).map(drop),
            ParamKind::Bool => parse_bool(text).map(drop),
            ParamKind::TimestampOffset => TimestampOffset::parse(text).map(drop),
            ParamKind::FlowControl => FlowControlValue::parse(text).map(drop),
            ParamKind::ResponseCorrelationId => ResponseCorrelation::parse(text).map(drop),
        }
    }
}

pub(super) fn parse_ttl(text: &str) -> Result<u8, Requirement> {
    parse_i64(text)
        .ok()
        .and_then(|n| u8::try_from(n).ok())
        .ok_or_else(|| "a number of hops in 0..255".into())
}

pub(super) fn parse_mtu(text: &str) -> Result<usize, Requirement> {
    match parse_size(text)? {
        mtu if mtu > FRAME_ALIGNMENT && mtu <= MAX_MTU && mtu % FRAME_ALIGNMENT == 0 => {
            Ok(mtu as usize)
        }
        _ => Err("a multiple of 32 in 64..65504".into()),
    }
}

pub(super) fn parse_term_length(text: &str) -> Result<usize, Requirement> {
    match parse_size(text) {
        Ok(length)
            if (MIN_TERM_LENGTH..=MAX_TERM_LENGTH).contains(&length)
                && length.count_ones() == 1 =>
        {
            Ok(length as usize)
        }
        _ => Err("a power of two in 64k..1g".into()),
    }
}

pub(super) fn parse_term_offset(text: &str) -> Result<usize, Requirement> {
    match parse_size(text) {
        Ok(offset) if offset <= MAX_TERM_LENGTH && offset % FRAME_ALIGNMENT == 0 => {
            Ok(offset as usize)
        }
        _ => Err("a multiple of 32 that is not greater than the term length".into()),
    }
}

pub(super) fn parse_max_resend(text: &str) -> Result<usize, Requirement> {
    match parse_i64(text) {
        Ok(n) if (1..=MAX_RESEND).contains(&n) => Ok(n as usize),
        _ => Err("a number in 1..256".into()),
    }
}

/// Everything known about a parameter.
#[derive(Clone, Copy, Debug)]
pub struct ParamSpec {
    /// Which one it is.
    pub param: Param,
    /// The key in the URI.
    pub key: &'static str,
    /// Whether only `udp` channels use it; the others are used by `ipc` channels too.
    pub udp_only: bool,
    /// Who uses it. Others ignore it, or see `refused_in_destinations`.
    pub used_by: &'static [Role],
    /// Whether destinations that carry it are refused.
    pub refused_in_destinations: bool,
    /// Form and range.
    pub kind: ParamKind,
    /// What holds when it is absent.
    pub default: &'static str,
    /// One line of help.
    pub help: &'static str,
}

const P: Role = Role::Publication;
const S: Role = Role::Subscription;
const D: Role = Role::SendDestination;
const R: Role = Role::ReceiveDestination;
const UDP: bool = true;
const ANY: bool = false;

macro_rules! params {
    ($($variant:ident $key:literal $udp_only:ident [$($role:ident)*] $(! $refused:ident)? $kind:ident $default:literal $help:literal;)*) => {
        /// A parameter of a channel.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Param {
            $(#[doc = concat!("`", $key, "`: ", $help)] $variant,)*
        }

        impl Param {
            /// All parameters, in the order in which a builder writes them.
            pub const ALL: &'static [ParamSpec] = &[
                $(ParamSpec {
                    param: Param::$variant,
                    key: $key,
                    udp_only: $udp_only,
                    used_by: &[$($role),*],
                    refused_in_destinations: params!(@refused $($refused)?),
                    kind: ParamKind::$kind,
                    default: $default,
                    help: $help,
                },)*
            ];
        }
    };
    (@refused destinations) => { true };
    (@refused) => { false };
}

// The order is that of the official builder's output (docs/spec/uri-and-configuration.md §1.13).
params! {
    Tags "tags" ANY [P S D R] Tags "none"
        "channel tag and entity tag, by which other channels can refer to this one";
    Endpoint "endpoint" UDP [P S D R] Address "none"
        "address to send to, or to receive on";
    Interface "interface" UDP [P S R] Interface "any"
        "local interface";
    Control "control" UDP [P S R] Address "none"
        "address the sender binds to, and at which receivers reach it";
    ControlMode "control-mode" UDP [P S] ControlMode "none"
        "who decides on the destinations: manual (commands), dynamic (receivers), response";
    Mtu "mtu" ANY [P] !destinations Mtu "aeron.mtu.length, aeron.ipc.mtu.length"
        "largest frame and datagram payload";
    TermLength "term-length" ANY [P] TermLength "aeron.term.buffer.length, aeron.ipc.term.buffer.length"
        "length of one of the three term buffers";
    InitialTermId "init-term-id" ANY [P] Int32 "random"
        "with term-id and term-offset: the starting position; all three or none";
    TermId "term-id" ANY [P] Int32 "init-term-id"
        "term of the starting position";
    TermOffset "term-offset" ANY [P] TermOffset "0"
        "offset of the starting position in its term";
    SessionId "session-id" ANY [P S] SessionId "P: generated, S: any"
        "P: session id to use; S: take only images of this session";
    Ttl "ttl" UDP [P] Ttl "aeron.socket.multicast.ttl"
        "hops of multicast datagrams, 0 leaves the value of the operating system";
    Reliable "reliable" UDP [S] Bool "aeron.reliable.stream"
        "false: gaps are filled with padding and never asked for again";
    Linger "linger" UDP [P] Duration "aeron.publication.linger.timeout"
        "how long a drained publication stays to answer late requests for retransmission";
    Alias "alias" ANY [P S] Text "none"
        "label for humans; the driver ignores it";
    CongestionControl "cc" UDP [S] Text "aeron.CongestionControl.supplier"
        "congestion control of images: static or cubic";
    FlowControl "fc" UDP [P] FlowControl "by kind of channel"
        "flow control for multicast and several destinations: max, min or tagged with options";
    GroupTag "gtag" UDP [S] Int64 "aeron.receiver.group.tag"
        "group tag sent in status messages";
    Sparse "sparse" ANY [P S] Bool "aeron.term.buffer.sparse.file"
        "whether the pages of a log are left to be allocated when they are first used";
    Eos "eos" UDP [P] Bool "true"
        "whether closing a publication sends the end of the stream";
    Tether "tether" ANY [S] Bool "aeron.tether.subscriptions"
        "false: a slow subscriber is dropped rather than holding back the stream";
    Group "group" UDP [S] TriState "aeron.receiver.group.consideration"
        "whether the receiver is one of a group, as to delays of its requests";
    Rejoin "rejoin" ANY [S] Bool "aeron.rejoin.stream"
        "whether images are taken again after they went away";
    SpiesSimulateConnection "ssc" UDP [P] Bool "aeron.spies.simulate.connection"
        "whether spies alone make a publication connected";
    SendBuffer "so-sndbuf" UDP [P] !destinations Size "aeron.socket.so_sndbuf"
        "SO_SNDBUF of the channel's socket";
    ReceiveBuffer "so-rcvbuf" UDP [P S] !destinations Size "aeron.socket.so_rcvbuf"
        "SO_RCVBUF of the channel's socket";
    ReceiverWindow "rcv-wnd" UDP [S] !destinations Size "aeron.rcv.initial.window.length"
        "initial receiver window, at most half a term";
    MediaReceiveTimestamp "media-rcv-ts-offset" UDP [S] TimestampOffset "none"
        "where the time of reception by the network interface is written";
    ChannelReceiveTimestamp "channel-rcv-ts-offset" UDP [S] TimestampOffset "none"
        "where the time of reception by the driver is written";
    ChannelSendTimestamp "channel-snd-ts-offset" UDP [P] TimestampOffset "none"
        "where the time of sending by the driver is written";
    ResponseEndpoint "response-endpoint" UDP [] Address "none"
        "no driver reads it";
    ResponseCorrelationId "response-correlation-id" ANY [P] !destinations ResponseCorrelationId "-1"
        "links the channels of requests and responses";
    NakDelay "nak-delay" UDP [S] Duration "aeron.nak.unicast.delay"
        "delay before a lost frame is asked for, unicast only";
    UntetheredWindowLimitTimeout "untethered-window-limit-timeout" ANY [P S] Duration "aeron.untethered.window.limit.timeout"
        "how long an untethered subscriber may be below the window";
    UntetheredLingerTimeout "untethered-linger-timeout" ANY [P S] Duration "aeron.untethered.linger.timeout"
        "how long an untethered subscriber lingers before it rests";
    UntetheredRestingTimeout "untethered-resting-timeout" ANY [P S] Duration "aeron.untethered.resting.timeout"
        "how long an untethered subscriber rests before it is active again";
    MaxResend "max-resend" UDP [P] MaxResend "aeron.max.resend"
        "concurrent retransmits; unicast always uses one";
    StreamId "stream-id" ANY [P] Int32 "none"
        "information for archive and applications; the driver takes the stream from the command";
    PublicationWindow "pub-wnd" ANY [P] Size "aeron.publication.term.window.length, aeron.ipc.publication.term.window.length"
        "how far a publisher may run ahead: at least the mtu, at most half a term";
    TransportSecurity "ats" UDP [P S] Bool "false"
        "commercial transport security, which this driver does not have: true is refused";
}

impl Param {
    /// The declaration of this parameter.
    #[must_use]
    pub fn spec(self) -> &'static ParamSpec {
        &Self::ALL[self as usize]
    }

    /// The key in the URI.
    #[must_use]
    pub fn key(self) -> &'static str {
        self.spec().key
    }

    /// The parameter with this key.
    #[must_use]
    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|spec| spec.key == key)
            .map(|spec| spec.param)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_table_has_forty_consistent_rows() {
        assert_eq!(Param::ALL.len(), 40);
        for (index, spec) in Param::ALL.iter().enumerate() {
            assert_eq!(spec.param as usize, index);
            assert_eq!(Param::from_key(spec.key), Some(spec.param));
            assert_eq!(spec.param.key(), spec.key);
        }
        assert_eq!(Param::from_key("initial-term-id"), None);
        assert_eq!(Param::from_key("Endpoint"), None);
    }

    #[test]
    fn length_out_of_range_is_rejected() {
        for text in ["32", "31", "0", "1400", "65536", "-64", "x"] {
            assert!(parse_mtu(text).is_err(), "{text}");
        }
        assert_eq!(parse_mtu("8k"), Ok(8192));
        for text in ["32k", "100k", "2g", "-64k", "0", ""] {
            assert!(parse_term_length(text).is_err(), "{text}");
        }
        assert_eq!(parse_term_length("1g"), Ok(1 << 30));
        for text in ["33", "-32", "2g"] {
            assert!(parse_term_offset(text).is_err(), "{text}");
        }
    }
}
