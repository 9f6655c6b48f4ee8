// SPDX-License-Identifier: Apache-2.0
//! Ethernet II frames with at most one VLAN tag (IEEE 802.1Q).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::FrameError;

/// Length of an Ethernet header without VLAN tag.
pub const ETHERNET_LENGTH: usize = 14;
/// Length of a VLAN tag.
pub const VLAN_LENGTH: usize = 4;

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const ARP: u16 = 0x0806;
pub(crate) const IPV6: u16 = 0x86DD;
const VLAN: u16 = 0x8100;
/// Outer tags of IEEE 802.1ad, and of equipment older than that.
const OUTER_VLAN: [u16; 2] = [0x88A8, 0x9100];
/// Smaller values of the type field are lengths (IEEE 802.3).
const LOWEST_TYPE: u16 = 0x0600;

/// Address of a network card, or of a group of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// Address of all stations.
    pub const BROADCAST: MacAddress = MacAddress([0xFF; 6]);

    /// Returns true if this is the address of a group, or of all stations.
    pub fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// Returns true if a station can have this address: it is neither a group nor zero.
    pub fn is_station(self) -> bool {
        !self.is_group() && self.0 != [0; 6]
    }

    /// Returns the address that carries an IP group (RFC 1112, section 6.4, and RFC 2464, section 7); none for other addresses.
    pub fn of_group(group: IpAddr) -> Option<MacAddress> {
        match group {
            IpAddr::V4(group) => Self::of_group_v4(group),
            IpAddr::V6(group) => Self::of_group_v6(group),
        }
    }

    fn of_group_v4(group: Ipv4Addr) -> Option<MacAddress> {
        let [_, b, c, d] = group.octets();
        if group.is_broadcast() {
            return Some(Self::BROADCAST);
        }
        group
            .is_multicast()
            .then_some(MacAddress([0x01, 0x00, 0x5E, b & 0x7F, c, d]))
    }

    fn of_group_v6(group: Ipv6Addr) -> Option<MacAddress> {
        let [.., a, b, c, d] = group.octets();
        group
            .is_multicast()
            .then_some(MacAddress([0x33, 0x33, a, b, c, d]))
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(formatter, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Tag of a virtual LAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VlanTag {
    id: u16,
    priority: u8,
}

impl VlanTag {
    /// Creates a tag with an identifier of 0 to 4094, where 0 gives the frame a priority but no virtual LAN, and a priority of
    /// 0 to 7; none for other values.
    pub fn new(id: u16, priority: u8) -> Option<Self> {
        (id < 0xFFF && priority < 8).then_some(Self { id, priority })
    }

    /// Identifier of the virtual LAN.
    pub fn id(self) -> u16 {
        self.id
    }

    /// Priority code point.
    pub fn priority(self) -> u8 {
        self.priority
    }

    fn control(self) -> u16 {
        u16::from(self.priority) << 13 | self.id
    }
}

/// Header of a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EthernetHeader {
    /// Destination.
    pub destination: MacAddress,
    /// Source, which is not a group address.
    pub source: MacAddress,
    /// VLAN tag, if there is one.
    pub vlan: Option<VlanTag>,
    /// EtherType of the payload.
    pub ether_type: u16,
}

impl EthernetHeader {
    /// Parses a frame without its frame check sequence, and returns header and payload. The payload may end with padding.
    ///
    /// # Errors
    /// If the header is truncated, has a group address as its source, two VLAN tags, or a length in place of a type.
    pub fn parse(frame: &[u8]) -> Result<(EthernetHeader, &[u8]), FrameError> {
        let (header, mut rest) = frame
            .split_first_chunk::<ETHERNET_LENGTH>()
            .ok_or(FrameError::EthernetTruncated)?;
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1] = *header;
        let destination = MacAddress([d0, d1, d2, d3, d4, d5]);
        let source = MacAddress([s0, s1, s2, s3, s4, s5]);
        if source.is_group() {
            return Err(FrameError::EthernetSource);
        }
        let mut ether_type = u16::from_be_bytes([t0, t1]);
        let mut vlan = None;
        if ether_type == VLAN {
            let (tag, behind) = rest
                .split_first_chunk::<VLAN_LENGTH>()
                .ok_or(FrameError::VlanTruncated)?;
            let control = u16::from_be_bytes([tag[0], tag[1]]);
            let tag_read = VlanTag::new(control & 0xFFF, (control >> 13) as u8);
            vlan = Some(tag_read.ok_or(FrameError::VlanId)?);
            ether_type = u16::from_be_bytes([tag[2], tag[3]]);
            rest = behind;
        }
        if OUTER_VLAN.contains(&ether_type) || ether_type == VLAN {
            return Err(FrameError::VlanNested);
        }
        if ether_type < LOWEST_TYPE {
            return Err(FrameError::LengthField);
        }
        let header = EthernetHeader {
            destination,
            source,
            vlan,
            ether_type,
        };
        Ok((header, rest))
    }

    /// Returns the length of the header with its tag.
    pub fn length(&self) -> usize {
        ETHERNET_LENGTH + self.vlan.map_or(0, |_| VLAN_LENGTH)
    }

    /// Writes the header and returns its length; none if the buffer is too short.
    pub fn write(&self, buffer: &mut [u8]) -> Option<usize> {
        let length = self.length();
        let buffer = buffer.get_mut(..length)?;
        buffer[..6].copy_from_slice(&self.destination.0);
        buffer[6..12].copy_from_slice(&self.source.0);
        if let Some(vlan) = self.vlan {
            buffer[12..14].copy_from_slice(&VLAN.to_be_bytes());
            buffer[14..16].copy_from_slice(&vlan.control().to_be_bytes());
        }
        buffer[length - 2..].copy_from_slice(&self.ether_type.to_be_bytes());
        Some(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn of_group_follows_the_examples_of_the_rfcs() {
        let mac = |text: &str| {
            let group = text.parse().expect("an address");
            MacAddress::of_group(group).map(|mac| mac.to_string())
        };
        assert_eq!(mac("224.128.64.32").as_deref(), Some("01:00:5e:00:40:20"));
        assert_eq!(
            mac("ff02::1:ff0e:8c6c").as_deref(),
            Some("33:33:ff:0e:8c:6c")
        );
        assert_eq!(mac("255.255.255.255").as_deref(), Some("ff:ff:ff:ff:ff:ff"));
        assert_eq!((mac("10.0.0.1"), mac("fe80::1")), (None, None));
    }

    fn frame(types: &[u16]) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        frame.extend(types.iter().flat_map(|word| word.to_be_bytes()));
        frame
    }

    #[test]
    fn parse_refuses_what_is_no_frame_with_one_tag() {
        let refused = |types: &[u16]| EthernetHeader::parse(&frame(types)).err();
        assert_eq!(refused(&[]), Some(FrameError::EthernetTruncated));
        assert_eq!(refused(&[IPV4]), None);
        assert_eq!(refused(&[0x05FF]), Some(FrameError::LengthField));
        assert_eq!(refused(&[VLAN, 7]), Some(FrameError::VlanTruncated));
        assert_eq!(refused(&[VLAN, 7, IPV4]), None);
        assert_eq!(refused(&[VLAN, 0xFFF, IPV4]), Some(FrameError::VlanId));
        assert_eq!(refused(&[VLAN, 7, VLAN, 7]), Some(FrameError::VlanNested));
        assert_eq!(refused(&[0x88A8, 7, VLAN]), Some(FrameError::VlanNested));
        let mut from_group = frame(&[IPV4]);
        from_group[6] |= 1;
        assert_eq!(
            EthernetHeader::parse(&from_group).err(),
            Some(FrameError::EthernetSource)
        );
    }

    proptest! {
        #[test]
        fn parse_reads_what_was_written(destination: [u8; 6], mut source: [u8; 6], tag in prop::option::of((0u16..0xFFF, 0u8..8)), ether_type in 0x0600u16..0x8000, payload: [u8; 3]) {
            source[0] &= !1;
            let header = EthernetHeader {
                destination: MacAddress(destination),
                source: MacAddress(source),
                vlan: tag.and_then(|(id, priority)| VlanTag::new(id, priority)),
                ether_type,
            };
            let mut buffer = [0; 21];
            let length = header.write(&mut buffer).expect("room");
            prop_assert_eq!(header.write(&mut buffer[..length - 1]), None);
            buffer[length..length + 3].copy_from_slice(&payload);
            let parsed = EthernetHeader::parse(&buffer[..length + 3]);
            prop_assert_eq!(parsed, Ok((header, &payload[..])));
        }
    }
}
