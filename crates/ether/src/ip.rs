// SPDX-License-Identifier: Apache-2.0
//! IPv4 and IPv6 packets: headers, options, extension headers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::FrameError;
use crate::checksum::{self, Sum};

/// Length of an IPv4 header without options.
pub const IPV4_LENGTH: usize = 20;
/// Length of an IPv6 header without extension headers.
pub const IPV6_LENGTH: usize = 40;

pub(crate) const ICMP: u8 = 1;
pub(crate) const IGMP: u8 = 2;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMPV6: u8 = 58;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;

/// "Don't fragment".
pub(crate) const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const RESERVED_FLAG: u16 = 0x8000;

/// Option "router alert" of IPv4 (RFC 2113).
pub(crate) const ROUTER_ALERT_V4: [u8; 4] = [0x94, 4, 0, 0];
/// Option "router alert" of IPv6 with the value for MLD (RFC 2711), padded to a header of hop-by-hop options.
pub(crate) const ROUTER_ALERT_V6: [u8; 6] = [5, 2, 0, 0, 1, 0];

/// Fields of the header of a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpHeader {
    /// Source, a unicast address. It is unspecified only in IGMP and ICMPv6 packets, where the protocols allow that.
    pub source: IpAddr,
    /// Destination.
    pub destination: IpAddr,
    /// Time to live, or hop limit.
    pub hop_limit: u8,
    /// Type of service, or traffic class.
    pub traffic_class: u8,
    /// True if the packet has the router alert option of its IP version.
    pub has_router_alert: bool,
    /// True if the packet is whole, but has a fragment header (RFC 6946).
    pub is_atomic_fragment: bool,
}

/// A received packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IpPacket<'a> {
    pub(crate) header: IpHeader,
    /// Protocol of the payload.
    pub(crate) protocol: u8,
    /// Payload without options, extension headers and padding.
    pub(crate) payload: &'a [u8],
}

impl<'a> IpPacket<'a> {
    /// Parses an IPv4 packet that may be followed by padding. The checksum of its header is verified where asked for.
    pub(crate) fn parse_v4(bytes: &'a [u8], verify: bool) -> Result<Self, FrameError> {
        let fixed = bytes
            .first_chunk::<IPV4_LENGTH>()
            .ok_or(FrameError::Ipv4Truncated)?;
        if fixed[0] >> 4 != 4 {
            return Err(FrameError::Ipv4Version);
        }
        let header_length = usize::from(fixed[0] & 0xF) * 4;
        let header = bytes.get(..header_length);
        let header = header.filter(|header| header.len() >= IPV4_LENGTH);
        let header = header.ok_or(FrameError::Ipv4HeaderLength)?;
        let total_length = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        let payload = bytes.get(header_length..total_length);
        let payload = payload.ok_or(FrameError::Ipv4TotalLength)?;
        if verify && checksum::checksum(header) != 0 {
            return Err(FrameError::Ipv4Checksum);
        }
        let source = Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]);
        let destination = Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19]);
        let protocol = fixed[9];
        let is_allowed = is_source_v4(source) || source.is_unspecified() && protocol == IGMP;
        if !is_allowed {
            return Err(FrameError::Ipv4Source);
        }
        if destination.is_loopback() || destination.is_unspecified() {
            return Err(FrameError::Ipv4Destination);
        }
        let has_router_alert = parse_options_v4(&header[IPV4_LENGTH..])?;
        let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
        if fragment & RESERVED_FLAG != 0 {
            return Err(FrameError::Ipv4Flags);
        }
        if fragment & !DONT_FRAGMENT != 0 {
            return Err(FrameError::Fragment);
        }
        Ok(Self {
            header: IpHeader {
                source: source.into(),
                destination: destination.into(),
                hop_limit: fixed[8],
                traffic_class: fixed[1],
                has_router_alert,
                is_atomic_fragment: false,
            },
            protocol,
            payload,
        })
    }

    /// Parses an IPv6 packet that may be followed by padding.
    pub(crate) fn parse_v6(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let (fixed, rest) = bytes
            .split_first_chunk::<IPV6_LENGTH>()
            .ok_or(FrameError::Ipv6Truncated)?;
        if fixed[0] >> 4 != 6 {
            return Err(FrameError::Ipv6Version);
        }
        let length = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        let payload = rest.get(..length).ok_or(FrameError::Ipv6PayloadLength)?;
        let (addresses, _) = fixed[8..].as_chunks::<16>();
        let [source, destination] = [addresses[0], addresses[1]].map(Ipv6Addr::from);
        if source.is_multicast() || source.is_loopback() {
            return Err(FrameError::Ipv6Source);
        }
        // Groups of the scopes 0 and 1 do not leave a node (RFC 4291, section 2.7).
        let is_node_local = destination.is_multicast() && destination.octets()[1] & 0xF <= 1;
        if destination.is_loopback() || destination.is_unspecified() || is_node_local {
            return Err(FrameError::Ipv6Destination);
        }
        let extensions = Extensions::parse(fixed[6], payload)?;
        if source.is_unspecified() && extensions.protocol != ICMPV6 {
            return Err(FrameError::Ipv6Source);
        }
        Ok(Self {
            header: IpHeader {
                source: source.into(),
                destination: destination.into(),
                hop_limit: fixed[7],
                traffic_class: fixed[0] << 4 | fixed[1] >> 4,
                has_router_alert: extensions.has_router_alert,
                is_atomic_fragment: extensions.is_atomic_fragment,
            },
            protocol: extensions.protocol,
            payload: extensions.payload,
        })
    }

    /// Returns the sum of the pseudo-header for a payload of this length.
    pub(crate) fn pseudo_header(&self, length: usize) -> Sum {
        pseudo_header(
            self.header.source,
            self.header.destination,
            self.protocol,
            length,
        )
    }
}

