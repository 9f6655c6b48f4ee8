// SPDX-License-Identifier: Apache-2.0
//! Decision which channels are secured (docs/spec/transport-security.md §4.4): by options and the channel alone.

use std::net::SocketAddr;

use taran_protocol::uri::{ChannelKind, UdpChannel};

use crate::conductor::Failure;
use crate::conductor::ResolvedChannel;

/// Value of `taran.secure.mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "secure"),
    allow(dead_code, reason = "without transport security the mode is off")
)]
pub(crate) enum Mode {
    /// Nothing is secured.
    #[default]
    Off,
    /// The channels that ask for it are secured.
    Channels,
    /// Every UDP channel is secured.
    All,
}

impl Mode {
    /// Returns the mode with a name of the option, which was checked when it was set.
    #[cfg(feature = "secure")]
    pub(crate) fn from_name(name: &str) -> Self {
        match name {
            "channels" => Self::Channels,
            "all" => Self::All,
            _ => Self::Off,
        }
    }
}

/// Receivers that may have a stream, of those that the trust store allows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "secure"),
    allow(dead_code, reason = "without transport security nothing is granted")
)]
pub(crate) enum StreamAudience {
    /// All of them.
    All,
    /// The peer that requested it.
    Peer(String),
    /// None: nothing was requested.
    Empty,
}

/// Security of an endpoint. All channels that share the endpoint agree with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChannelSecurity {
    /// Every datagram is sealed.
    pub(crate) is_secured: bool,
    /// Name of the channel in the handshake, if the channel gives one.
    pub(crate) label: Option<Box<str>>,
    /// Names of the peers that may be at the other end; none for all that are trusted.
    pub(crate) peers: Option<Vec<Box<str>>>,
}

/// End of a channel in this driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A send endpoint.
    Sender,
    /// A receive endpoint, or a destination of one.
    Receiver,
}

/// Decides about a channel. `may_be_plain` tells whether `taran.secure.allow.plain` allows an address to be plain.
pub(crate) fn decide(
    mode: Mode,
    resolved: &ResolvedChannel,
    end: End,
    may_be_plain: impl FnOnce(SocketAddr) -> bool,
) -> Result<ChannelSecurity, Failure> {
    let channel = &resolved.channel;
    let text = resolved.text();
    let is_secured = match (mode, channel.secure) {
        (Mode::Off, Some(true)) => {
            return Err(Failure::generic(format!(
                "a secured channel needs taran.secure.mode=channels or all, which is off: channel={text}"
            )));
        }
        // Where destinations are added by command, each of them is decided about: the socket alone leads nowhere.
        (Mode::All, Some(false))
            if channel.kind() != ChannelKind::Manual
                && !may_be_plain(matched_address(resolved, end)) =>
        {
            return Err(Failure::generic(format!(
                "taran.secure=false needs an entry of taran.secure.allow.plain that covers {}, because \
                 taran.secure.mode=all: channel={text}",
                matched_address(resolved, end)
            )));
        }
        (Mode::Off, _) => false,
        (Mode::Channels, asked) => asked.unwrap_or(false),
        (Mode::All, asked) => asked.unwrap_or(true),
    };
    Ok(ChannelSecurity {
        is_secured,
        label: channel.label.clone(),
        peers: channel.peers.clone(),
    })
}

/// Returns the failure of a plain channel that leads, or would lead from now on, to an address that
/// `taran.secure.allow.plain` does not cover.
#[cfg(feature = "secure")]
pub(crate) fn not_plain(address: SocketAddr, channel: &str) -> Failure {
    Failure::generic(format!(
        "a channel with taran.secure=false leads to {address}, which no entry of taran.secure.allow.plain covers, and \
         taran.secure.mode=all: add an entry for it, or leave taran.secure=false out: channel={channel}"
    ))
}

/// Checks that a channel agrees with the endpoint that it shares. What the channel leaves out is that of the endpoint.
pub(crate) fn check_shared(
    existing: &ChannelSecurity,
    requested: &ChannelSecurity,
    channel: &UdpChannel,
) -> Result<(), Failure> {
    let inherits = channel.kind() == ChannelKind::ByTag;
    let differs =
        if existing.is_secured != requested.is_secured && (channel.secure.is_some() || !inherits) {
            "taran.secure"
        } else if requested.label.is_some() && requested.label != existing.label {
            "taran.label"
        } else if (requested.peers.is_some() || !inherits) && requested.peers != existing.peers {
            "taran.peers"
        } else {
            return Ok(());
        };
    Err(Failure::generic(format!(
        "{differs} does not match that of the existing endpoint, use the same value or another endpoint: channel={}",
        channel.uri.as_str()
    )))
}

/// Decides about a destination of a subscription. It agrees with its subscription, because one plain destination would let
/// any source write into the image of a secured one.
pub(crate) fn destination_security(
    endpoint: &ChannelSecurity,
    decided: ChannelSecurity,
    destination: &ResolvedChannel,
) -> Result<ChannelSecurity, Failure> {
    let asked = destination.channel.secure.is_some();
    if asked && decided.is_secured != endpoint.is_secured {
        return Err(Failure::generic(format!(
            "taran.secure={} does not match that of the subscription, of which it is a destination: channel={}",
            decided.is_secured,
            destination.text()
        )));
    }
    Ok(ChannelSecurity {
        is_secured: endpoint.is_secured,
        label: decided.label,
        peers: decided.peers.or_else(|| endpoint.peers.clone()),
    })
}

