//! Interfaces of the machine, and the choice of one (`spec/02 §2.6`).

use std::fmt;
use std::net::IpAddr;

use crate::NetError;

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The family of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

/// One address of one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The interface's name, such as `eth0`.
    pub name: String,
    /// The system's number of the interface.
    pub index: u32,
    /// The address.
    pub address: IpAddr,
    /// Length of the network part of the address in bits.
    pub prefix: u8,
    /// True if the interface is up.
    pub up: bool,
    /// True if the interface can send multicast.
    pub multicast: bool,
    /// True if the interface is the machine talking to itself.
    pub loopback: bool,
}

/// The interface with an address whose first `prefix` bits are those of `address`.
///
/// Looks at interfaces that are up, and multicast capable or loopback. Others are preferred to loopback, then longer
/// network parts to shorter ones, then earlier entries to later ones. `0.0.0.0/0` finds the default for multicast.
pub fn find_by_prefix(
    interfaces: &[Interface],
    address: IpAddr,
    prefix: u8,
) -> Result<&Interface, NetError> {
    interfaces
        .iter()
        .enumerate()
        .filter(|(_, candidate)| candidate.up && (candidate.multicast || candidate.loopback))
        .filter(|(_, candidate)| same_network(candidate.address, address, prefix))
        .max_by_key(|&(index, candidate)| {
            (
                !candidate.loopback,
                candidate.prefix,
                std::cmp::Reverse(index),
            )
        })
        .map(|(_, found)| found)
        .ok_or_else(|| NetError::NoInterface {
            address,
            prefix,
            known: describe(interfaces),
        })
}

/// The first address of that family on the interface called `name`.
pub fn find_by_name<'a>(
    interfaces: &'a [Interface],
    name: &str,
    family: Family,
) -> Result<&'a Interface, NetError> {
    interfaces
        .iter()
        .find(|candidate| candidate.name == name && Family::of(candidate.address) == family)
        .ok_or_else(|| NetError::UnknownInterface {
            name: name.to_owned(),
            family,
            known: describe(interfaces),
        })
}

/// True if two addresses of one family agree in their first `prefix` bits; a prefix beyond the address means all bits.
fn same_network(left: IpAddr, right: IpAddr, prefix: u8) -> bool {
    match (left, right) {
        (IpAddr::V4(left), IpAddr::V4(right)) => {
            let differing = left.to_bits() ^ right.to_bits();
            differing.leading_zeros() >= u32::from(prefix).min(u32::BITS)
        }
        (IpAddr::V6(left), IpAddr::V6(right)) => {
            let differing = left.to_bits() ^ right.to_bits();
            differing.leading_zeros() >= u32::from(prefix).min(u128::BITS)
        }
        _ => false,
    }
}

fn describe(interfaces: &[Interface]) -> String {
    let entries: Vec<String> = interfaces
        .iter()
        .map(|entry| format!("{} {}/{}", entry.name, entry.address, entry.prefix))
        .collect();
    if entries.is_empty() {
        "none".to_owned()
    } else {
        entries.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, address: &str, prefix: u8) -> Interface {
        Interface {
            name: name.to_owned(),
            index: 1,
            address: address.parse().unwrap(),
            prefix,
            up: true,
            multicast: name != "lo",
            loopback: name == "lo",
        }
    }

    fn machine() -> Vec<Interface> {
        vec![
            entry("lo", "127.0.0.1", 8),
            entry("eth0", "10.1.2.3", 16),
            entry("eth1", "10.1.9.9", 24),
            entry("eth1", "fd00::9", 64),
            entry("lo", "::1", 128),
        ]
    }

    fn found(interfaces: &[Interface], address: &str, prefix: u8) -> Option<IpAddr> {
        let address = address.parse().unwrap();
        find_by_prefix(interfaces, address, prefix)
            .ok()
            .map(|found| found.address)
    }

    #[test]
    fn a_longer_network_part_wins_and_loopback_comes_last() {
        let interfaces = machine();
        assert_eq!(found(&interfaces, "0.0.0.0", 0), "10.1.9.9".parse().ok());
        assert_eq!(found(&interfaces, "10.1.0.0", 16), "10.1.9.9".parse().ok());
        assert_eq!(found(&interfaces, "10.1.2.0", 24), "10.1.2.3".parse().ok());
        assert_eq!(found(&interfaces, "127.0.0.0", 8), "127.0.0.1".parse().ok());
        assert_eq!(found(&interfaces, "::", 0), "fd00::9".parse().ok());
        assert_eq!(found(&interfaces, "10.1.2.3", 255), "10.1.2.3".parse().ok());
    }

    #[test]
    fn an_interface_that_is_down_or_cannot_multicast_is_not_chosen() {
        let mut interfaces = machine();
        interfaces[2].up = false;
        assert_eq!(found(&interfaces, "0.0.0.0", 0), "10.1.2.3".parse().ok());
        interfaces[1].multicast = false;
        assert_eq!(found(&interfaces, "0.0.0.0", 0), "127.0.0.1".parse().ok());
    }

    #[test]
    fn the_error_says_what_there_is() {
        let interfaces = machine();
        let error = find_by_prefix(&interfaces, "192.168.0.0".parse().unwrap(), 16).unwrap_err();
        assert!(error.to_string().contains("192.168.0.0/16"), "{error}");
        assert!(error.to_string().contains("eth0 10.1.2.3/16"), "{error}");
        let error = find_by_name(&interfaces, "eth0", Family::V6).unwrap_err();
        assert!(
            error.to_string().contains("'eth0' with an IPv6 address"),
            "{error}"
        );
    }

    #[test]
    fn a_name_finds_the_address_of_the_family() {
        let interfaces = machine();
        let address = |name, family| {
            find_by_name(&interfaces, name, family)
                .unwrap()
                .address
                .to_string()
        };
        assert_eq!(address("eth1", Family::V4), "10.1.9.9");
        assert_eq!(address("eth1", Family::V6), "fd00::9");
        assert_eq!(address("lo", Family::V6), "::1");
    }
}