/// Returns the sum of the pseudo-header.
///
/// # Panics
/// If the addresses are of different IP versions.
pub(crate) fn pseudo_header(
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    length: usize,
) -> Sum {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            checksum::pseudo_header_v4(source, destination, protocol, length as u16)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            checksum::pseudo_header_v6(source, destination, protocol, length as u32)
        }
        _ => panic!("{source} and {destination} are of different IP versions"),
    }
}

/// Returns true if packets from the network may have this source address (RFC 1122, section 3.2.1.3).
fn is_source_v4(source: Ipv4Addr) -> bool {
    // 0.0.0.0/8, 127.0.0.0/8, groups, and 240.0.0.0/4 with the broadcast address.
    let first = source.octets()[0];
    first != 0 && first != 127 && first < 224
}

/// Returns true if the options include a router alert.
fn parse_options_v4(mut options: &[u8]) -> Result<bool, FrameError> {
    const END: u8 = 0;
    const NO_OPERATION: u8 = 1;
    const LOOSE_SOURCE_ROUTE: u8 = 131;
    const STRICT_SOURCE_ROUTE: u8 = 137;
    let mut has_router_alert = false;
    while let [kind, rest @ ..] = options {
        options = match *kind {
            END => break,
            NO_OPERATION => rest,
            LOOSE_SOURCE_ROUTE | STRICT_SOURCE_ROUTE => return Err(FrameError::Ipv4SourceRoute),
            _ => {
                let length = rest.first().copied().map_or(0, usize::from);
                if length < 2 {
                    return Err(FrameError::Ipv4Options);
                }
                let (option, behind) = options
                    .split_at_checked(length)
                    .ok_or(FrameError::Ipv4Options)?;
                has_router_alert |= option == ROUTER_ALERT_V4;
                behind
            }
        };
    }
    Ok(has_router_alert)
}

/// Content of the extension headers of IPv6, and the payload behind them.
struct Extensions<'a> {
    protocol: u8,
    payload: &'a [u8],
    has_router_alert: bool,
    is_atomic_fragment: bool,
}

