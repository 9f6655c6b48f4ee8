//! What follows from a channel once its names are addresses: roles, canonical form, local interface
//! (spec/02 §2.3, §2.4, §2.6, §2.15, spec/03 §1.4, §1.6).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::address::{Host, Interface};
use super::channel::UdpChannel;
use super::error::UriError;

/// The addresses a channel sends to and binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressRoles {
    /// Whether the endpoint is a multicast group.
    pub multicast: bool,
    /// Where data flows: destination of a publication, bound address of a unicast subscription.
    pub remote_data: SocketAddr,
    /// Where control frames flow: the control group of a multicast channel, else the same as `remote_data`.
    pub remote_control: SocketAddr,
    /// What a publication's socket binds.
    pub local: SocketAddr,
}

impl UdpChannel {
    /// Assigns the addresses of a channel: `endpoint` and `control` are what those parameters were resolved to, `local`
    /// what [`UdpChannel::select_local`] found.
    ///
    /// # Errors
    /// Code 11 when the endpoint is a multicast group with an even last byte.
    pub fn roles(
        &self,
        endpoint: Option<SocketAddr>,
        control: Option<SocketAddr>,
        local: SocketAddr,
    ) -> Result<AddressRoles, UriError> {
        if let (Some(address), Some(text)) = (endpoint, &self.endpoint) {
            check_multicast_data(&text.text, address.ip())
                .map_err(|e| e.in_channel(self.uri.as_str()))?;
            if address.ip().is_multicast() {
                return Ok(AddressRoles {
                    multicast: true,
                    remote_data: address,
                    remote_control: SocketAddr::new(control_group(address.ip()), address.port()),
                    local,
                });
            }
        }
        let remote = endpoint.unwrap_or_else(|| wildcard(control.is_some_and(|c| c.is_ipv6())));
        Ok(AddressRoles {
            multicast: false,
            remote_data: remote,
            remote_control: remote,
            local: control.unwrap_or(local),
        })
    }

    /// The text by which channels that share an endpoint are recognised. `next_unique` is asked for a number where the
    /// channel cannot be shared; `destination` says that this is a destination, which needs none.
    pub fn canonical_form(
        &self,
        roles: &AddressRoles,
        destination: bool,
        next_unique: impl FnOnce() -> u64,
    ) -> String {
        if roles.multicast {
            return format!("UDP-{}-{}", roles.local, roles.remote_data);
        }
        let local = match &self.control {
            Some(control) => control.text.clone(),
            None => roles.local.to_string(),
        };
        let remote = match &self.endpoint {
            Some(endpoint) => endpoint.text.clone(),
            None => roles.remote_data.to_string(),
        };
        let any_port =
            |address: &Option<super::Address>| address.as_ref().is_some_and(|a| a.port == 0);
        let unique = (self.endpoint.is_none() && self.control.is_none())
            || any_port(&self.endpoint)
            || any_port(&self.control);
        match (unique && !destination, self.tags.channel) {
            (false, _) => format!("UDP-{local}-{remote}"),
            (true, Some(tag)) => format!("UDP-{local}-{remote}#{tag}"),
            (true, None) => format!("UDP-{local}-{remote}-{}", next_unique()),
        }
    }

    /// Checks that this channel, whose tag named an existing endpoint, agrees with it. `existing_roles` are the
    /// endpoint's present addresses.
    ///
    /// # Errors
    /// Code 11 when control mode or addresses differ.
    pub fn check_tag_match(
        &self,
        roles: &AddressRoles,
        existing: &UdpChannel,
        existing_roles: &AddressRoles,
    ) -> Result<(), UriError> {
        let mismatch = |what: &str| {
            Err(UriError::rejected(format!(
                "matching tag but different {what}: channel={} existingChannel={}",
                self.uri, existing.uri
            )))
        };
        if self.control_mode.is_some() && self.control_mode != existing.control_mode {
            return mismatch("control-mode");
        }
        let is_any = |address: SocketAddr| address.ip().is_unspecified() && address.port() == 0;
        let anything = is_any(roles.remote_data) && is_any(roles.local);
        if anything
            || (roles.remote_data == existing_roles.remote_data
                && roles.local == existing_roles.local)
        {
            Ok(())
        } else {
            mismatch("endpoint, control or interface")
        }
    }

