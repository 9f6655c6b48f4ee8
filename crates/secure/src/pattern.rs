// SPDX-License-Identifier: Apache-2.0
//! Patterns of addresses and streams in a trust file (docs/spec/transport-security.md §4.3).

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

/// Reason why a text is no pattern.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// The address is none of the forms.
    #[error(
        "expected '*', an IPv4 address or prefix, an IPv6 address or prefix in brackets, or a name"
    )]
    Address,
    /// The prefix is longer than the address, or bits behind it are set.
    #[error("a prefix has at most the bits of its address, and no bit set behind them")]
    Prefix,
    /// The ports are no number, range or `*`.
    #[error("expected ports as N, N-M or '*'")]
    Ports,
    /// The streams are no number, range or `*`.
    #[error("expected streams as N, N-M or '*'")]
    Streams,
}

taran_core::debug_is_display!(PatternError);

/// Address part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Address {
    Any,
    Prefix(IpAddr, u8),
    /// A name matches nothing until its addresses are known.
    Name(String, Vec<IpAddr>),
}

/// Pattern `ADDRESS[:PORTS][#STREAMS]`. A part left out matches everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    address: Address,
    ports: RangeInclusive<u16>,
    streams: RangeInclusive<i32>,
}

const ALL_PORTS: RangeInclusive<u16> = 0..=u16::MAX;
const ALL_STREAMS: RangeInclusive<i32> = i32::MIN..=i32::MAX;

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// The text is no pattern.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let (text, streams) = match text.split_once('#') {
            None => (text, ALL_STREAMS),
            Some((rest, streams)) => (
                rest,
                range(streams, ALL_STREAMS).ok_or(PatternError::Streams)?,
            ),
        };
        let (address, ports) = match split_address(text)? {
            (address, None) => (address, ALL_PORTS),
            (address, Some(ports)) => {
                (address, range(ports, ALL_PORTS).ok_or(PatternError::Ports)?)
            }
        };
        Ok(Self {
            address,
            ports,
            streams,
        })
    }

    /// Returns true if the pattern matches a stream of a channel.
    #[must_use]
    pub fn matches(&self, channel: SocketAddr, stream_id: i32) -> bool {
        self.matches_channel(channel) && self.streams.contains(&stream_id)
    }

    /// Returns true if the pattern matches any stream of a channel.
    #[must_use]
    pub fn matches_channel(&self, channel: SocketAddr) -> bool {
        self.ports.contains(&channel.port()) && self.matches_address(channel.ip().to_canonical())
    }

    fn matches_address(&self, ip: IpAddr) -> bool {
        match &self.address {
            Address::Any => true,
            Address::Prefix(prefix, length) => is_below(*prefix, *length, ip),
            Address::Name(_, addresses) => addresses.contains(&ip),
        }
    }

    /// Returns the name whose addresses have to be looked up, if there is one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.address {
            Address::Name(name, _) => Some(name),
            _ => None,
        }
    }

    /// Sets the addresses of the pattern's name; without a name, nothing changes.
    pub fn set_addresses(&mut self, found: &[IpAddr]) {
        if let Address::Name(_, addresses) = &mut self.address {
            *addresses = found.iter().map(IpAddr::to_canonical).collect();
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Any => formatter.write_str("*")?,
            Address::Name(name, _) => formatter.write_str(name)?,
            Address::Prefix(ip, length) => {
                let text = if *length == bits(*ip) {
                    ip.to_string()
                } else {
                    format!("{ip}/{length}")
                };
                if ip.is_ipv6() {
                    write!(formatter, "[{text}]")?;
                } else {
                    formatter.write_str(&text)?;
                }
            }
        }
        if self.ports != ALL_PORTS {
            write!(formatter, ":{}", Range(&self.ports))?;
        }
        if self.streams != ALL_STREAMS {
            write!(formatter, "#{}", Range(&self.streams))?;
        }
        Ok(())
    }
}

struct Range<'a, T>(&'a RangeInclusive<T>);

impl<T: fmt::Display + PartialEq> fmt::Display for Range<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.start() == self.0.end() {
            write!(formatter, "{}", self.0.start())
        } else {
            write!(formatter, "{}-{}", self.0.start(), self.0.end())
        }
    }
}