impl<'a> Extensions<'a> {
    /// Walks over the extension headers. Each may appear once, destination options twice (RFC 8200, section 4.1), which
    /// bounds their number.
    fn parse(protocol: u8, payload: &'a [u8]) -> Result<Self, FrameError> {
        let mut read = Self {
            protocol,
            payload,
            has_router_alert: false,
            is_atomic_fragment: false,
        };
        let (mut is_first, mut has_routing, mut destination_options) = (true, false, 0);
        loop {
            match read.protocol {
                HOP_BY_HOP if is_first => {
                    let options = read.next_header()?;
                    read.has_router_alert = parse_options_v6(options)?;
                }
                HOP_BY_HOP => return Err(FrameError::Ipv6ExtensionOrder),
                DESTINATION_OPTIONS => {
                    destination_options += 1;
                    if destination_options > 2 {
                        return Err(FrameError::Ipv6ExtensionOrder);
                    }
                    let options = read.next_header()?;
                    parse_options_v6(options)?;
                }
                ROUTING => {
                    if std::mem::replace(&mut has_routing, true) {
                        return Err(FrameError::Ipv6ExtensionOrder);
                    }
                    let [_, segments_left, ..] = read.next_header()? else {
                        return Err(FrameError::Ipv6Extension);
                    };
                    if *segments_left != 0 {
                        return Err(FrameError::Ipv6Routing);
                    }
                }
                FRAGMENT => {
                    if read.is_atomic_fragment {
                        return Err(FrameError::Ipv6ExtensionOrder);
                    }
                    read.fragment_header()?;
                }
                _ => return Ok(read),
            }
            is_first = false;
        }
    }

    /// Steps over a header of type and length, and returns its data.
    fn next_header(&mut self) -> Result<&'a [u8], FrameError> {
        let [next, units, ..] = self.payload else {
            return Err(FrameError::Ipv6Extension);
        };
        let length = 8 * (usize::from(*units) + 1);
        let (header, rest) = self
            .payload
            .split_at_checked(length)
            .ok_or(FrameError::Ipv6Extension)?;
        (self.protocol, self.payload) = (*next, rest);
        Ok(&header[2..])
    }

    /// Steps over a fragment header of a packet that is whole nevertheless.
    fn fragment_header(&mut self) -> Result<(), FrameError> {
        let (header, rest) = self
            .payload
            .split_first_chunk::<8>()
            .ok_or(FrameError::Ipv6Extension)?;
        let [next, _, offset, flags, ..] = *header;
        if u16::from_be_bytes([offset, flags]) & 0xFFF9 != 0 {
            return Err(FrameError::Fragment);
        }
        (self.protocol, self.payload) = (next, rest);
        self.is_atomic_fragment = true;
        Ok(())
    }
}

/// Returns true if the options include a router alert. Unknown options are skipped where their type allows it (RFC 8200,
/// section 4.2).
fn parse_options_v6(mut options: &[u8]) -> Result<bool, FrameError> {
    const PAD_1: u8 = 0;
    const PAD_N: u8 = 1;
    const ROUTER_ALERT: u8 = 5;
    let mut has_router_alert = false;
    while let [kind, rest @ ..] = options {
        if *kind == PAD_1 {
            options = rest;
            continue;
        }
        let [length, data @ ..] = rest else {
            return Err(FrameError::Ipv6Options);
        };
        let (data, behind) = data
            .split_at_checked(usize::from(*length))
            .ok_or(FrameError::Ipv6Options)?;
        match *kind {
            PAD_N => {}
            ROUTER_ALERT if data.len() == 2 => has_router_alert = true,
            ROUTER_ALERT => return Err(FrameError::Ipv6Options),
            unknown if unknown >> 6 == 0 => {}
            _ => return Err(FrameError::Ipv6UnknownOption),
        }
        options = behind;
    }
    Ok(has_router_alert)
}

