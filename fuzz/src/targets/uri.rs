// SPDX-License-Identifier: Apache-2.0
//! Channels as text: a parsed channel is unchanged when it is printed and parsed again, and an error names the invalid part.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use taran_core::interface::Interface;
use taran_protocol::option::OptionSet;
use taran_protocol::uri::{
    Channel, ChannelUri, ChannelUriBuilder, FlowControlParams, MAX_URI_LENGTH, Param,
    PublicationDefaults, PublicationParams, Role, SubscriptionDefaults, SubscriptionParams,
    UdpChannel, UriError, value,
};

use crate::allocation;

/// Memory limit in bytes: a channel is parsed into copies of its parts, and printed again by the derivations.
const COST_PER_BYTE: usize = 400;
const COST: usize = 64 * 1024;

thread_local! {
    static DEFAULTS: (PublicationDefaults, SubscriptionDefaults) = {
        let options = OptionSet::driver();
        (options.publication_defaults(), options.subscription_defaults())
    };
}

/// Parses a channel in every role.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    // Texts of the command ring may have any length; beyond the longest channel the cost stays the same.
    let length = text.len().min(2 * MAX_URI_LENGTH);
    DEFAULTS.with(|_| ()); // created here so that it is not counted
    allocation::within(COST + COST_PER_BYTE * length, || read(text));
}

fn read(text: &str) {
    let values = [value::parse_size(text), value::parse_duration_ns(text)];
    let [size, duration] = values.map(|value| value.ok().filter(|value| *value >= 0));
    if let Some(size) = size {
        assert_eq!(value::parse_size(&value::format_size(size)), Ok(size));
    }
    if let Some(duration) = duration {
        let printed = value::format_duration_ns(duration);
        assert_eq!(value::parse_duration_ns(&printed), Ok(duration));
    }
    DEFAULTS.with(|(publication, _)| {
        let _ = FlowControlParams::multicast(Some(text), &publication.flow_control);
    });
    if let Ok(uri) = ChannelUri::parse(text) {
        assert_eq!(uri.to_string(), text);
        derive(&uri);
    }
    for role in [
        Role::Publication,
        Role::Subscription,
        Role::SendDestination,
        Role::ReceiveDestination,
    ] {
        match Channel::read(text, role) {
            Ok(channel) => understand(&channel, role),
            Err(error) => explains(&error),
        }
    }
}

/// Checks that a channel rebuilt from a parsed one parses again, with the same parameters.
fn derive(uri: &ChannelUri) {
    let built = ChannelUriBuilder::from_uri(uri).build();
    if let Ok(built) = &built {
        let meant: Vec<_> = uri.parameters().collect();
        for (key, value) in &meant {
            assert_eq!(built.get_key(key), Some(*value), "{key} of {built}");
        }
    }
    if let Ok(one) = uri.with_session_id(-5) {
        assert_eq!(one.get(Param::SessionId), Some("-5"));
        let without = one.without(Param::SessionId.key());
        assert!(without.is_ok_and(|uri| uri.get(Param::SessionId).is_none()));
    }
    if let Ok(destination) = uri.destination("localhost:5") {
        assert_eq!(destination.get(Param::Endpoint), Some("localhost:5"));
    }
    let _ = uri.with_endpoint_port("127.0.0.1:40123");
}

/// Interprets a parsed channel as the driver does.
fn understand(channel: &Channel, role: Role) {
    match role {
        Role::Publication => {
            match DEFAULTS.with(|(defaults, _)| PublicationParams::new(channel, defaults)) {
                Ok(params) => {
                    assert!(params.term_length.is_power_of_two());
                    assert!(params.mtu <= params.term_length && params.mtu.is_multiple_of(32));
                    assert!(params.window <= params.term_length);
                    if let Some(position) = params.position {
                        assert!(position.term_offset <= params.term_length);
                    }
                }
                Err(error) => explains(&error),
            }
        }
        Role::Subscription => {
            let params = DEFAULTS.with(|(_, defaults)| SubscriptionParams::new(channel, defaults));
            if let Err(error) = params {
                explains(&error);
            }
        }
        Role::SendDestination | Role::ReceiveDestination => {}
    }
    if let Some(udp) = channel.udp() {
        place(udp);
    }
}

/// Checks the addresses, with every name resolved to 10.0.0.7.
fn place(udp: &UdpChannel) {
    let resolved = |port| SocketAddr::from((Ipv4Addr::new(10, 0, 0, 7), port));
    let address = |address: &taran_protocol::uri::Address| {
        address.literal().unwrap_or_else(|| resolved(address.port))
    };
    let endpoint = udp.endpoint.as_ref().map(address);
    let control = udp.control.as_ref().map(address);
    let interfaces = [
        local("lo", [127, 0, 0, 1], 8),
        local("eth0", [10, 0, 0, 1], 24),
    ];
    let chosen = udp.select_local(endpoint, &interfaces, |_| Some(IpAddr::from([10, 0, 0, 1])));
    let Ok(chosen) = chosen else { return };
    match udp.roles(endpoint, control, chosen) {
        Ok(roles) => {
            assert_eq!(
                roles.multicast,
                roles.remote_data.ip().is_multicast() && endpoint.is_some()
            );
            let form = udp.canonical_form(&roles, false, || 1);
            assert_eq!(form, udp.canonical_form(&roles, false, || 1));
        }
        Err(error) => explains(&error),
    }
}

fn local(name: &str, octets: [u8; 4], prefix: u8) -> Interface {
    Interface {
        name: name.to_owned(),
        index: 1,
        address: octets.into(),
        prefix,
        up: true,
        multicast: true,
        loopback: name == "lo",
    }
}

/// Checks that an error fits into the response to the client, which truncates it.
fn explains(error: &UriError) {
    let text = error.to_string();
    assert!(
        !text.is_empty() && text.len() <= 3 * MAX_URI_LENGTH + 512,
        "{text}"
    );
}
