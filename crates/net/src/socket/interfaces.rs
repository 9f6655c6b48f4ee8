// SPDX-License-Identifier: Apache-2.0
//! The machine's network interfaces.

use std::net::IpAddr;

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use nix::sys::socket::SockaddrStorage;

use crate::{Interface, NetError};

/// Returns one entry for each IPv4 and IPv6 address of each interface.
pub(super) fn interfaces() -> Result<Vec<Interface>, NetError> {
    let entries = getifaddrs().map_err(|error| NetError::Query {
        what: "the network interfaces",
        source: error.into(),
    })?;
    Ok(entries.filter_map(describe).collect())
}

fn describe(entry: InterfaceAddress) -> Option<Interface> {
    let address = entry.address.as_ref().and_then(ip)?;
    let netmask = entry.netmask.as_ref().and_then(ip);
    Some(Interface {
        index: if_nametoindex(entry.interface_name.as_str()).unwrap_or(0),
        address: address.to_canonical(),
        prefix: netmask.map_or(0, prefix),
        up: entry.flags.contains(InterfaceFlags::IFF_UP),
        multicast: entry.flags.contains(InterfaceFlags::IFF_MULTICAST),
        loopback: entry.flags.contains(InterfaceFlags::IFF_LOOPBACK),
        name: entry.interface_name,
    })
}

/// Returns the address, or `None` for a family other than IPv4 and IPv6.
fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| v4.ip().into());
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| v6.ip().into()))
}

fn prefix(mask: IpAddr) -> u8 {
    let ones = match mask {
        IpAddr::V4(mask) => mask.to_bits().leading_ones(),
        IpAddr::V6(mask) => mask.to_bits().leading_ones(),
    };
    u8::try_from(ones).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_include_the_loopback() {
        let all = interfaces().unwrap();
        let loopback = all
            .iter()
            .find(|entry| entry.address == IpAddr::from([127, 0, 0, 1]))
            .unwrap();
        assert!(loopback.loopback && loopback.up);
        assert_eq!(loopback.prefix, 8);
        assert!(loopback.index > 0);
    }
}