    /// Chooses the local address among this machine's interfaces. `endpoint` decides on family and multicast;
    /// `resolve` turns a name given as `interface` into an address of the family.
    ///
    /// # Errors
    /// Code 11 when no interface fits, 9 when the name cannot be resolved.
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

/// An address of one of this machine's network interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalInterface {
    /// The interface's name.
    pub name: String,
    /// The address.
    pub address: IpAddr,
    /// Leading bits of the address that name the network.
    pub prefix_length: u8,
    /// Whether the interface is up.
    pub up: bool,
    /// Whether it can multicast.
    pub multicast: bool,
    /// Whether it is a loopback interface.
    pub loopback: bool,
}

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
                .ok_or_else(|| UriError::rejected(format!("unknown interface {name}, must be one of this machine's with an address of the endpoint's family")));
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
    interfaces
        .iter()
        .filter(|i| i.up && (!multicast || i.multicast || i.loopback))
        .filter(|i| same_network(i.address, search, prefix_length))
        .max_by_key(|i| (!i.loopback, i.prefix_length))
        .map(|i| SocketAddr::new(i.address, port))
        .ok_or_else(|| {
            UriError::rejected(format!(
                "no interface with an address in {search}/{prefix_length}{}",
                if multicast { " that can multicast" } else { "" }
            ))
        })
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
    // Shifting by all 128 bits is not defined; nothing is left to compare then.
    a.checked_shr(ignored) == b.checked_shr(ignored)
}

fn wildcard(ipv6: bool) -> SocketAddr {
    let ip = if ipv6 {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        IpAddr::from(Ipv4Addr::UNSPECIFIED)
    };
    SocketAddr::new(ip, 0)
}

/// Data flows to groups with an odd last byte, control frames to the next one.
pub(super) fn check_multicast_data(text: &str, ip: IpAddr) -> Result<(), UriError> {
    if ip.is_multicast() && last_byte(ip).is_multiple_of(2) {
        return Err(UriError::rejected(format!(
            "endpoint={text} is an even multicast address, the last byte must be odd"
        )));
    }
    Ok(())
}

fn last_byte(ip: IpAddr) -> u8 {
    match ip {
        IpAddr::V4(ip) => ip.octets()[3],
        IpAddr::V6(ip) => ip.octets()[15],
    }
}

