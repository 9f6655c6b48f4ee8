// SPDX-License-Identifier: Apache-2.0
//! ICMP (RFC 792) and ICMPv6 (RFC 4443): echo, and the errors that concern datagrams.

use std::net::{IpAddr, SocketAddr};

use crate::FrameError;
use crate::ethernet::{self, EthernetHeader, MacAddress, VlanTag};
use crate::ip::{self, HeaderFields, IpPacket, QuotedPacket};

/// Length of the header of each ICMP message that is handled here.
const HEADER_LENGTH: usize = 8;
/// Hop limit of answers.
const HOP_LIMIT: u8 = 64;

const REPLY_V4: u8 = 0;
const UNREACHABLE_V4: u8 = 3;
const REQUEST_V4: u8 = 8;
const FRAGMENTATION_NEEDED: u8 = 4;

const UNREACHABLE_V6: u8 = 1;
const PACKET_TOO_BIG_V6: u8 = 2;
const REQUEST_V6: u8 = 128;
const REPLY_V6: u8 = 129;

/// Echo request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo<'a> {
    /// Identifier and sequence number.
    pub identity: [u8; 4],
    /// Data, in the received frame.
    pub data: &'a [u8],
}

/// The packet that an ICMP error complains about. Any host on the path can make one up: only an error about a datagram
/// that was sent, between these addresses, may have an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote {
    /// Source of the packet.
    pub source: IpAddr,
    /// Destination of the packet.
    pub destination: IpAddr,
    /// Source and destination port, if it is a UDP datagram and its ports are quoted.
    pub udp_ports: Option<(u16, u16)>,
}

impl Quote {
    /// Source and destination, if the packet is a UDP datagram and its ports are quoted.
    pub fn udp_addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.udp_ports.map(|(source, destination)| {
            (
                SocketAddr::new(self.source, source),
                SocketAddr::new(self.destination, destination),
            )
        })
    }

    fn new(packet: &QuotedPacket<'_>) -> Self {
        let ports = packet.payload.first_chunk::<4>();
        let ports = ports.filter(|_| packet.protocol == ip::UDP);
        Self {
            source: packet.source,
            destination: packet.destination,
            udp_ports: ports
                .map(|[a, b, c, d]| (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]))),
        }
    }
}

/// Reason why a destination was not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// There is no route, or the network or host does not answer.
    Host,
    /// No socket has the port.
    Port,
    /// A filter forbids the packet.
    Prohibited,
    /// Another reason, with its code.
    Other(u8),
}

/// An ICMP or ICMPv6 message other than ND and MLD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpMessage<'a> {
    /// Echo request.
    EchoRequest(Echo<'a>),
    /// Echo reply.
    EchoReply(Echo<'a>),
    /// "Fragmentation needed", or "packet too big".
    PacketTooBig {
        /// MTU of the next hop; 0 from routers that are older than RFC 1191.
        mtu: u32,
        /// The packet.
        quote: Quote,
    },
    /// "Destination unreachable".
    Unreachable {
        /// Reason.
        reason: Unreachable,
        /// The packet.
        quote: Quote,
    },
}

impl<'a> IcmpMessage<'a> {
    pub(crate) fn parse_v4(message: &'a [u8]) -> Result<Self, FrameError> {
        let (header, rest) = split(message)?;
        let [kind, code, _, _, data @ ..] = *header;
        match kind {
            REQUEST_V4 | REPLY_V4 => echo(kind == REQUEST_V4, code, data, rest),
            UNREACHABLE_V4 => {
                let quote = Quote::new(&QuotedPacket::parse_v4(rest)?);
                if code == FRAGMENTATION_NEEDED {
                    let mtu = u16::from_be_bytes([data[2], data[3]]).into();
                    return Ok(Self::PacketTooBig { mtu, quote });
                }
                let reason = match code {
                    0 | 1 => Unreachable::Host,
                    3 => Unreachable::Port,
                    9 | 10 | 13 => Unreachable::Prohibited,
                    other => Unreachable::Other(other),
                };
                Ok(Self::Unreachable { reason, quote })
            }
            _ => Err(FrameError::IcmpType),
        }
    }

    pub(crate) fn parse_v6(message: &'a [u8]) -> Result<Self, FrameError> {
        let (header, rest) = split(message)?;
        let [kind, code, _, _, data @ ..] = *header;
        match kind {
            REQUEST_V6 | REPLY_V6 => echo(kind == REQUEST_V6, code, data, rest),
            PACKET_TOO_BIG_V6 => Ok(Self::PacketTooBig {
                mtu: u32::from_be_bytes(data),
                quote: Quote::new(&QuotedPacket::parse_v6(rest)?),
            }),
            UNREACHABLE_V6 => {
                let reason = match code {
                    0 | 3 => Unreachable::Host,
                    4 => Unreachable::Port,
                    1 => Unreachable::Prohibited,
                    other => Unreachable::Other(other),
                };
                let quote = Quote::new(&QuotedPacket::parse_v6(rest)?);
                Ok(Self::Unreachable { reason, quote })
            }
            _ => Err(FrameError::IcmpType),
        }
    }
}

fn split(message: &[u8]) -> Result<(&[u8; HEADER_LENGTH], &[u8]), FrameError> {
    message
        .split_first_chunk::<HEADER_LENGTH>()
        .ok_or(FrameError::IcmpTruncated)
}

fn echo(
    is_request: bool,
    code: u8,
    identity: [u8; 4],
    data: &[u8],
) -> Result<IcmpMessage<'_>, FrameError> {
    if code != 0 {
        return Err(FrameError::IcmpCode);
    }
    let echo = Echo { identity, data };
    Ok(if is_request {
        IcmpMessage::EchoRequest(echo)
    } else {
        IcmpMessage::EchoReply(echo)
    })
}

