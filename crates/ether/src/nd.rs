// SPDX-License-Identifier: Apache-2.0
//! Neighbour solicitations and advertisements of IPv6 (RFC 4861).

use std::net::{IpAddr, Ipv6Addr};

use crate::FrameError;
use crate::ethernet::MacAddress;
use crate::icmp::Addresses;
use crate::ip::IpPacket;

pub(crate) const SOLICITATION: u8 = 135;
pub(crate) const ADVERTISEMENT: u8 = 136;

/// Length of a message without options.
const LENGTH: usize = 24;
/// Length of an option with an Ethernet address.
const OPTION_LENGTH: usize = 8;
const SOURCE_ADDRESS: u8 = 1;
const TARGET_ADDRESS: u8 = 2;
/// No router lowers the hop limit of an ND message, so that it comes from the same link.
const HOP_LIMIT: u8 = 255;

const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;
const ROUTER: u8 = 0x80;

/// Question for the MAC address of the target, or whether it is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourSolicitation {
    /// Address that is looked for.
    pub target: Ipv6Addr,
    /// MAC address of the sender.
    pub source_mac: Option<MacAddress>,
}

/// Answer to a solicitation, or an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourAdvertisement {
    /// Address that is announced.
    pub target: Ipv6Addr,
    /// MAC address of the target.
    pub target_mac: Option<MacAddress>,
    /// True if this is the answer to a solicitation.
    pub is_solicited: bool,
    /// True if the MAC address replaces a known one.
    pub is_override: bool,
    /// True if the sender is a router.
    pub is_router: bool,
}

/// Returns the group in which nodes with this address listen for solicitations (RFC 4291, section 2.7.1).
pub fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::from([0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xFF, a, b, c])
}

fn is_solicited_node(address: IpAddr) -> bool {
    match address {
        IpAddr::V6(address) => solicited_node(address) == address,
        IpAddr::V4(_) => false,
    }
}

impl NeighbourSolicitation {
    /// Parses a message with a valid checksum (RFC 4861, section 7.1.1).
    pub(crate) fn parse(packet: &IpPacket<'_>) -> Result<Self, FrameError> {
        let (_, target, options) = parse_common(packet)?;
        let source_mac = parse_options(options, SOURCE_ADDRESS)?;
        let header = &packet.header;
        let has_source = !header.source.is_unspecified();
        if !has_source && (source_mac.is_some() || !is_solicited_node(header.destination)) {
            return Err(FrameError::NdSource);
        }
        Ok(Self { target, source_mac })
    }

    /// Writes a frame; see [`Addresses`].
    pub fn write_frame(&self, addresses: &Addresses, buffer: &mut [u8]) -> Option<usize> {
        let option = self.source_mac.map(|mac| (SOURCE_ADDRESS, mac));
        write_frame(addresses, buffer, SOLICITATION, 0, self.target, option)
    }
}

impl NeighbourAdvertisement {
    /// Parses a message with a valid checksum (RFC 4861, section 7.1.2).
    pub(crate) fn parse(packet: &IpPacket<'_>) -> Result<Self, FrameError> {
        let (flags, target, options) = parse_common(packet)?;
        let target_mac = parse_options(options, TARGET_ADDRESS)?;
        let is_solicited = flags & SOLICITED != 0;
        if is_solicited && packet.header.destination.is_multicast() {
            return Err(FrameError::NdSolicited);
        }
        if packet.header.source.is_unspecified() {
            return Err(FrameError::NdSource);
        }
        Ok(Self {
            target,
            target_mac,
            is_solicited,
            is_override: flags & OVERRIDE != 0,
            is_router: flags & ROUTER != 0,
        })
    }

    /// Writes a frame; see [`Addresses`].
    pub fn write_frame(&self, addresses: &Addresses, buffer: &mut [u8]) -> Option<usize> {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = flag(self.is_solicited, SOLICITED)
            | flag(self.is_override, OVERRIDE)
            | flag(self.is_router, ROUTER);
        let option = self.target_mac.map(|mac| (TARGET_ADDRESS, mac));
        write_frame(addresses, buffer, ADVERTISEMENT, flags, self.target, option)
    }
}

/// Returns flags, target and options.
fn parse_common<'a>(packet: &IpPacket<'a>) -> Result<(u8, Ipv6Addr, &'a [u8]), FrameError> {
    let (message, options) = packet
        .payload
        .split_first_chunk::<LENGTH>()
        .ok_or(FrameError::IcmpTruncated)?;
    if packet.header.hop_limit != HOP_LIMIT {
        return Err(FrameError::NdHopLimit);
    }
    // Fragments would hide a message from the guards of a switch (RFC 6980).
    if packet.header.is_atomic_fragment {
        return Err(FrameError::NdFragmented);
    }
    if message[1] != 0 {
        return Err(FrameError::IcmpCode);
    }
    let target = Ipv6Addr::from(std::array::from_fn::<u8, 16, _>(|index| message[8 + index]));
    if target.is_multicast() || target.is_unspecified() || target.is_loopback() {
        return Err(FrameError::NdTarget);
    }
    Ok((message[4], target, options))
}

/// Walks over the options, and returns the Ethernet address in the first one of a kind.
fn parse_options(mut options: &[u8], wanted: u8) -> Result<Option<MacAddress>, FrameError> {
    let mut found = None;
    while !options.is_empty() {
        let [kind, units, ..] = *options else {
            return Err(FrameError::NdOptions);
        };
        let length = OPTION_LENGTH * usize::from(units);
        let (option, rest) = options
            .split_at_checked(length)
            .filter(|(option, _)| !option.is_empty())
            .ok_or(FrameError::NdOptions)?;
        if kind == wanted && found.is_none() {
            let [_, _, a, b, c, d, e, f] = *option else {
                return Err(FrameError::NdOptions);
            };
            let mac = MacAddress([a, b, c, d, e, f]);
            if !mac.is_station() {
                return Err(FrameError::NdOptions);
            }
            found = Some(mac);
        }
        options = rest;
    }
    Ok(found)
}

fn write_frame(
    addresses: &Addresses,
    buffer: &mut [u8],
    kind: u8,
    flags: u8,
    target: Ipv6Addr,
    option: Option<(u8, MacAddress)>,
) -> Option<usize> {
    if addresses.source.is_ipv4() {
        return None;
    }
    let length = LENGTH + option.map_or(0, |_| OPTION_LENGTH);
    addresses.write_icmp(buffer, HOP_LIMIT, false, length, |message| {
        message[..8].copy_from_slice(&[kind, 0, 0, 0, flags, 0, 0, 0]);
        message[8..24].copy_from_slice(&target.octets());
        if let Some((kind, mac)) = option {
            message[24..26].copy_from_slice(&[kind, 1]);
            message[26..].copy_from_slice(&mac.0);
        }
    })
}