fn control_group(data: IpAddr) -> IpAddr {
    match data {
        IpAddr::V4(ip) => {
            let mut octets = ip.octets();
            octets[3] = octets[3].wrapping_add(1);
            octets.into()
        }
        IpAddr::V6(ip) => {
            let mut octets = ip.octets();
            octets[15] = octets[15].wrapping_add(1);
            octets.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uri::Channel;

    fn channel(text: &str) -> UdpChannel {
        let Channel::Udp(channel) = Channel::for_publication(text).unwrap() else {
            panic!("{text} is no udp channel");
        };
        channel
    }

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn interface(name: &str, address: &str, prefix_length: u8, loopback: bool) -> LocalInterface {
        LocalInterface {
            name: name.into(),
            address: address.parse().unwrap(),
            prefix_length,
            up: true,
            multicast: !loopback,
            loopback,
        }
    }

    #[test]
    fn roles_and_canonical_forms() {
        let any = at("0.0.0.0:0");
        let form =
            |text: &str, endpoint: Option<&str>, control: Option<&str>, local: SocketAddr| {
                let channel = channel(text);
                let roles = channel
                    .roles(endpoint.map(at), control.map(at), local)
                    .unwrap();
                (channel.canonical_form(&roles, false, || 7), roles)
            };
        let (text, roles) = form(
            "aeron:udp?endpoint=localhost:5",
            Some("127.0.0.1:5"),
            None,
            any,
        );
        assert_eq!(text, "UDP-0.0.0.0:0-localhost:5");
        assert_eq!(
            (roles.remote_data, roles.remote_control, roles.local),
            (at("127.0.0.1:5"), at("127.0.0.1:5"), any)
        );

        let (text, roles) = form(
            "aeron:udp?endpoint=224.0.1.255:5",
            Some("224.0.1.255:5"),
            None,
            at("10.0.0.1:0"),
        );
        assert_eq!(text, "UDP-10.0.0.1:0-224.0.1.255:5");
        assert_eq!(roles.remote_control, at("224.0.1.0:5"));

        let (text, roles) = form(
            "aeron:udp?control=localhost:6|control-mode=dynamic",
            None,
            Some("[::1]:6"),
            any,
        );
        assert_eq!(text, "UDP-localhost:6-[::]:0");
        assert_eq!(
            (roles.local, roles.remote_data),
            (at("[::1]:6"), at("[::]:0"))
        );

        let (text, _) = form(
            "aeron:udp?control=a:0|control-mode=dynamic",
            None,
            Some("10.0.0.1:0"),
            any,
        );
        assert_eq!(text, "UDP-a:0-0.0.0.0:0-7");
        let (text, _) = form("aeron:udp?control-mode=manual|tags=3", None, None, any);
        assert_eq!(text, "UDP-0.0.0.0:0-0.0.0.0:0#3");
    }

    #[test]
    fn a_name_that_turns_out_to_be_an_even_group_is_refused() {
        assert!(
            channel("aeron:udp?endpoint=group:5")
                .roles(Some(at("224.0.1.2:5")), None, at("0.0.0.0:0"))
                .is_err()
        );
    }

    #[test]
    fn a_tag_must_agree_with_what_it_names() {
        let any = at("0.0.0.0:0");
        let existing = channel("aeron:udp?control-mode=dynamic|control=127.0.0.1:5|tags=200");
        let existing_roles = existing.roles(None, Some(at("127.0.0.1:5")), any).unwrap();
        let check = |text: &str, endpoint: Option<&str>, control: Option<&str>| {
            let new = channel(text);
            let roles = new.roles(endpoint.map(at), control.map(at), any).unwrap();
            new.check_tag_match(&roles, &existing, &existing_roles)
                .is_ok()
        };
        assert!(check("aeron:udp?tags=200", None, None));
        assert!(check(
            "aeron:udp?control-mode=dynamic|control=127.0.0.1:5|tags=200",
            None,
            Some("127.0.0.1:5")
        ));
        assert!(!check(
            "aeron:udp?control-mode=manual|control=127.0.0.1:5|tags=200",
            None,
            Some("127.0.0.1:5")
        ));
        assert!(!check(
            "aeron:udp?control=127.0.0.1:5|endpoint=127.0.0.1:6|tags=200",
            Some("127.0.0.1:6"),
            Some("127.0.0.1:5")
        ));
    }

    #[test]
    fn local_addresses() {
        let interfaces = [
            interface("lo", "127.0.0.1", 8, true),
            interface("lo", "::1", 128, true),
            interface("eth0", "10.1.2.3", 16, false),
            interface("eth1", "10.2.2.3", 24, false),
        ];
        let local = |text: &str, endpoint: &str| {
            channel(text)
                .select_local(Some(at(endpoint)), &interfaces, |name| {
                    (name == "localhost").then(|| "127.0.0.1".parse().unwrap())
                })
                .map_err(|e| e.text)
        };
        let unicast = "10.9.9.9:5";
        let group = "224.0.1.1:5";
        for (text, endpoint, expected) in [
            ("aeron:udp?endpoint=a:5", unicast, "0.0.0.0:0"),
            ("aeron:udp?endpoint=a:5", "[::1]:5", "[::]:0"),
            (
                "aeron:udp?endpoint=a:5|interface=0.0.0.0:7",
                unicast,
                "0.0.0.0:7",
            ),
            (
                "aeron:udp?endpoint=a:5|interface=localhost:24567",
                unicast,
                "127.0.0.1:24567",
            ),
            (
                "aeron:udp?endpoint=a:5|interface=10.1.0.0:8/16",
                unicast,
                "10.1.2.3:8",
            ),
            (
                "aeron:udp?endpoint=a:5|interface=10.0.0.0/8",
                unicast,
                "10.2.2.3:0",
            ),
            (
                "aeron:udp?endpoint=a:5|interface={lo}:9",
                unicast,
                "127.0.0.1:9",
            ),
            (
                "aeron:udp?endpoint=a:5|interface={lo}",
                "[::1]:5",
                "[::1]:0",
            ),
            ("aeron:udp?endpoint=a:5", group, "10.2.2.3:0"),
            (
                "aeron:udp?endpoint=a:5|interface=localhost",
                group,
                "127.0.0.1:0",
            ),
        ] {
            assert_eq!(local(text, endpoint), Ok(at(expected)), "{text}");
        }
        let unknown = local("aeron:udp?endpoint=a:5|interface={nope}:9", unicast).unwrap_err();
        assert!(unknown.contains("unknown interface nope"), "{unknown}");
        assert!(local("aeron:udp?endpoint=a:5|interface=1.2.3.4", unicast).is_err());
        assert!(
            local("aeron:udp?endpoint=a:5|interface=nosuch", unicast)
                .unwrap_err()
                .contains("unknown host")
        );
        assert!(local("aeron:udp?endpoint=a:5|interface={eth0}", "[::1]:5").is_err());
    }
}