/// Splits the address from the ports. IPv6 addresses stand in brackets, so that a colon always introduces ports.
fn split_address(text: &str) -> Result<(Address, Option<&str>), PatternError> {
    if let Some(rest) = text.strip_prefix('[') {
        let (inside, after) = rest.split_once(']').ok_or(PatternError::Address)?;
        let address = ip_address(inside).ok_or(PatternError::Address)??;
        if !matches!(address, Address::Prefix(IpAddr::V6(_), _)) {
            return Err(PatternError::Address);
        }
        if after.is_empty() {
            return Ok((address, None));
        }
        let ports = after.strip_prefix(':').ok_or(PatternError::Address)?;
        return Ok((address, Some(ports)));
    }
    let (address, ports) = match text.split_once(':') {
        None => (text, None),
        Some((address, ports)) => (address, Some(ports)),
    };
    if address == "*" {
        return Ok((Address::Any, ports));
    }
    if let Some(parsed) = ip_address(address) {
        return Ok((parsed?, ports));
    }
    // A name has a letter, so that a mistyped address is an error and not a name.
    let is_name = address
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
        && address.bytes().any(|byte| byte.is_ascii_alphabetic())
        && address.len() <= 253;
    if is_name {
        Ok((Address::Name(address.to_owned(), Vec::new()), ports))
    } else {
        Err(PatternError::Address)
    }
}

/// Parses an address or prefix; none if it is neither.
fn ip_address(text: &str) -> Option<Result<Address, PatternError>> {
    let (ip, length) = match text.split_once('/') {
        None => (text.parse::<IpAddr>().ok()?, None),
        Some((ip, length)) => (ip.parse::<IpAddr>().ok()?, Some(length)),
    };
    let length = match length {
        None => bits(ip),
        Some(length) => match length.parse::<u8>() {
            Ok(length) if length <= bits(ip) && !length_text_is_odd(text) => length,
            _ => return Some(Err(PatternError::Prefix)),
        },
    };
    if masked(ip, length) != value(ip) {
        return Some(Err(PatternError::Prefix));
    }
    Some(Ok(Address::Prefix(ip, length)))
}

/// Returns true if a prefix length is written with a sign or leading zeros.
fn length_text_is_odd(text: &str) -> bool {
    text.rsplit_once('/').is_some_and(|(_, length)| {
        !length.bytes().all(|byte| byte.is_ascii_digit())
            || (length.len() > 1 && length.starts_with('0'))
    })
}

