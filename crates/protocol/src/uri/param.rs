// SPDX-License-Identifier: Apache-2.0
//! Channel parameters, declared once (docs/spec/uri-and-configuration.md §1.7).

use super::address::{Address, Interface};
use super::flow_control::FlowControlValue;
use super::tags::{SessionIdValue, Tags};
use super::value::{Requirement, parse_bool, parse_duration_ns, parse_i32, parse_i64, parse_size};
use super::{ControlMode, ResponseCorrelation, TimestampOffset};
use crate::option::distance;

/// Role of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Publication.
    Publication,
    /// Subscription.
    Subscription,
    /// Destination of a publication with manual control mode (MDC).
    SendDestination,
    /// Destination of a subscription with manual control mode (MDS).
    ReceiveDestination,
}

/// Type and range of a parameter value.
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
    /// Flow control strategy with options (docs/spec/uri-and-configuration.md §1.8).
    FlowControl,
    /// −1 and above, or `prototype`.
    ResponseCorrelationId,
}

/// Maximum frame length and datagram payload.
pub const MAX_MTU: i64 = 65504;
/// Minimum term length.
pub const MIN_TERM_LENGTH: i64 = 64 * 1024;
/// Maximum term length.
pub const MAX_TERM_LENGTH: i64 = 1024 * 1024 * 1024;
/// Alignment of frames in bytes.
pub const FRAME_ALIGNMENT: i64 = 32;
/// Maximum concurrent retransmits of a publication.
pub const MAX_RESEND: i64 = 256;

impl ParamKind {
    /// Validates syntax and range of a single value.
    ///
    /// # Errors
    /// Description of the valid values.
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

/// Declaration of a parameter.
#[derive(Clone, Copy, Debug)]
pub struct ParamSpec {
    /// Identifier.
    pub param: Param,
    /// Key in the URI.
    pub key: &'static str,
    /// True if only `udp` channels use the parameter; otherwise `ipc` channels use it too.
    pub udp_only: bool,
    /// Roles that use the parameter. The others ignore it, except as in `rejected_in_destinations`.
    pub used_by: &'static [Role],
    /// True if destinations with the parameter are rejected.
    pub rejected_in_destinations: bool,
    /// Type and range.
    pub kind: ParamKind,
    /// Default, or the options that supply it.
    pub default: &'static str,
    /// Help text, one line.
    pub help: &'static str,
}

const P: Role = Role::Publication;
const S: Role = Role::Subscription;
const D: Role = Role::SendDestination;
const R: Role = Role::ReceiveDestination;
const UDP: bool = true;
const ANY: bool = false;

macro_rules! params {
    ($($variant:ident $key:literal $udp_only:ident [$($role:ident)*] $(! $rejected:ident)? $kind:ident $default:literal $help:literal;)*) => {
        /// Parameter of a channel.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Param {
            $(#[doc = concat!("`", $key, "`: ", $help)] $variant,)*
        }

        impl Param {
            /// All parameters, in the order in which the builder writes them.
            pub const ALL: &'static [ParamSpec] = &[
                $(ParamSpec {
                    param: Param::$variant,
                    key: $key,
                    udp_only: $udp_only,
                    used_by: &[$($role),*],
                    rejected_in_destinations: params!(@rejected $($rejected)?),
                    kind: ParamKind::$kind,
                    default: $default,
                    help: $help,
                },)*
            ];
        }
    };
    (@rejected destinations) => { true };
    (@rejected) => { false };
}

