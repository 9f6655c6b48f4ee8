//! Addresses and interfaces as they are written in channels (docs/spec/uri-and-configuration.md §1.4). Names are not resolved here.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::value::Requirement;

/// A host: a literal address, or a name that somebody has to resolve.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A literal address. The scope of an IPv6 address is dropped.
    Ip(IpAddr),
    /// A name.
    Name(String),
}

impl Host {
    /// The literal address.
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

/// `host:port`, where IPv6 addresses stand in brackets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The text as it was given: channels that share an endpoint are recognised by it.
    pub text: String,
    /// The host.
    pub host: Host,
    /// The port; 0 means "any", where that is allowed.
    pub port: u16,
}

impl Address {
    /// Reads `host:port`.
    ///
    /// # Errors
    /// What the value should have been.
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

    /// The socket address, if the host is a literal address.
    #[must_use]
    pub fn literal(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.host.ip()?, self.port))
    }

    /// Whether the host is a literal multicast address.
    #[must_use]
    pub fn is_multicast(&self) -> bool {
        self.host.ip().is_some_and(|ip| ip.is_multicast())
    }
}

/// Where a channel's socket lives on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Interface {
    /// `addr[:port][/len]` or `name[:port][/len]`: the interface that owns an address of this network.
    Network {
        /// The address, or a name to be resolved to one.
        host: Host,
        /// Port for the send socket to bind, 0 = any.
        port: u16,
        /// Leading bits that must match; `None` = all of them.
        prefix_length: Option<u8>,
    },
    /// `{name}[:port]`: the first address of this interface of the endpoint's family.
    Named {
        /// The interface's name.
        name: String,
        /// Port for the send socket to bind, 0 = any.
        port: u16,
    },
}

impl Interface {
    /// Reads the value of `interface`.
    ///
    /// # Errors
    /// What the value should have been.
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

    /// The port for the send socket to bind, 0 = any.
    #[must_use]
    pub fn port(&self) -> u16 {
        match self {
            Interface::Network { port, .. } | Interface::Named { port, .. } => *port,
        }
    }
}

/// Splits `host`, or `[v6]` or `[v6%scope]`, from what follows it: nothing, or `:port`.
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
        None => Err("nothing but :port behind the address".into()),
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