const fn bits(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

/// Returns an address as a number.
fn value(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => ip.to_bits().into(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

/// Returns the first `length` bits of an address, the others zero.
fn masked(ip: IpAddr, length: u8) -> u128 {
    let rest = u32::from(bits(ip) - length);
    if rest >= 128 {
        0
    } else {
        value(ip) >> rest << rest
    }
}

fn is_below(prefix: IpAddr, length: u8, ip: IpAddr) -> bool {
    prefix.is_ipv4() == ip.is_ipv4() && masked(ip, length) == value(prefix)
}

/// Parses `N`, `N-M` or `*`. The minus sign of a number is no separator.
fn range<T>(text: &str, all: RangeInclusive<T>) -> Option<RangeInclusive<T>>
where
    T: std::str::FromStr + PartialOrd + Copy,
{
    if text == "*" {
        return Some(all);
    }
    // `str::parse` takes a plus sign.
    if text.contains('+') {
        return None;
    }
    if let Ok(number) = text.parse::<T>() {
        return Some(number..=number);
    }
    let at = text.get(1..)?.find('-')? + 1;
    let (first, last) = (text[..at].parse::<T>(), text[at + 1..].parse::<T>());
    match (first, last) {
        (Ok(first), Ok(last)) if first <= last => Some(first..=last),
        _ => None,
    }
}

/// Comma-separated list of patterns. An empty list matches nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patterns(Vec<Pattern>);

impl Patterns {
    /// Parses a list.
    ///
    /// # Errors
    /// An element is no pattern; with its offset in bytes.
    pub fn parse(text: &str) -> Result<Self, (usize, PatternError)> {
        let mut patterns = Vec::new();
        let mut offset = 0;
        for element in text.split(',') {
            patterns.push(Pattern::parse(element).map_err(|error| (offset, error))?);
            offset += element.len() + 1;
        }
        Ok(Self(patterns))
    }

    /// Returns true if a pattern matches a stream of a channel.
    #[must_use]
    pub fn matches(&self, channel: SocketAddr, stream_id: i32) -> bool {
        self.0
            .iter()
            .any(|pattern| pattern.matches(channel, stream_id))
    }

    /// Returns true if a pattern matches any stream of a channel.
    #[must_use]
    pub fn matches_channel(&self, channel: SocketAddr) -> bool {
        self.0
            .iter()
            .any(|pattern| pattern.matches_channel(channel))
    }

    /// Returns true if there is no pattern.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Lends the patterns, for looking up their names.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Pattern> {
        self.0.iter_mut()
    }
}

impl fmt::Display for Patterns {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, pattern) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            write!(formatter, "{separator}{pattern}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, channel: &str, stream_id: i32) -> bool {
        let channel = channel.parse().expect("an address and a port");
        Pattern::parse(pattern)
            .expect("a pattern")
            .matches(channel, stream_id)
    }

    #[test]
    fn pattern_matches_address_ports_and_streams() {
        for (pattern, channel, stream_id, expected) in [
            ("*", "10.1.2.3:40", -7, true),
            ("*", "[2001:db8::1]:40", 7, true),
            ("10.1.0.0/16", "10.1.2.3:40", 7, true),
            ("10.1.0.0/16", "10.2.2.3:40", 7, false),
            ("10.1.2.3", "10.1.2.3:40", 7, true),
            ("10.1.2.3", "10.1.2.4:40", 7, false),
            ("10.1.2.3", "[::ffff:10.1.2.3]:40", 7, true),
            ("0.0.0.0/0", "[2001:db8::1]:40", 7, false),
            ("0.0.0.0/0", "1.2.3.4:40", 7, true),
            ("[2001:db8::/32]", "[2001:db8::1]:40", 7, true),
            ("[2001:db8::/32]", "[2001:db9::1]:40", 7, false),
            ("[::/0]:40", "[2001:db9::1]:40", 7, true),
            ("*:40", "10.1.2.3:40", 7, true),
            ("*:40", "10.1.2.3:41", 7, false),
            ("*:40-50", "10.1.2.3:50", 7, true),
            ("*:40-50#1", "10.1.2.3:50", 2, false),
            ("*#-5--3", "10.1.2.3:50", -4, true),
            ("*#-5--3", "10.1.2.3:50", -2, false),
            ("*:*#*", "10.1.2.3:50", -2, true),
            ("host.example", "10.1.2.3:50", 1, false),
        ] {
            assert_eq!(
                matches(pattern, channel, stream_id),
                expected,
                "{pattern} {channel} {stream_id}"
            );
        }
    }

    #[test]
    fn pattern_of_a_name_matches_its_addresses_only() {
        let mut pattern = Pattern::parse("host.example:40").unwrap();
        assert_eq!(pattern.name(), Some("host.example"));
        pattern.set_addresses(&["10.1.2.3".parse().unwrap()]);
        assert!(pattern.matches("10.1.2.3:40".parse().unwrap(), 1));
        assert!(!pattern.matches("10.1.2.4:40".parse().unwrap(), 1));
    }

    #[test]
    fn texts_that_are_no_pattern_are_refused() {
        use PatternError::{Address, Ports, Prefix, Streams};
        for (text, error) in [
            ("", Address),
            ("10.1.0", Address),
            ("10.1.0.256", Address),
            ("2001:db8::1", Address),
            ("[10.1.0.0]", Address),
            ("[::1", Address),
            ("[::1]40", Address),
            ("10.1.0.1/16", Prefix),
            ("10.1.0.0/33", Prefix),
            ("10.1.0.0/016", Prefix),
            ("10.1.0.0/+16", Prefix),
            ("*:65536", Ports),
            ("*:", Ports),
            ("*:5-4", Ports),
            ("*:+5", Ports),
            ("*#", Streams),
            ("*#a", Streams),
            ("*#1-", Streams),
            ("ho st", Address),
        ] {
            assert_eq!(Pattern::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn empty_list_of_patterns_matches_nothing() {
        assert!(!Patterns::default().matches("10.1.2.3:40".parse().unwrap(), 1));
        assert_eq!(Patterns::parse("*,"), Err((2, PatternError::Address)));
    }

    proptest! {
        #[test]
        fn patterns_printed_parse_to_themselves(text in "[*0-9a-f.:#/\\[\\],-]{0,40}") {
            if let Ok(patterns) = Patterns::parse(&text) {
                prop_assert_eq!(Patterns::parse(&patterns.to_string()), Ok(patterns));
            }
        }
    }
}
