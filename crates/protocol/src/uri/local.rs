// SPDX-License-Identifier: Apache-2.0
//! Selection of the local address of a channel from the interfaces of this machine (docs/spec/wire.md §2.6,
//! docs/spec/uri-and-configuration.md §1.4).

use std::net::{IpAddr, SocketAddr};

use taran_core::interface::Interface as LocalInterface;

use super::address::{Host, Interface};
use super::channel::UdpChannel;
use super::error::UriError;
use super::resolved::wildcard;

impl UdpChannel {
    /// Selects the local address from the interfaces of this machine. `endpoint` determines address family and
    /// multicast. `resolve` resolves a host name given as `interface` to an address of that family.
    ///
    /// # Errors
    /// Code 11 if no interface matches, 9 if the name cannot be resolved.
    pub fn select_local(
        &self,
        endpoint: Option<SocketAddr>,
        interfaces: &[LocalInterface],
        resolve: impl FnOnce(&str) -> Option<IpAddr>,
    ) -> Result<SocketAddr, UriError> {
        let multicast = endpoint.is_some_and(|e| e.ip().is_multicast());
        let ipv6 = endpoint.is_some_and(|e| e.is_ipv6());
        select(
            self.interface.as_ref(),
            ipv6,
            multicast,
            interfaces,
            resolve,
        )
        .map_err(|e| e.in_channel(self.uri.as_str()))
    }
}

/// Maximum number of interfaces listed in an error text; some machines have hundreds.
const LISTED_MAX: usize = 16;

fn select(
    wanted: Option<&Interface>,
    ipv6: bool,
    multicast: bool,
    interfaces: &[LocalInterface],
    resolve: impl FnOnce(&str) -> Option<IpAddr>,
) -> Result<SocketAddr, UriError> {
    let (search, port, prefix_length) = match wanted {
        Some(Interface::Named { name, port }) => {
            return interfaces
                .iter()
                .find(|i| i.name == *name && i.address.is_ipv6() == ipv6)
                .map(|i| SocketAddr::new(i.address, *port))
                .ok_or_else(|| {
                    UriError::rejected(format!(
                        "unknown interface {name}, must be one of this machine's with an address of the endpoint's \
                         family: {}",
                        list_interfaces(interfaces)
                    ))
                });
        }
        Some(Interface::Network {
            host,
            port,
            prefix_length,
        }) => {
            let ip = match host {
                Host::Ip(ip) => *ip,
                Host::Name(name) => {
                    resolve(name).ok_or_else(|| UriError::unknown_host("interface", name))?
                }
            };
            (ip, *port, *prefix_length)
        }
        None => (wildcard(ipv6).ip(), 0, None),
    };
    if search.is_unspecified() && !multicast {
        return Ok(SocketAddr::new(search, port));
    }
    let prefix_length = match prefix_length {
        Some(length) => length,
        None if search.is_unspecified() => 0,
        None => address_bits(search),
    };
    // `max_by_key` returns the last of equal elements; reversed, so that the first one is selected.
    interfaces
        .iter()
        .rev()
        .filter(|i| i.up && (!multicast || i.multicast || i.loopback))
        .filter(|i| same_network(i.address, search, prefix_length))
        .max_by_key(|i| (!i.loopback, i.prefix))
        .map(|i| SocketAddr::new(i.address, port))
        .ok_or_else(|| {
            UriError::rejected(format!(
                "no interface with an address in {search}/{prefix_length}{}, available: {}",
                if multicast {
                    " that supports multicast"
                } else {
                    ""
                },
                list_interfaces(interfaces)
            ))
        })
}

/// Returns a list of the available interfaces for an error text.
#[must_use]
pub fn list_interfaces(interfaces: &[LocalInterface]) -> String {
    let mut known: Vec<String> = interfaces
        .iter()
        .take(LISTED_MAX)
        .map(|i| format!("{} {}/{}", i.name, i.address, i.prefix))
        .collect();
    if interfaces.len() > LISTED_MAX {
        known.push("and more ('ip address' lists them)".to_owned());
    }
    known.join(", ")
}

fn address_bits(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

fn same_network(a: IpAddr, b: IpAddr, prefix_length: u8) -> bool {
    let (a, b, bits) = match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits()), u128::from(b.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
        _ => return false,
    };
    let ignored = bits - u32::from(prefix_length).min(bits);
    // A shift by all 128 bits yields `None` on both sides: prefix length 0 matches every address.
    a.checked_shr(ignored) == b.checked_shr(ignored)
}

#[cfg(test)]
mod tests;