/// Returns the address at which receivers find a sender, if the channel has one. That of a unicast publication only binds its socket:
/// it leads to its endpoint.
fn control_of(resolved: &ResolvedChannel, end: End) -> Option<SocketAddr> {
    let is_unicast = !resolved.has_destinations() && !resolved.is_response();
    resolved
        .explicit_control()
        .filter(|_| end == End::Receiver || !is_unicast)
}

/// Returns the address of a channel that patterns are matched against: that of its data, or of its control.
pub(crate) fn matched_address(resolved: &ResolvedChannel, end: End) -> SocketAddr {
    match control_of(resolved, end) {
        Some(control) => control,
        None if resolved.has_destinations() => resolved.roles.local,
        None => resolved.roles.remote_data,
    }
}

/// Returns the label of a channel in the handshake (docs/spec/transport-security.md §2.6). `bound` is the address of the
/// socket.
#[cfg(feature = "secure")]
pub(crate) fn label(resolved: &ResolvedChannel, end: End, bound: SocketAddr) -> String {
    if let Some(label) = &resolved.channel.label {
        return label.to_string();
    }
    if resolved.roles.multicast {
        return resolved.roles.remote_data.to_string();
    }
    let port = match control_of(resolved, end) {
        Some(control) => control.port(),
        None => resolved.roles.remote_data.port(),
    };
    if port == 0 { bound.port() } else { port }.to_string()
}

#[cfg(test)]
#[cfg(feature = "secure")]
mod tests {
    use taran_core::interface::Interface;
    use taran_protocol::uri::{Channel, Role};

    use super::*;

    /// Returns a channel of literal addresses.
    fn resolved(uri: &str, end: End) -> ResolvedChannel {
        let role = match end {
            End::Sender => Role::Publication,
            End::Receiver => Role::Subscription,
        };
        let channel = Channel::read(uri, role).unwrap().udp().unwrap().clone();
        let [endpoint, control] = [&channel.endpoint, &channel.control].map(|address| {
            let address = address.as_ref()?;
            Some(SocketAddr::new(address.host.ip()?, address.port))
        });
        let interface = Interface {
            name: "eth0".to_owned(),
            index: 1,
            address: [10, 0, 0, 1].into(),
            prefix: 24,
            up: true,
            multicast: true,
            loopback: false,
        };
        let interfaces = [interface];
        let local = channel
            .select_local(endpoint, &interfaces, |_| None)
            .unwrap();
        ResolvedChannel {
            roles: channel.roles(endpoint, control, local).unwrap(),
            control,
            interface_index: 0,
            backend: "".into(),
            channel,
        }
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    /// Port that the system chose for the socket.
    const BOUND: u16 = 50_000;

    /// Checks address and label of a channel at one end.
    #[track_caller]
    fn expect(uri: &str, end: End, matched: &str, named: &str) {
        let resolved = resolved(uri, end);
        assert_eq!(matched_address(&resolved, end), address(matched), "{uri}");
        let bound = SocketAddr::from(([10, 0, 0, 1], BOUND));
        assert_eq!(label(&resolved, end, bound), named, "{uri}");
    }

    #[test]
    fn unicast_publication_with_control_has_label_and_address_of_its_endpoint() {
        let publication = "aeron:udp?endpoint=10.0.0.2:40123|control=10.0.0.1:40200";
        expect(publication, End::Sender, "10.0.0.2:40123", "40123");
        // Its receiver names no control address: both ends have the same label.
        let subscription = "aeron:udp?endpoint=10.0.0.2:40123";
        expect(subscription, End::Receiver, "10.0.0.2:40123", "40123");
    }

    #[test]
    fn subscription_with_control_has_label_and_address_of_its_control() {
        let subscription = "aeron:udp?endpoint=10.0.0.2:40123|control=10.0.0.1:40200";
        expect(subscription, End::Receiver, "10.0.0.1:40200", "40200");
    }

    #[test]
    fn dynamic_and_response_publications_have_label_and_address_of_their_control() {
        for mode in ["dynamic", "response"] {
            let uri = format!("aeron:udp?control=10.0.0.1:40200|control-mode={mode}");
            expect(&uri, End::Sender, "10.0.0.1:40200", "40200");
        }
    }

    #[test]
    fn multicast_channel_has_label_and_address_of_its_group() {
        let group = "aeron:udp?endpoint=224.20.30.39:40123|interface=10.0.0.0/24";
        for end in [End::Sender, End::Receiver] {
            expect(group, end, "224.20.30.39:40123", "224.20.30.39:40123");
        }
    }

    #[test]
    fn port_of_zero_is_named_by_that_of_the_socket() {
        let any_port = "aeron:udp?endpoint=10.0.0.2:0";
        expect(any_port, End::Receiver, "10.0.0.2:0", "50000");
    }

    #[test]
    fn given_label_comes_before_all_addresses() {
        let uri = "aeron:udp?endpoint=10.0.0.2:40123|taran.label=prices";
        for end in [End::Sender, End::Receiver] {
            expect(uri, end, "10.0.0.2:40123", "prices");
        }
    }

    #[test]
    fn plain_unicast_publication_is_compared_with_the_address_that_it_leads_to() {
        let publication =
            "aeron:udp?endpoint=10.0.0.2:40123|control=10.0.0.1:40200|taran.secure=false";
        let of = |allowed: &str| {
            let allowed = address(allowed);
            let may_be_plain = |asked| asked == allowed;
            let publication = resolved(publication, End::Sender);
            decide(Mode::All, &publication, End::Sender, may_be_plain)
        };
        assert!(!of("10.0.0.2:40123").unwrap().is_secured);
        let refused = of("10.0.0.1:40200").unwrap_err().text;
        assert!(refused.contains("covers 10.0.0.2:40123"), "{refused}");
    }
}
