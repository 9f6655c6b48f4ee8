// SPDX-License-Identifier: Apache-2.0
//! Resolution of channels to socket addresses.

use std::net::{IpAddr, SocketAddr};

use taran_protocol::error_code::ErrorCode;
use taran_protocol::uri::{
    Address, AddressRoles, ChannelKind, Host, Interface, UdpChannel, list_interfaces,
};

use super::super::command_error::CommandError;
use super::super::deferred_commands::{Prerequisite, ResolvedPrerequisites};
use super::super::failure::Failure;
use super::super::names::{literal, preferred};
use super::sockets::Sockets;

/// A channel with resolved host names.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedChannel {
    pub(crate) channel: UdpChannel,
    pub(crate) roles: AddressRoles,
    /// Resolved `control` address.
    pub(crate) control: Option<SocketAddr>,
    /// System index of the local interface for a group; zero if none was looked up.
    pub(crate) interface_index: u32,
    /// Backend that opens its sockets: that of the channel, or the driver's default.
    pub(crate) backend: Box<str>,
}

impl ResolvedChannel {
    /// Returns true if a publication to it can have many receivers: a multicast group, or several destinations.
    pub(crate) fn is_group(&self) -> bool {
        self.roles.multicast || self.has_destinations()
    }

    /// Returns true if a publication to it sends to multiple destinations.
    pub(crate) fn has_destinations(&self) -> bool {
        matches!(
            self.channel.kind(),
            ChannelKind::Manual | ChannelKind::Dynamic
        )
    }

    /// Returns true for `control-mode=response`: data is sent to the peer that elicits a SETUP.
    pub(crate) fn is_response(&self) -> bool {
        self.channel.kind() == ChannelKind::Response
    }

    /// Returns the URI as given by the client.
    pub(crate) fn text(&self) -> &str {
        self.channel.uri.as_str()
    }

    /// Returns the group to which receivers of a multicast channel send control frames.
    pub(crate) fn control_group(&self) -> Option<SocketAddr> {
        self.roles.multicast.then_some(self.roles.remote_control)
    }

    /// Returns the address from which SETUPs are elicited. A multicast sender needs none: it listens to its control
    /// group.
    pub(crate) fn explicit_control(&self) -> Option<SocketAddr> {
        self.control.filter(|_| !self.roles.multicast)
    }
}

/// Resolves all host names of a channel, or returns those to look up first as the missing prerequisite.
pub(crate) fn resolve(
    channel: UdpChannel,
    prerequisites: &ResolvedPrerequisites,
    sockets: &mut Sockets,
) -> Result<ResolvedChannel, CommandError> {
    let mut names = AddressResolver {
        channel: channel.uri.as_str(),
        prerequisites,
        missing: Vec::new(),
    };
    let endpoint = names.address("endpoint", channel.endpoint.as_ref())?;
    let control = names.address("control", channel.control.as_ref())?;
    let interface = match &channel.interface {
        Some(Interface::Network {
            host: host @ Host::Name(_),
            ..
        }) => names.host("interface", host),
        _ => Ok(None),
    };
    let interface = interface.map_err(|failure| with_interfaces(failure, sockets))?;
    if !names.missing.is_empty() {
        return Err(CommandError::Pending(Prerequisite::Hosts(names.missing)));
    }
    // The interfaces are needed only to select one, or to join a group.
    let needs_interfaces =
        channel.interface.is_some() || endpoint.is_some_and(|e| e.ip().is_multicast());
    let interfaces = if needs_interfaces {
        sockets
            .network
            .interfaces()
            .map_err(|error| Failure::generic(error.to_string()))?
    } else {
        Vec::new()
    };
    let local = channel
        .select_local(endpoint, &interfaces, |_| interface)
        .map_err(Failure::from)?;
    let interface_index = interfaces
        .iter()
        .find(|found| found.address == local.ip())
        .map_or(0, |found| found.index);
    let roles = channel
        .roles(endpoint, control, local)
        .map_err(Failure::from)?;
    let backend = channel.backend.as_ref().unwrap_or(&sockets.backend).clone();
    Ok(ResolvedChannel {
        channel,
        roles,
        control,
        interface_index,
        backend,
    })
}

/// Adds the interfaces of this machine to a failure about `interface`.
fn with_interfaces(failure: Failure, sockets: &mut Sockets) -> Failure {
    // Without the list, the failure still says which value is wrong.
    let Ok(interfaces) = sockets.network.interfaces() else {
        return failure;
    };
    Failure::new(
        failure.code,
        format!(
            "{}; interface takes an address, a network such as 10.0.0.0/8, or a name in braces such as {{eth0}}, of this \
             machine's: {}",
            failure.text,
            list_interfaces(&interfaces)
        ),
    )
}

/// Returns the address of a destination's endpoint; `None` if its name cannot be resolved.
pub(crate) fn resolve_endpoint(
    destination: &UdpChannel,
    prerequisites: &ResolvedPrerequisites,
) -> Result<Option<SocketAddr>, CommandError> {
    let mut names = AddressResolver {
        channel: destination.uri.as_str(),
        prerequisites,
        missing: Vec::new(),
    };
    let address = names
        .address("endpoint", destination.endpoint.as_ref())
        .unwrap_or(None);
    if names.missing.is_empty() {
        Ok(address)
    } else {
        Err(CommandError::Pending(Prerequisite::Hosts(names.missing)))
    }
}

/// Resolves names from completed lookups and collects those without a lookup.
struct AddressResolver<'a> {
    channel: &'a str,
    prerequisites: &'a ResolvedPrerequisites,
    missing: Vec<String>,
}

impl AddressResolver<'_> {
    fn address(
        &mut self,
        key: &str,
        address: Option<&Address>,
    ) -> Result<Option<SocketAddr>, Failure> {
        let Some(address) = address else {
            return Ok(None);
        };
        let ip = self.host(key, &address.host)?;
        Ok(ip.map(|ip| SocketAddr::new(ip, address.port)))
    }

    fn host(&mut self, key: &str, host: &Host) -> Result<Option<IpAddr>, Failure> {
        let name = match literal(host) {
            Ok(ip) => return Ok(Some(ip)),
            Err(name) => name,
        };
        match self.prerequisites.host(name) {
            Some(Ok(found)) => match preferred(found) {
                Some(ip) => Ok(Some(ip)),
                None => Err(self.unknown(key, name, "no address is known for it")),
            },
            Some(Err(reason)) => Err(self.unknown(key, name, reason)),
            None => {
                if !self.missing.iter().any(|missing| missing == name) {
                    self.missing.push(name.to_owned());
                }
                Ok(None)
            }
        }
    }

    fn unknown(&self, key: &str, name: &str, reason: &str) -> Failure {
        Failure::new(
            ErrorCode::UnknownHost,
            format!(
                "unknown host: {key} names {name}: {reason}; check the spelling, and run 'getent hosts {name}' \
                 on the driver's machine: channel={}",
                self.channel
            ),
        )
    }
}