// Ordered as in the output of the official builder (docs/spec/uri-and-configuration.md §1.13).
params! {
    Tags "tags" ANY [P S D R] Tags "none"
        "channel tag and entity tag, by which other channels refer to this one";
    Endpoint "endpoint" UDP [P S D R] Address "none"
        "address to send to or to receive on";
    Interface "interface" UDP [P S R] Interface "any"
        "local interface";
    Control "control" UDP [P S R] Address "none"
        "control address: the sender binds it, receivers send their status messages to it";
    ControlMode "control-mode" UDP [P S] ControlMode "none"
        "how destinations are determined: manual (commands), dynamic (receivers), or response";
    Mtu "mtu" ANY [P] !destinations Mtu "aeron.mtu.length, aeron.ipc.mtu.length"
        "maximum frame length and datagram payload";
    TermLength "term-length" ANY [P] TermLength "aeron.term.buffer.length, aeron.ipc.term.buffer.length"
        "length of each of the three term buffers";
    InitialTermId "init-term-id" ANY [P] Int32 "random"
        "initial term id; with term-id and term-offset, the start position: all three or none";
    TermId "term-id" ANY [P] Int32 "init-term-id"
        "term id of the start position";
    TermOffset "term-offset" ANY [P] TermOffset "0"
        "term offset of the start position";
    SessionId "session-id" ANY [P S] SessionId "P: generated, S: any"
        "publications: session id to use; subscriptions: accept only this session";
    Ttl "ttl" UDP [P] Ttl "aeron.socket.multicast.ttl"
        "time to live of multicast datagrams; 0 keeps the system default";
    Reliable "reliable" UDP [S] Bool "aeron.reliable.stream"
        "retransmit lost frames; false fills gaps with padding";
    Linger "linger" UDP [P] Duration "aeron.publication.linger.timeout"
        "time a drained publication lingers to serve late retransmit requests";
    Alias "alias" ANY [P S] Text "none"
        "label for humans; the driver ignores it";
    CongestionControl "cc" UDP [S] Text "aeron.CongestionControl.supplier"
        "congestion control of images: static or cubic";
    FlowControl "fc" UDP [P] FlowControl "by kind of channel"
        "flow control of multicast and multi-destination channels: max, min or tagged, with options";
    GroupTag "gtag" UDP [S] Int64 "aeron.receiver.group.tag"
        "group tag sent in status messages";
    Sparse "sparse" ANY [P S] Bool "aeron.term.buffer.sparse.file"
        "true: pages of log files are reserved as the stream proceeds; false: all at creation";
    Eos "eos" UDP [P] Bool "true"
        "signal the end of the stream when the publication closes";
    Tether "tether" ANY [S] Bool "aeron.tether.subscriptions"
        "tether the subscriber; false drops a slow subscriber instead of letting it hold back the stream";
    Group "group" UDP [S] TriState "aeron.receiver.group.consideration"
        "whether the receiver is part of a group, which affects NAK delays";
    Rejoin "rejoin" ANY [S] Bool "aeron.rejoin.stream"
        "accept a stream again after its image became unavailable";
    SpiesSimulateConnection "ssc" UDP [P] Bool "aeron.spies.simulate.connection"
        "spies alone make the publication connected";
    SendBuffer "so-sndbuf" UDP [P] !destinations Size "aeron.socket.so_sndbuf"
        "SO_SNDBUF of the channel's socket";
    ReceiveBuffer "so-rcvbuf" UDP [P S] !destinations Size "aeron.socket.so_rcvbuf"
        "SO_RCVBUF of the channel's socket";
    ReceiverWindow "rcv-wnd" UDP [S] !destinations Size "aeron.rcv.initial.window.length"
        "initial receiver window, at most half a term";
    MediaReceiveTimestamp "media-rcv-ts-offset" UDP [S] TimestampOffset "none"
        "offset at which the receive time of the network interface is written";
    ChannelReceiveTimestamp "channel-rcv-ts-offset" UDP [S] TimestampOffset "none"
        "offset at which the receive time of the driver is written";
    ChannelSendTimestamp "channel-snd-ts-offset" UDP [P] TimestampOffset "none"
        "offset at which the send time of the driver is written";
    ResponseEndpoint "response-endpoint" UDP [] Address "none"
        "ignored; the official drivers do not read it either";
    ResponseCorrelationId "response-correlation-id" ANY [P] !destinations ResponseCorrelationId "-1"
        "correlates the channels of requests and responses";
    NakDelay "nak-delay" UDP [S] Duration "aeron.nak.unicast.delay"
        "delay before the first NAK for a gap, unicast only";
    UntetheredWindowLimitTimeout "untethered-window-limit-timeout" ANY [P S] Duration "aeron.untethered.window.limit.timeout"
        "time an untethered subscriber may stay below the window before it is dropped";
    UntetheredLingerTimeout "untethered-linger-timeout" ANY [P S] Duration "aeron.untethered.linger.timeout"
        "time a dropped untethered subscriber lingers before it rests";
    UntetheredRestingTimeout "untethered-resting-timeout" ANY [P S] Duration "aeron.untethered.resting.timeout"
        "time an untethered subscriber rests before it becomes active again";
    MaxResend "max-resend" UDP [P] MaxResend "aeron.max.resend"
        "maximum concurrent retransmits; unicast always uses one";
    StreamId "stream-id" ANY [P] Int32 "none"
        "stream id for archive and applications; the driver uses that of the command";
    PublicationWindow "pub-wnd" ANY [P] Size "aeron.publication.term.window.length, aeron.ipc.publication.term.window.length"
        "maximum bytes the publisher may be ahead of its consumers: at least the mtu, at most half a term";
    TransportSecurity "ats" UDP [P S] Bool "by taran.secure.mode"
        "as taran.secure where transport security is configured; else true is rejected";
    // Not a parameter of Aeron, whose drivers ignore it.
    Backend "taran.net" UDP [P S R] Text "that of the driver's option taran.net"
        "network backend that opens the channel's sockets";
    Secure "taran.secure" UDP [P S R] Bool "by taran.secure.mode"
        "whether the channel is secured; all that share its endpoint must agree";
    SecureLabel "taran.label" UDP [P S R] Text "the group and port, or the port"
        "name of the channel inside the handshake, the same at both ends";
    SecurePeers "taran.peers" UDP [P S R] Text "all trusted"
        "names of the trusted peers that may be at the other end, separated by commas";
}

