// SPDX-License-Identifier: Apache-2.0
//! Received frames: one function from bytes to what they say, with views of the bytes.

use std::net::IpAddr;

use crate::FrameError;
use crate::arp::ArpPacket;
use crate::ethernet::{self, EthernetHeader};
use crate::group::{self, MembershipMessage};
use crate::icmp::{self, IcmpMessage};
use crate::ip::{self, IpHeader, IpPacket};
use crate::nd::{self, NeighbourAdvertisement, NeighbourSolicitation};
use crate::udp::{UdpChecksum, UdpDatagram};

/// Checks of received frames. Checksums of ICMP, IGMP, ND and MLD always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verification {
    /// True if the checksum of the IPv4 header is verified; false if the card has done that.
    pub ipv4_header: bool,
    /// Treatment of UDP checksums.
    pub udp: UdpChecksum,
}

impl Verification {
    /// Everything is verified.
    pub const STRICT: Verification = Verification {
        ipv4_header: true,
        udp: UdpChecksum::Verify,
    };
}

impl Default for Verification {
    fn default() -> Self {
        Self::STRICT
    }
}

/// Content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// UDP datagram.
    Udp(IpHeader, UdpDatagram<'a>),
    /// ARP packet.
    Arp(ArpPacket),
    /// ICMP or ICMPv6 message.
    Icmp(IpHeader, IcmpMessage<'a>),
    /// Neighbour solicitation.
    Solicitation(IpHeader, NeighbourSolicitation),
    /// Neighbour advertisement.
    Advertisement(IpHeader, NeighbourAdvertisement),
    /// IGMP or MLD message.
    Membership(IpHeader, MembershipMessage<'a>),
}

/// A received frame. All slices are views of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Ethernet header.
    pub ethernet: EthernetHeader,
    /// Content.
    pub payload: Payload<'a>,
}

impl<'a> Frame<'a> {
    /// Parses a frame without its frame check sequence. Padding behind an IP or ARP packet is allowed.
    ///
    /// # Errors
    /// If the frame is malformed or nothing here handles it.
    pub fn parse(bytes: &'a [u8], verification: Verification) -> Result<Self, FrameError> {
        let (ethernet, rest) = EthernetHeader::parse(bytes)?;
        let payload = match ethernet.ether_type {
            ethernet::IPV4 => {
                let packet = IpPacket::parse_v4(rest, verification.ipv4_header)?;
                parse_packet(&packet, verification.udp)?
            }
            ethernet::IPV6 => {
                let packet = IpPacket::parse_v6(rest)?;
                parse_packet(&packet, verification.udp)?
            }
            ethernet::ARP => Payload::Arp(ArpPacket::parse(rest)?),
            _ => return Err(FrameError::EtherType),
        };
        Ok(Self { ethernet, payload })
    }
}

fn parse_packet<'a>(packet: &IpPacket<'a>, udp: UdpChecksum) -> Result<Payload<'a>, FrameError> {
    let header = packet.header;
    match (packet.protocol, header.source) {
        (ip::UDP, _) => Ok(Payload::Udp(header, UdpDatagram::parse(packet, udp)?)),
        (ip::ICMP, IpAddr::V4(_)) => {
            icmp::verify(packet)?;
            let message = IcmpMessage::parse_v4(packet.payload)?;
            Ok(Payload::Icmp(header, message))
        }
        (ip::ICMPV6, IpAddr::V6(_)) => parse_icmpv6(packet),
        (ip::IGMP, IpAddr::V4(_)) => {
            let message = MembershipMessage::parse_igmp(packet)?;
            Ok(Payload::Membership(header, message))
        }
        _ => Err(FrameError::Protocol),
    }
}

fn parse_icmpv6<'a>(packet: &IpPacket<'a>) -> Result<Payload<'a>, FrameError> {
    let header = packet.header;
    icmp::verify(packet)?;
    let kind = packet.payload.first().ok_or(FrameError::IcmpTruncated)?;
    match *kind {
        nd::SOLICITATION => {
            let message = NeighbourSolicitation::parse(packet)?;
            Ok(Payload::Solicitation(header, message))
        }
        nd::ADVERTISEMENT => {
            let message = NeighbourAdvertisement::parse(packet)?;
            Ok(Payload::Advertisement(header, message))
        }
        group::MLD_QUERY | group::MLD_REPORT | group::MLD_DONE | group::MLD_RECORDS => {
            let message = MembershipMessage::parse_mld(packet)?;
            Ok(Payload::Membership(header, message))
        }
        _ if header.source.is_unspecified() => Err(FrameError::Ipv6Source),
        _ => {
            let message = IcmpMessage::parse_v6(packet.payload)?;
            Ok(Payload::Icmp(header, message))
        }
    }
}
