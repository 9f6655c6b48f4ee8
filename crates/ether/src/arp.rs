// SPDX-License-Identifier: Apache-2.0
//! ARP for IPv4 over Ethernet (RFC 826).

use std::net::Ipv4Addr;

use crate::FrameError;
use crate::ethernet::{self, EthernetHeader, MacAddress, VlanTag};

const LENGTH: usize = 28;
/// Hardware type Ethernet, protocol type IPv4, and the lengths of their addresses.
const FORMAT: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// Kind of an ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArpOperation {
    /// Question for the MAC address of the target.
    Request,
    /// Answer.
    Reply,
}

/// An ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpPacket {
    /// Request or reply.
    pub operation: ArpOperation,
    /// MAC address of the sender.
    pub sender_mac: MacAddress,
    /// IP address of the sender; unspecified in a probe (RFC 5227).
    pub sender: Ipv4Addr,
    /// MAC address of the target, without meaning in a request.
    pub target_mac: MacAddress,
    /// IP address of the target.
    pub target: Ipv4Addr,
}

impl ArpPacket {
    /// Parses the payload of a frame, which may end with padding.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, FrameError> {
        let packet = bytes
            .first_chunk::<LENGTH>()
            .ok_or(FrameError::ArpTruncated)?;
        if packet[..6] != FORMAT {
            return Err(FrameError::ArpFormat);
        }
        let operation = match [packet[6], packet[7]] {
            [0, 1] => ArpOperation::Request,
            [0, 2] => ArpOperation::Reply,
            _ => return Err(FrameError::ArpOperation),
        };
        let mac = |at: usize| MacAddress(std::array::from_fn(|index| packet[at + index]));
        let address =
            |at: usize| Ipv4Addr::from(std::array::from_fn::<u8, 4, _>(|index| packet[at + index]));
        let read = Self {
            operation,
            sender_mac: mac(8),
            sender: address(14),
            target_mac: mac(18),
            target: address(24),
        };
        if !read.sender_mac.is_station() || read.sender.is_multicast() || read.sender.is_broadcast()
        {
            return Err(FrameError::ArpSender);
        }
        Ok(read)
    }

    /// Returns true if the sender announces its own address (RFC 5227, "gratuitous ARP").
    pub fn is_announcement(&self) -> bool {
        self.sender == self.target && !self.sender.is_unspecified()
    }

    /// Writes the packet as a frame without padding and returns its length; none if the buffer is too short.
    pub fn write_frame(
        &self,
        destination: MacAddress,
        vlan: Option<VlanTag>,
        buffer: &mut [u8],
    ) -> Option<usize> {
        let header = EthernetHeader {
            destination,
            source: self.sender_mac,
            vlan,
            ether_type: ethernet::ARP,
        };
        let start = header.write(buffer)?;
        let packet = buffer[start..].first_chunk_mut::<LENGTH>()?;
        packet[..6].copy_from_slice(&FORMAT);
        packet[6] = 0;
        packet[7] = match self.operation {
            ArpOperation::Request => 1,
            ArpOperation::Reply => 2,
        };
        packet[8..14].copy_from_slice(&self.sender_mac.0);
        packet[14..18].copy_from_slice(&self.sender.octets());
        packet[18..24].copy_from_slice(&self.target_mac.0);
        packet[24..].copy_from_slice(&self.target.octets());
        Some(start + LENGTH)
    }
}