impl Param {
    /// Returns the declaration of the parameter.
    #[must_use]
    pub fn spec(self) -> &'static ParamSpec {
        &Self::ALL[self as usize]
    }

    /// Returns the key in the URI.
    #[must_use]
    pub fn key(self) -> &'static str {
        self.spec().key
    }

    /// Returns the parameter with this key.
    #[must_use]
    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|spec| spec.key == key)
            .map(|spec| spec.param)
    }

    /// Returns the known key most similar to an unknown one, if one is similar enough: one edit in a short key, up to three
    /// in a long one.
    #[must_use]
    pub fn nearest_key(key: &str) -> Option<&'static str> {
        let max_edits = match key.len() {
            0..=2 => return None,
            3..=5 => 1,
            6..=8 => 2,
            _ => 3,
        };
        Self::ALL
            .iter()
            .filter_map(|spec| Some((distance(key, spec.key)?, spec.key)))
            .filter(|(edits, _)| *edits <= max_edits)
            .min_by_key(|(edits, _)| *edits)
            .map(|(_, key)| key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_table_has_consistent_rows() {
        for (index, spec) in Param::ALL.iter().enumerate() {
            assert_eq!(spec.param as usize, index);
            assert_eq!(Param::from_key(spec.key), Some(spec.param));
            assert_eq!(spec.param.key(), spec.key);
        }
        assert_eq!(Param::from_key("initial-term-id"), None);
        assert_eq!(Param::from_key("Endpoint"), None);
    }

    #[test]
    fn nearest_key_finds_misspelt_and_skips_foreign_keys() {
        for (key, nearest) in [
            ("endpiont", Some("endpoint")),
            ("Endpoint", Some("endpoint")),
            ("term_lenght", Some("term-length")),
            ("initial-term-id", Some("init-term-id")),
            ("tag", Some("tags")),
            ("mtus", Some("mtu")),
            ("foo", None),
            ("id", None),
            ("customer", None),
            ("my-application-key", None),
        ] {
            assert_eq!(Param::nearest_key(key), nearest, "{key}");
        }
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
