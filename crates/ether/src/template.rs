// SPDX-License-Identifier: Apache-2.0
//! Headers of outgoing datagrams: made once per destination, patched per datagram in front of its payload.

use std::net::{IpAddr, SocketAddr};

use thiserror::Error;

use crate::checksum::{self, Sum};
use crate::ethernet::{self, EthernetHeader, MacAddress, VlanTag};
use crate::ip::{self, HeaderFields, IPV4_LENGTH, IPV6_LENGTH};
use crate::udp::UDP_LENGTH;
use crate::{ETHERNET_LENGTH, VLAN_LENGTH};

/// Longest header of a datagram: Ethernet with VLAN tag, IPv6, UDP.
pub const MAX_HEADER_LENGTH: usize = ETHERNET_LENGTH + VLAN_LENGTH + IPV6_LENGTH + UDP_LENGTH;

/// Path of the datagrams of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpPath {
    /// MAC address of the own card.
    pub source_mac: MacAddress,
    /// MAC address of the next hop or group.
    pub destination_mac: MacAddress,
    /// VLAN tag of the frames.
    pub vlan: Option<VlanTag>,
    /// Own address.
    pub source: SocketAddr,
    /// Destination.
    pub destination: SocketAddr,
    /// Time to live, or hop limit.
    pub hop_limit: u8,
    /// Type of service, or traffic class.
    pub traffic_class: u8,
    /// Longest IP packet that the path takes.
    pub mtu: u32,
}

/// Reason why a path has no template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PathError {
    /// Source and destination are of different IP versions.
    #[error("{from} cannot send to {to}, which is of another IP version")]
    Versions {
        /// Source.
        from: SocketAddr,
        /// Destination.
        to: SocketAddr,
    },
    /// The destination has port 0.
    #[error("{0} has no port")]
    Port(SocketAddr),
    /// An IP header does not fit.
    #[error("an MTU of {mtu} has no room for a datagram, which needs more than {needed}")]
    Mtu {
        /// The MTU.
        mtu: u32,
        /// Length of the headers of IP and UDP.
        needed: usize,
    },
}

/// Reason why a datagram is not built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The datagram does not fit into the MTU of its path.
    #[error("a payload of {length} bytes exceeds the {most} that the path takes")]
    TooLong {
        /// Length of the payload.
        length: usize,
        /// Longest payload of the path.
        most: usize,
    },
    /// The buffer has no room for headers and payload.
    #[error("a frame of {needed} bytes exceeds the buffer of {room}")]
    Buffer {
        /// Length of the buffer.
        room: usize,
        /// Length of the frame.
        needed: usize,
    },
}

/// Origin of the UDP checksum of an outgoing datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChecksumOffload {
    /// It is computed here.
    #[default]
    Software,
    /// The card computes it: the field holds the sum of the pseudo-header.
    Card,
}

/// Header of Ethernet, IP and UDP for one destination.
///
/// The caller owns the buffer of the frame. [`build`](Self::build) copies a payload behind the header;
/// [`finish`](Self::finish) completes a frame whose payload is in place already, at [`header_length`](Self::header_length).
/// Both write the whole header, so that buffers need no preparation, and return the length of the frame. Frames shorter than
/// 60 bytes are not padded: cards and drivers do that.
#[derive(Clone, Copy, Debug)]
pub struct UdpTemplate {
    header: [u8; MAX_HEADER_LENGTH],
    header_length: u8,
    ip_start: u8,
    is_v6: bool,
    most: u16,
    /// Checksum of the IPv4 header with a total length of 0.
    ipv4_checksum: u16,
    /// Sum of the pseudo-header and the ports, with lengths of 0.
    udp_sum: u16,
    /// Sum of the pseudo-header with a length of 0.
    pseudo_sum: u16,
}