/// Verifies the checksum of an ICMPv6 message, and of an ICMP message, which has no pseudo-header.
pub(crate) fn verify(packet: &IpPacket<'_>) -> Result<(), FrameError> {
    let mut sum = match packet.header.source {
        IpAddr::V4(_) => crate::checksum::Sum::new(),
        IpAddr::V6(_) => packet.pseudo_header(packet.payload.len()),
    };
    sum.add(packet.payload);
    if sum.checksum() == 0 {
        Ok(())
    } else {
        Err(FrameError::IcmpChecksum)
    }
}

/// Addresses of a control frame to write. Each method writes a frame without padding and returns its length; none if the
/// buffer is too short or the addresses are of an IP version that does not fit.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// MAC address of the own card.
    pub source_mac: MacAddress,
    /// MAC address of the destination.
    pub destination_mac: MacAddress,
    /// VLAN tag of the frame.
    pub vlan: Option<VlanTag>,
    /// Own address.
    pub source: IpAddr,
    /// Destination.
    pub destination: IpAddr,
}

impl Addresses {
    /// Writes an echo request or reply.
    pub fn write_echo(
        &self,
        buffer: &mut [u8],
        is_request: bool,
        echo: &Echo<'_>,
    ) -> Option<usize> {
        let kind = match (self.source, is_request) {
            (IpAddr::V4(_), true) => REQUEST_V4,
            (IpAddr::V4(_), false) => REPLY_V4,
            (IpAddr::V6(_), true) => REQUEST_V6,
            (IpAddr::V6(_), false) => REPLY_V6,
        };
        let length = HEADER_LENGTH + echo.data.len();
        self.write_icmp(buffer, HOP_LIMIT, false, length, |message| {
            message[..4].copy_from_slice(&[kind, 0, 0, 0]);
            message[4..8].copy_from_slice(&echo.identity);
            message[8..].copy_from_slice(echo.data);
        })
    }

    /// Writes headers of Ethernet and IP, lets `write` fill the message of `length` bytes, and returns the place of the message;
    /// none if the buffer is too short or the addresses are of different IP versions.
    pub(crate) fn write(
        &self,
        buffer: &mut [u8],
        fields: HeaderFields,
        write: impl FnOnce(&mut [u8]),
    ) -> Option<std::ops::Range<usize>> {
        let ether_type = match self.source {
            IpAddr::V4(_) => ethernet::IPV4,
            IpAddr::V6(_) => ethernet::IPV6,
        };
        let ethernet = EthernetHeader {
            destination: self.destination_mac,
            source: self.source_mac,
            vlan: self.vlan,
            ether_type,
        };
        let start = ethernet.write(buffer)?;
        let alert = match (self.source, fields.router_alert) {
            (_, false) => 0,
            (IpAddr::V4(_), true) => ip::ROUTER_ALERT_V4.len(),
            (IpAddr::V6(_), true) => 8,
        };
        let header = match self.source {
            IpAddr::V4(_) => ip::IPV4_LENGTH,
            IpAddr::V6(_) => ip::IPV6_LENGTH,
        };
        let length = header + alert + fields.payload_length;
        if length > usize::from(u16::MAX) {
            return None;
        }
        let packet = buffer.get_mut(start..start + length)?;
        let header = match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                ip::write_v4(packet, source, destination, fields)
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                ip::write_v6(packet, source, destination, fields)
            }
            _ => return None,
        };
        write(&mut packet[header..]);
        Some(start + header..start + header + fields.payload_length)
    }

    /// Writes a frame with an ICMP or ICMPv6 message, and returns its length.
    pub(crate) fn write_icmp(
        &self,
        buffer: &mut [u8],
        hop_limit: u8,
        router_alert: bool,
        length: usize,
        write: impl FnOnce(&mut [u8]),
    ) -> Option<usize> {
        let protocol = match self.source {
            IpAddr::V4(_) => ip::ICMP,
            IpAddr::V6(_) => ip::ICMPV6,
        };
        let fields = HeaderFields {
            protocol,
            hop_limit,
            traffic_class: 0,
            router_alert,
            payload_length: length,
        };
        let place = self.write(buffer, fields, write)?;
        let mut sum = match self.source {
            IpAddr::V4(_) => crate::checksum::Sum::new(),
            IpAddr::V6(_) => ip::pseudo_header(self.source, self.destination, protocol, length),
        };
        let message = &mut buffer[place.clone()];
        message[2..4].fill(0);
        sum.add(message);
        message[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
        Some(place.end)
    }
}
