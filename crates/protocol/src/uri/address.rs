// SPDX-License-Identifier: Apache-2.0
//! Syntax of addresses and interfaces in channels. Names are not resolved here (docs/spec/uri-and-configuration.md
//! §1.4).

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::value::Requirement;

/// Host: a literal address, or a name to be resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// Literal address. The scope of an IPv6 address is dropped.
    Ip(IpAddr),
    /// Host name.
    Name(String),
}

impl Host {
    /// Returns the literal address, if the host is one.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Host::Ip(ip) => Some(*ip),
            Host::Name(_) => None,
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
            Host::Ip(ip) => write!(f, "{ip}"),
            Host::Name(name) => f.write_str(name),
        }
    }
}

/// Address `host:port`, with IPv6 addresses in brackets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// Text as given. It identifies channels that share an endpoint.
    pub text: String,
    /// Host.
    pub host: Host,
    /// Port; 0 means any, where allowed.
    pub port: u16,
}

impl Address {
    /// Parses `host:port`.
    ///
    /// # Errors
    /// Description of the valid values.
    pub fn parse(text: &str) -> Result<Self, Requirement> {
        let (host, rest) = split_host(text)?;
        let port = match rest.strip_prefix(':') {
            Some(port) => parse_port(port)?,
            None => return Err("host:port, the port is missing".into()),
        };
        Ok(Address {
            text: text.to_owned(),
            host,
            port,
        })
    }

    /// Returns the socket address, if the host is a literal address.
    #[must_use]
    pub fn literal(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.host.ip()?, self.port))
    }

    /// Returns true if the host is a literal multicast address.
    #[must_use]
    pub fn is_multicast(&self) -> bool {
        self.host.ip().is_some_and(|ip| ip.is_multicast())
    }
}

/// Local interface of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Interface {
    /// `addr[:port][/len]` or `name[:port][/len]`: the interface that has an address in this network.
    Network {
        /// Address, or a host name to be resolved.
        host: Host,
        /// Port that the send socket binds; 0 means any.
        port: u16,
        /// Number of leading bits that must match; `None` means all.
        prefix_length: Option<u8>,
    },
    /// `{name}[:port]`: the first address of this interface in the address family of the endpoint.
    Named {
        /// Interface name.
        name: String,
        /// Port that the send socket binds; 0 means any.
        port: u16,
    },
}

impl Interface {
    /// Parses the value of `interface`.
    ///
    /// # Errors
    /// Description of the valid values.
    pub fn parse(text: &str) -> Result<Self, Requirement> {
        if let Some(rest) = text.strip_prefix('{') {
            return match rest.split_once('}') {
                Some(("", _)) | None => Err("{interface name} with an optional :port".into()),
                Some((name, rest)) => Ok(Interface::Named {
                    name: name.to_owned(),
                    port: parse_optional_port(rest)?,
                }),
            };
        }
        let (address, prefix_length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let (host, rest) = split_host(address)?;
        let port = parse_optional_port(rest)?;
        let most = if matches!(host, Host::Ip(IpAddr::V4(_))) {
            32
        } else {
            128
        };
        let prefix_length = match prefix_length {
            None => None,
            Some(length) => match parse_decimal(length) {
                Some(n) if n <= most => u8::try_from(n).ok(),
                _ => return Err(format!("a prefix length in 0..{most}").into()),
            },
        };
        Ok(Interface::Network {
            host,
            port,
            prefix_length,
        })
    }

    /// Returns the port that the send socket binds; 0 means any.
    #[must_use]
    pub fn port(&self) -> u16 {
        match self {
            Interface::Network { port, .. } | Interface::Named { port, .. } => *port,
        }
    }
}

/// Splits `host`, `[v6]` or `[v6%scope]` from the rest: empty, or `:port`.
fn split_host(text: &str) -> Result<(Host, &str), Requirement> {
    if let Some(rest) = text.strip_prefix('[') {
        let (address, rest) = rest
            .split_once(']')
            .ok_or("an IPv6 address with a closing bracket")?;
        let address = address
            .split_once('%')
            .map_or(address, |(address, _scope)| address);
        let ip: Ipv6Addr = address
            .parse()
            .map_err(|_| Requirement::from("an IPv6 address between the brackets"))?;
        return Ok((Host::Ip(ip.into()), rest));
    }
    let end = text.find(':').unwrap_or(text.len());
    let (host, rest) = text.split_at(end);
    if rest[1.min(rest.len())..].contains(':') {
        return Err("brackets around an IPv6 address, such as [::1]:40123".into());
    }
    if host.is_empty() {
        return Err("a host before the port".into());
    }
    if host.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("a host without blanks".into());
    }
    Ok((
        host.parse()
            .map_or_else(|_| Host::Name(host.to_owned()), Host::Ip),
        rest,
    ))
}

fn parse_optional_port(rest: &str) -> Result<u16, Requirement> {
    match rest.strip_prefix(':') {
        Some(port) => parse_port(port),
        None if rest.is_empty() => Ok(0),
        None => Err("only :port after the address".into()),
    }
}

fn parse_port(text: &str) -> Result<u16, Requirement> {
    parse_decimal(text)
        .and_then(|n| u16::try_from(n).ok())
        .ok_or_else(|| "a port in 0..65535".into())
}

fn parse_decimal(text: &str) -> Option<u32> {
    // `parse` would take a sign.
    if text.bytes().all(|b| b.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