impl UdpTemplate {
    /// Makes the template of a path.
    ///
    /// # Errors
    /// If the addresses do not fit each other, or nothing fits the MTU.
    pub fn new(path: &UdpPath) -> Result<Self, PathError> {
        let (source, destination) = (path.source, path.destination);
        if source.is_ipv4() != destination.is_ipv4() {
            return Err(PathError::Versions {
                from: source,
                to: destination,
            });
        }
        if destination.port() == 0 {
            return Err(PathError::Port(destination));
        }
        let is_v6 = source.is_ipv6();
        let ip_length = if is_v6 { IPV6_LENGTH } else { IPV4_LENGTH };
        // The length fields count 16 bits: all of an IPv4 packet, or what follows the header of IPv6.
        let longest = 65_535 + if is_v6 { IPV6_LENGTH } else { 0 };
        let needed = ip_length + UDP_LENGTH;
        let most = (path.mtu as usize).min(longest).checked_sub(needed);
        let most = most.ok_or(PathError::Mtu {
            mtu: path.mtu,
            needed,
        })?;

        let mut template = Self {
            header: [0; MAX_HEADER_LENGTH],
            header_length: 0,
            ip_start: 0,
            is_v6,
            most: most as u16,
            ipv4_checksum: 0,
            udp_sum: 0,
            pseudo_sum: 0,
        };
        template.write(path);
        Ok(template)
    }