/// Writes an IPv4 header with the flag "don't fragment", and returns its length. The buffer has room for it.
pub(crate) fn write_v4(
    buffer: &mut [u8],
    source: Ipv4Addr,
    destination: Ipv4Addr,
    fields: HeaderFields,
) -> usize {
    let options: &[u8] = if fields.router_alert {
        &ROUTER_ALERT_V4
    } else {
        &[]
    };
    let length = IPV4_LENGTH + options.len();
    let header = &mut buffer[..length];
    let total = (length + fields.payload_length) as u16;
    header[0] = 0x40 | (length / 4) as u8;
    header[1] = fields.traffic_class;
    header[2..4].copy_from_slice(&total.to_be_bytes());
    // A datagram that is never fragmented needs no identification (RFC 6864, section 4.1).
    header[4..6].fill(0);
    header[6..8].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
    header[8] = fields.hop_limit;
    header[9] = fields.protocol;
    header[10..12].fill(0);
    header[12..16].copy_from_slice(&source.octets());
    header[16..20].copy_from_slice(&destination.octets());
    header[20..].copy_from_slice(options);
    let checksum = checksum::checksum(header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    length
}

/// Writes an IPv6 header, with hop-by-hop options for a router alert, and returns its length. The buffer has room for it.
pub(crate) fn write_v6(
    buffer: &mut [u8],
    source: Ipv6Addr,
    destination: Ipv6Addr,
    fields: HeaderFields,
) -> usize {
    let extension = if fields.router_alert { 8 } else { 0 };
    let length = (extension + fields.payload_length) as u16;
    let header = &mut buffer[..IPV6_LENGTH + extension];
    header[0] = 0x60 | fields.traffic_class >> 4;
    header[1] = fields.traffic_class << 4;
    header[2..4].fill(0);
    header[4..6].copy_from_slice(&length.to_be_bytes());
    header[7] = fields.hop_limit;
    header[8..24].copy_from_slice(&source.octets());
    header[24..40].copy_from_slice(&destination.octets());
    header[6] = fields.protocol;
    if fields.router_alert {
        header[6] = HOP_BY_HOP;
        header[40] = fields.protocol;
        header[41] = 0;
        header[42..].copy_from_slice(&ROUTER_ALERT_V6);
    }
    header.len()
}

/// Fields of a header to write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeaderFields {
    pub(crate) protocol: u8,
    pub(crate) hop_limit: u8,
    pub(crate) traffic_class: u8,
    pub(crate) router_alert: bool,
    /// Bytes after this header and its options.
    pub(crate) payload_length: usize,
}

/// Addresses, protocol and start of the payload of a packet that an ICMP error quotes.
pub(crate) struct QuotedPacket<'a> {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) protocol: u8,
    pub(crate) payload: &'a [u8],
}

impl<'a> QuotedPacket<'a> {
    /// Parses the start of an IPv4 packet. The checksum is of no use: routers change the header.
    pub(crate) fn parse_v4(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let fixed = bytes.first_chunk::<IPV4_LENGTH>();
        let fixed = fixed.ok_or(FrameError::IcmpQuote)?;
        let header_length = usize::from(fixed[0] & 0xF) * 4;
        if fixed[0] >> 4 != 4 || header_length < IPV4_LENGTH {
            return Err(FrameError::IcmpQuote);
        }
        let payload = bytes.get(header_length..).ok_or(FrameError::IcmpQuote)?;
        let offset = u16::from_be_bytes([fixed[6], fixed[7]]) & !(DONT_FRAGMENT | MORE_FRAGMENTS);
        Ok(Self {
            source: Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]).into(),
            destination: Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19]).into(),
            protocol: fixed[9],
            // Later fragments have no ports.
            payload: if offset == 0 { payload } else { &[] },
        })
    }

    /// Parses the start of an IPv6 packet without extension headers, which are those that this crate builds for UDP.
    pub(crate) fn parse_v6(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let (fixed, payload) = bytes
            .split_first_chunk::<IPV6_LENGTH>()
            .ok_or(FrameError::IcmpQuote)?;
        if fixed[0] >> 4 != 6 {
            return Err(FrameError::IcmpQuote);
        }
        let (addresses, _) = fixed[8..].as_chunks::<16>();
        let [source, destination] = [addresses[0], addresses[1]].map(Ipv6Addr::from);
        Ok(Self {
            source: source.into(),
            destination: destination.into(),
            protocol: fixed[6],
            payload,
        })
    }
}
