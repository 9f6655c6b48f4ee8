// SPDX-License-Identifier: Apache-2.0
//! Channels after name resolution: address roles and canonical form
//! (docs/spec/wire.md §2.3, §2.4, §2.15, docs/spec/uri-and-configuration.md §1.6).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::channel::UdpChannel;
use super::error::UriError;

/// Addresses that a channel sends to and binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressRoles {
    /// True if the endpoint is a multicast group.
    pub multicast: bool,
    /// Data address: destination of a publication, bound address of a unicast subscription.
    pub remote_data: SocketAddr,
    /// Control address: the control group of a multicast channel, else the same as `remote_data`.
    pub remote_control: SocketAddr,
    /// Address that the socket of a publication binds.
    pub local: SocketAddr,
}

impl UdpChannel {
    /// Returns the address roles of a channel. `endpoint` and `control` are the resolved addresses of those parameters;
    /// `local` is the result of [`UdpChannel::select_local`].
    ///
    /// # Errors
    /// Code 11 if the endpoint is a multicast group with an even last byte.
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

    /// Returns the canonical form, which identifies channels that share an endpoint. `next_unique` supplies a number
    /// for a channel that cannot be shared; it is not called if `destination` is true.
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

    /// Checks that this channel, whose tag refers to an existing endpoint, matches that endpoint. `existing_roles` are
    /// the current addresses of the endpoint.
    ///
    /// # Errors
    /// Code 11 if control mode or addresses differ.
    pub fn check_tag_match(
        &self,
        roles: &AddressRoles,
        existing: &UdpChannel,
        existing_roles: &AddressRoles,
    ) -> Result<(), UriError> {
        let tag = self.tags.channel.unwrap_or_default();
        let mismatch = |what: &str| {
            Err(UriError::rejected(format!(
                "matching tag {tag} has mismatched {what}: {} <> {}; use the parameters of the tagged channel, only \
                 its tag, or another tag",
                self.uri, existing.uri
            )))
        };
        if self.control_mode.is_some() && self.control_mode != existing.control_mode {
            return mismatch("control-mode");
        }
        let is_any = |address: SocketAddr| address.ip().is_unspecified() && address.port() == 0;
        let matches_any = is_any(roles.remote_data) && is_any(roles.local);
        if matches_any
            || (roles.remote_data == existing_roles.remote_data
                && roles.local == existing_roles.local)
        {
            Ok(())
        } else {
            mismatch("endpoint or control")
        }
    }
}

pub(super) fn wildcard(ipv6: bool) -> SocketAddr {
    let ip = if ipv6 {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        IpAddr::from(Ipv4Addr::UNSPECIFIED)
    };
    SocketAddr::new(ip, 0)
}

/// Checks the multicast convention: data groups have an odd last byte, and the next address is the control group.
pub(super) fn check_multicast_data(text: &str, ip: IpAddr) -> Result<(), UriError> {
    if ip.is_multicast() && last_byte(ip).is_multiple_of(2) {
        return Err(UriError::rejected(format!(
            "Multicast data address must be odd: endpoint={text}, choose a group whose last byte is odd"
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
mod tests;