    fn write(&mut self, path: &UdpPath) {
        let ethernet = EthernetHeader {
            destination: path.destination_mac,
            source: path.source_mac,
            vlan: path.vlan,
            ether_type: if self.is_v6 {
                ethernet::IPV6
            } else {
                ethernet::IPV4
            },
        };
        // The array has room for the longest header.
        let start = ethernet.write(&mut self.header).unwrap_or_default();
        let fields = HeaderFields {
            protocol: ip::UDP,
            hop_limit: path.hop_limit,
            traffic_class: path.traffic_class,
            router_alert: false,
            payload_length: 0,
        };
        let header = &mut self.header[start..];
        let ip_length = match (path.source.ip(), path.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let length = ip::write_v4(header, source, destination, fields);
                header[2..4].fill(0);
                header[10..12].fill(0);
                self.ipv4_checksum = checksum::checksum(&header[..length]);
                length
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                ip::write_v6(header, source, destination, fields)
            }
            // `new` has compared the versions.
            _ => return,
        };
        let ports = [path.source.port(), path.destination.port()];
        let udp = &mut header[ip_length..];
        udp[..2].copy_from_slice(&ports[0].to_be_bytes());
        udp[2..4].copy_from_slice(&ports[1].to_be_bytes());
        let mut sum = ip::pseudo_header(path.source.ip(), path.destination.ip(), ip::UDP, 0);
        self.pseudo_sum = sum.folded();
        sum.add(&udp[..4]);
        self.udp_sum = sum.folded();
        self.ip_start = start as u8;
        self.header_length = (start + ip_length + UDP_LENGTH) as u8;
    }

    /// Length of the headers in front of a payload.
    pub fn header_length(&self) -> usize {
        self.header_length.into()
    }

    /// Length of the Ethernet header with its tag, and so the start of the IP header, as offload descriptors of cards want it.
    pub fn ip_start(&self) -> usize {
        self.ip_start.into()
    }

    /// Start of the UDP header, as offload descriptors of cards want it.
    pub fn udp_start(&self) -> usize {
        self.header_length() - UDP_LENGTH
    }

    /// Longest payload that the path takes in one datagram.
    pub fn max_payload(&self) -> usize {
        self.most.into()
    }

    /// Copies a payload into a frame behind its header, and returns the length of the frame. The checksum is computed while
    /// copying.
    ///
    /// # Errors
    /// If the payload exceeds the path or the buffer; the buffer is unchanged then.
    pub fn build(
        &self,
        frame: &mut [u8],
        payload: &[u8],
        offload: ChecksumOffload,
    ) -> Result<usize, BuildError> {
        let (header, room) = self.split(frame, payload.len())?;
        match offload {
            ChecksumOffload::Card => {
                room.copy_from_slice(payload);
                Ok(self.complete(header, payload.len(), None))
            }
            ChecksumOffload::Software => {
                let mut sum = Sum::new();
                sum.add_copied(room, payload);
                Ok(self.complete(header, payload.len(), Some(sum)))
            }
        }
    }

    /// Writes the header of a frame whose payload is in place, and returns the length of the frame.
    ///
    /// # Errors
    /// If the payload exceeds the path or the buffer; the buffer is unchanged then.
    pub fn finish(
        &self,
        frame: &mut [u8],
        payload_length: usize,
        offload: ChecksumOffload,
    ) -> Result<usize, BuildError> {
        let (header, payload) = self.split(frame, payload_length)?;
        let sum = match offload {
            ChecksumOffload::Card => None,
            ChecksumOffload::Software => {
                let mut sum = Sum::new();
                sum.add(payload);
                Some(sum)
            }
        };
        Ok(self.complete(header, payload_length, sum))
    }

    /// Cuts bytes into datagrams of a segment length each, of which the last one may be shorter.
    ///
    /// # Errors
    /// If a segment exceeds the path, or is empty although there are bytes.
    pub fn train<'a>(&'a self, bytes: &'a [u8], segment: usize) -> Result<Train<'a>, BuildError> {
        let is_endless = segment == 0 && !bytes.is_empty();
        if is_endless || segment.min(bytes.len()) > self.max_payload() {
            return Err(BuildError::TooLong {
                length: segment,
                most: self.max_payload(),
            });
        }
        Ok(Train {
            template: self,
            rest: bytes,
            segment,
            accepted: 0,
        })
    }

    /// Splits a frame into header and payload.
    fn split<'b>(
        &self,
        frame: &'b mut [u8],
        payload_length: usize,
    ) -> Result<(&'b mut [u8], &'b mut [u8]), BuildError> {
        if payload_length > self.max_payload() {
            return Err(BuildError::TooLong {
                length: payload_length,
                most: self.max_payload(),
            });
        }
        let needed = self.header_length() + payload_length;
        let room = frame.len();
        let frame = frame.get_mut(..needed);
        let frame = frame.ok_or(BuildError::Buffer { room, needed })?;
        Ok(frame.split_at_mut(self.header_length()))
    }

    /// Writes the header with its lengths and checksums, and returns the length of the frame.
    fn complete(&self, header: &mut [u8], payload_length: usize, payload: Option<Sum>) -> usize {
        header.copy_from_slice(&self.header[..header.len()]);
        let udp_length = (UDP_LENGTH + payload_length) as u16;
        let ip = &mut header[self.ip_start()..];
        if self.is_v6 {
            ip[4..6].copy_from_slice(&udp_length.to_be_bytes());
        } else {
            let total = IPV4_LENGTH as u16 + udp_length;
            let checksum = checksum::updated(self.ipv4_checksum, 0, total);
            ip[2..4].copy_from_slice(&total.to_be_bytes());
            ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        let mut sum = Sum::new();
        sum.add_u16(udp_length);
        let field = match payload {
            None => {
                sum.add_u16(self.pseudo_sum);
                sum.folded()
            }
            Some(payload) => {
                // The length counts twice: in the pseudo-header and in the header.
                sum.add_u16(udp_length);
                sum.add_u16(self.udp_sum);
                sum.add_u16(payload.folded());
                checksum::udp_field(sum.checksum())
            }
        };
        let udp = &mut header[self.udp_start()..];
        udp[4..6].copy_from_slice(&udp_length.to_be_bytes());
        udp[6..].copy_from_slice(&field.to_be_bytes());
        header.len() + payload_length
    }
}

/// Bytes on their way to one destination in several datagrams: segmentation in software, for backends without it.
#[derive(Debug)]
pub struct Train<'a> {
    template: &'a UdpTemplate,
    rest: &'a [u8],
    segment: usize,
    accepted: usize,
}

impl Train<'_> {
    /// Returns true if all datagrams are built.
    pub fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// Number of bytes in datagrams that are built: what a short send reports as accepted.
    pub fn accepted(&self) -> usize {
        self.accepted
    }

    /// Number of datagrams that are left.
    pub fn remaining(&self) -> usize {
        self.rest.len().div_ceil(self.segment.max(1))
    }

    /// Builds the next datagram in a frame, and returns the length of the frame; 0 if all are built.
    ///
    /// # Errors
    /// If the frame is too short; the datagram is still the next one then.
    pub fn build_next(
        &mut self,
        frame: &mut [u8],
        offload: ChecksumOffload,
    ) -> Result<usize, BuildError> {
        if self.rest.is_empty() {
            return Ok(0);
        }
        let (segment, rest) = self.rest.split_at(self.segment.min(self.rest.len()));
        let length = self.template.build(frame, segment, offload)?;
        self.rest = rest;
        self.accepted += segment.len();
        Ok(length)
    }
}
