// SPDX-License-Identifier: Apache-2.0
//! Messages about group membership: IGMP (RFC 1112, 2236, 3376) and MLD (RFC 2710, 3810), in one form for both.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::FrameError;
use crate::checksum;
use crate::ethernet::MacAddress;
use crate::icmp::Addresses;
use crate::ip::{self, HeaderFields, IpPacket};

/// All hosts and routers that support IGMPv3; current-state and state-change reports go there (RFC 3376, section 4.2.14).
pub const REPORTS_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 22);
/// As [`REPORTS_V4`], for MLDv2 (RFC 3810, section 5.2.14).
pub const REPORTS_V6: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 0x16);
/// All routers; "leave" messages of IGMPv2 go there.
pub const ALL_ROUTERS_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 2);
/// All routers; "done" messages of MLDv1 go there.
pub const ALL_ROUTERS_V6: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 2);
/// All nodes; queries of routers go there.
pub const ALL_NODES_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
/// All nodes; queries of routers go there.
pub const ALL_NODES_V6: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 1);

const IGMP_QUERY: u8 = 0x11;
const IGMP_REPORT_1: u8 = 0x12;
const IGMP_REPORT_2: u8 = 0x16;
const IGMP_LEAVE: u8 = 0x17;
const IGMP_RECORDS: u8 = 0x22;

pub(crate) const MLD_QUERY: u8 = 130;
pub(crate) const MLD_REPORT: u8 = 131;
pub(crate) const MLD_DONE: u8 = 132;
pub(crate) const MLD_RECORDS: u8 = 143;

/// Length of an IGMP message without records and of the head of a list of records.
const HEADER: usize = 8;
const IGMP_QUERY_3: usize = 12;
const MLD_1: usize = 24;
const MLD_QUERY_2: usize = 28;
/// Robustness and query interval where a querier gives none (RFC 3376, section 8).
const DEFAULT_ROBUSTNESS: u8 = 2;
const DEFAULT_INTERVAL_S: u32 = 125;
/// Response time of IGMPv1, which has no field for it, in units of IGMP.
const RESPONSE_TIME_1: u32 = 100;

/// Generation of the protocol that a querier speaks, in the numbers of IGMP; MLDv1 is `V2`, MLDv2 is `V3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MembershipVersion {
    /// IGMPv1.
    V1,
    /// IGMPv2 and MLDv1.
    V2,
    /// IGMPv3 and MLDv2.
    V3,
}

/// Kind of a group record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// The sources are received.
    IsInclude,
    /// All but the sources are received.
    IsExclude,
    /// From now on the sources are received; without sources: the group is left.
    ToInclude,
    /// From now on all but the sources are received; without sources: the group is joined.
    ToExclude,
    /// The sources are received too.
    Allow,
    /// The sources are not received any more.
    Block,
}

impl RecordKind {
    fn read(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::IsInclude,
            2 => Self::IsExclude,
            3 => Self::ToInclude,
            4 => Self::ToExclude,
            5 => Self::Allow,
            6 => Self::Block,
            _ => return None,
        })
    }
}

/// Record about a group without sources, which is all that this crate sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Kind.
    pub kind: RecordKind,
    /// Group.
    pub group: IpAddr,
}

/// Query of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query<'a> {
    /// Generation of the protocol.
    pub version: MembershipVersion,
    /// Group in question; none for all groups.
    pub group: Option<IpAddr>,
    /// Time within which to answer.
    pub max_response_ms: u32,
    /// Number of times that reports of changes are sent.
    pub robustness: u8,
    /// Time between general queries.
    pub interval_s: u32,
    /// Sources in question.
    pub sources: Sources<'a>,
}

/// IP addresses in a message, of the version of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sources<'a> {
    bytes: &'a [u8],
    is_v6: bool,
}

impl Sources<'_> {
    /// Number of sources.
    pub fn len(&self) -> usize {
        self.bytes.len() / if self.is_v6 { 16 } else { 4 }
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the sources.
    pub fn iter(&self) -> impl Iterator<Item = IpAddr> + '_ {
        let length = if self.is_v6 { 16 } else { 4 };
        self.bytes.chunks_exact(length).filter_map(address)
    }
}

/// Group records of a report. Records of unknown kinds are skipped (RFC 3376, section 4.2.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Records<'a> {
    bytes: &'a [u8],
    count: u16,
    is_v6: bool,
}

impl<'a> Records<'a> {
    /// Returns kind, group and sources of each record.
    pub fn iter(&self) -> impl Iterator<Item = (RecordKind, IpAddr, Sources<'a>)> + use<'a> {
        let (mut rest, is_v6) = (self.bytes, self.is_v6);
        let read = move |_| {
            let (kind, group, sources, behind) = split_record(rest, is_v6)?;
            rest = behind;
            Some((kind, group, sources))
        };
        (0..self.count)
            .map_while(read)
            .filter_map(|(kind, group, sources)| Some((RecordKind::read(kind)?, group, sources)))
    }
}

/// A message about group membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MembershipMessage<'a> {
    /// Query.
    Query(Query<'a>),
    /// Report of IGMPv1, IGMPv2 or MLDv1: the sender is a member of the group.
    Report(IpAddr),
    /// "Leave" of IGMPv2, "done" of MLDv1.
    Leave(IpAddr),
    /// Report of IGMPv3 or MLDv2.
    Records(Records<'a>),
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(octets) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(octets).into());
    }
    let octets = <[u8; 16]>::try_from(bytes).ok()?;
    Some(Ipv6Addr::from(octets).into())
}

fn group(bytes: &[u8]) -> Result<IpAddr, FrameError> {
    address(bytes)
        .filter(IpAddr::is_multicast)
        .ok_or(FrameError::MembershipGroup)
}

/// Reads the group of a query, which is unspecified in a general query.
fn queried_group(bytes: &[u8]) -> Result<Option<IpAddr>, FrameError> {
    let is_general = bytes.iter().all(|byte| *byte == 0);
    (!is_general).then(|| group(bytes)).transpose()
}

/// Splits kind, group and sources of the first record from the records behind it.
fn split_record(bytes: &[u8], is_v6: bool) -> Option<(u8, IpAddr, Sources<'_>, &[u8])> {
    let length = if is_v6 { 16 } else { 4 };
    let (head, rest) = bytes.split_first_chunk::<4>()?;
    let [kind, auxiliary_words, count_0, count_1] = *head;
    let (group, rest) = rest.split_at_checked(length)?;
    let count = usize::from(u16::from_be_bytes([count_0, count_1]));
    let (sources, rest) = rest.split_at_checked(count * length)?;
    let (_auxiliary, rest) = rest.split_at_checked(4 * usize::from(auxiliary_words))?;
    let sources = Sources {
        bytes: sources,
        is_v6,
    };
    Some((kind, address(group)?, sources, rest))
}

fn parse_records(
    bytes: &[u8],
    count: [u8; 2],
    is_v6: bool,
) -> Result<MembershipMessage<'_>, FrameError> {
    let count = u16::from_be_bytes(count);
    let mut rest = bytes;
    for _ in 0..count {
        let (_, group, _, behind) =
            split_record(rest, is_v6).ok_or(FrameError::MembershipRecords)?;
        if !group.is_multicast() {
            return Err(FrameError::MembershipGroup);
        }
        rest = behind;
    }
    Ok(MembershipMessage::Records(Records {
        bytes,
        count,
        is_v6,
    }))
}

/// Decodes a value of 8 bits, which is a floating-point number from 128 on (RFC 3376, section 4.1.1).
fn decode_8(code: u8) -> u32 {
    let code = u32::from(code);
    if code < 0x80 {
        code
    } else {
        (code & 0xF | 0x10) << ((code >> 4 & 7) + 3)
    }
}

/// Decodes a value of 16 bits, which is a floating-point number from 32,768 on (RFC 3810, section 5.1.3).
fn decode_16(code: u16) -> u32 {
    let code = u32::from(code);
    if code < 0x8000 {
        code
    } else {
        (code & 0xFFF | 0x1000) << ((code >> 12 & 7) + 3)
    }
}

/// Robustness and interval of a query of generation 3, where 0 stands for a default.
fn querier(robustness: u8, interval: u8) -> (u8, u32) {
    let robustness = match robustness & 7 {
        0 => DEFAULT_ROBUSTNESS,
        given => given,
    };
    let interval_s = match decode_8(interval) {
        0 => DEFAULT_INTERVAL_S,
        given => given,
    };
    (robustness, interval_s)
}

impl<'a> MembershipMessage<'a> {
    /// Parses the payload of an IGMP packet.
    pub(crate) fn parse_igmp(packet: &IpPacket<'a>) -> Result<Self, FrameError> {
        let message = packet.payload;
        let (header, rest) = message
            .split_first_chunk::<HEADER>()
            .ok_or(FrameError::IgmpTruncated)?;
        if checksum::checksum(message) != 0 {
            return Err(FrameError::IgmpChecksum);
        }
        if packet.header.hop_limit != 1 {
            return Err(FrameError::IgmpTtl);
        }
        let [kind, code, _, _, group_bytes @ ..] = header;
        match *kind {
            IGMP_REPORT_1 | IGMP_REPORT_2 => Ok(Self::Report(group(group_bytes)?)),
            IGMP_LEAVE => Ok(Self::Leave(group(group_bytes)?)),
            IGMP_RECORDS => parse_records(rest, [header[6], header[7]], false),
            IGMP_QUERY => {
                let group = queried_group(group_bytes)?;
                Self::igmp_query(*code, group, message)
            }
            _ => Err(FrameError::IgmpType),
        }
    }

    fn igmp_query(code: u8, group: Option<IpAddr>, message: &'a [u8]) -> Result<Self, FrameError> {
        let mut query = Query {
            version: MembershipVersion::V2,
            group,
            max_response_ms: u32::from(code) * 100,
            robustness: DEFAULT_ROBUSTNESS,
            interval_s: DEFAULT_INTERVAL_S,
            sources: Sources {
                bytes: &[],
                is_v6: false,
            },
        };
        if message.len() == HEADER {
            if code == 0 {
                query.version = MembershipVersion::V1;
                query.max_response_ms = RESPONSE_TIME_1 * 100;
            }
            return Ok(Self::Query(query));
        }
        let (header, rest) = message
            .split_first_chunk::<IGMP_QUERY_3>()
            .ok_or(FrameError::IgmpTruncated)?;
        let [.., flags, interval, count_0, count_1] = *header;
        let count = usize::from(u16::from_be_bytes([count_0, count_1]));
        let sources = rest.get(..4 * count).ok_or(FrameError::MembershipRecords)?;
        query.version = MembershipVersion::V3;
        query.max_response_ms = decode_8(code) * 100;
        (query.robustness, query.interval_s) = querier(flags, interval);
        query.sources.bytes = sources;
        Ok(Self::Query(query))
    }

    /// Parses the payload of an ICMPv6 packet of one of the types of MLD, with a valid checksum.
    pub(crate) fn parse_mld(packet: &IpPacket<'a>) -> Result<Self, FrameError> {
        let message = packet.payload;
        let header = message
            .first_chunk::<HEADER>()
            .ok_or(FrameError::IcmpTruncated)?;
        if packet.header.hop_limit != 1 {
            return Err(FrameError::MldHopLimit);
        }
        let kind = header[0];
        let is_link_local = match packet.header.source {
            IpAddr::V6(source) => source.is_unicast_link_local(),
            IpAddr::V4(_) => false,
        };
        // A node without an address reports nevertheless, so that switches forward solicitations (RFC 3590).
        let is_query = kind == MLD_QUERY;
        if !is_link_local && (is_query || !packet.header.source.is_unspecified()) {
            return Err(FrameError::MldSource);
        }
        if !packet.header.has_router_alert {
            return Err(FrameError::MldRouterAlert);
        }
        if kind == MLD_RECORDS {
            return parse_records(&message[HEADER..], [header[6], header[7]], true);
        }
        let fixed = message
            .first_chunk::<MLD_1>()
            .ok_or(FrameError::IcmpTruncated)?;
        match kind {
            MLD_REPORT => Ok(Self::Report(group(&fixed[8..])?)),
            MLD_DONE => Ok(Self::Leave(group(&fixed[8..])?)),
            MLD_QUERY => {
                let group = queried_group(&fixed[8..])?;
                let code = u16::from_be_bytes([header[4], header[5]]);
                Self::mld_query(code, group, message)
            }
            _ => Err(FrameError::IcmpType),
        }
    }

    fn mld_query(code: u16, group: Option<IpAddr>, message: &'a [u8]) -> Result<Self, FrameError> {
        let mut query = Query {
            version: MembershipVersion::V2,
            group,
            max_response_ms: code.into(),
            robustness: DEFAULT_ROBUSTNESS,
            interval_s: DEFAULT_INTERVAL_S,
            sources: Sources {
                bytes: &[],
                is_v6: true,
            },
        };
        if message.len() == MLD_1 {
            return Ok(Self::Query(query));
        }
        let (header, rest) = message
            .split_first_chunk::<MLD_QUERY_2>()
            .ok_or(FrameError::IcmpTruncated)?;
        let [.., flags, interval, count_0, count_1] = *header;
        let count = usize::from(u16::from_be_bytes([count_0, count_1]));
        let sources = rest
            .get(..16 * count)
            .ok_or(FrameError::MembershipRecords)?;
        query.version = MembershipVersion::V3;
        query.max_response_ms = decode_16(code);
        (query.robustness, query.interval_s) = querier(flags, interval);
        query.sources.bytes = sources;
        Ok(Self::Query(query))
    }
}

/// Message of a host to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MembershipReport<'a> {
    /// Report of IGMPv3 or MLDv2.
    Records(&'a [Record]),
    /// Report of an older generation.
    Report(MembershipVersion, IpAddr),
    /// "Leave" or "done".
    Leave(IpAddr),
}

impl MembershipReport<'_> {
    /// Returns the destination. The list of records is not empty.
    fn destination(&self) -> Option<IpAddr> {
        Some(match self {
            Self::Records(records) => match records.first()?.group {
                IpAddr::V4(_) => REPORTS_V4.into(),
                IpAddr::V6(_) => REPORTS_V6.into(),
            },
            Self::Report(_, group) => *group,
            Self::Leave(IpAddr::V4(_)) => ALL_ROUTERS_V4.into(),
            Self::Leave(IpAddr::V6(_)) => ALL_ROUTERS_V6.into(),
        })
    }

    /// Writes a frame and returns its length; none if the buffer is too short, there is no record, or a group is of another IP
    /// version than the source.
    pub fn write_frame(
        &self,
        source_mac: MacAddress,
        vlan: Option<crate::VlanTag>,
        source: IpAddr,
        buffer: &mut [u8],
    ) -> Option<usize> {
        if let Self::Records(records) = self
            && records
                .iter()
                .any(|record| record.group.is_ipv4() != source.is_ipv4())
        {
            return None;
        }
        let destination = self.destination()?;
        let addresses = Addresses {
            source_mac,
            destination_mac: MacAddress::of_group(destination)?,
            vlan,
            source,
            destination,
        };
        match source {
            IpAddr::V4(_) => self.write_igmp(&addresses, buffer),
            IpAddr::V6(_) => self.write_mld(&addresses, buffer),
        }
    }

    fn write_igmp(&self, addresses: &Addresses, buffer: &mut [u8]) -> Option<usize> {
        let length = match self {
            Self::Records(records) => HEADER + 8 * records.len(),
            _ => HEADER,
        };
        let fields = HeaderFields {
            protocol: ip::IGMP,
            hop_limit: 1,
            // Internetwork control (RFC 3376, section 4).
            traffic_class: 0xC0,
            router_alert: true,
            payload_length: length,
        };
        let place = addresses.write(buffer, fields, |message| {
            message[..HEADER].fill(0);
            let (kind, group) = match *self {
                Self::Records(records) => {
                    write_records(message, IGMP_RECORDS, records);
                    return;
                }
                Self::Report(MembershipVersion::V1, group) => (IGMP_REPORT_1, group),
                Self::Report(_, group) => (IGMP_REPORT_2, group),
                Self::Leave(group) => (IGMP_LEAVE, group),
            };
            message[0] = kind;
            write_address(&mut message[4..], group);
        })?;
        let message = &mut buffer[place.clone()];
        let checksum = checksum::checksum(message);
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
        Some(place.end)
    }

    fn write_mld(&self, addresses: &Addresses, buffer: &mut [u8]) -> Option<usize> {
        let length = match self {
            Self::Records(records) => HEADER + 20 * records.len(),
            _ => MLD_1,
        };
        addresses.write_icmp(buffer, 1, true, length, |message| {
            message[..HEADER].fill(0);
            let (kind, group) = match *self {
                Self::Records(records) => {
                    write_records(message, MLD_RECORDS, records);
                    return;
                }
                Self::Report(_, group) => (MLD_REPORT, group),
                Self::Leave(group) => (MLD_DONE, group),
            };
            message[0] = kind;
            write_address(&mut message[8..], group);
        })
    }
}

/// Writes a report whose message has room for all records.
fn write_records(message: &mut [u8], kind: u8, records: &[Record]) {
    message[0] = kind;
    message[6..8].copy_from_slice(&(records.len() as u16).to_be_bytes());
    let size = (message.len() - HEADER) / records.len().max(1);
    for (record, bytes) in records.iter().zip(message[HEADER..].chunks_exact_mut(size)) {
        let kind = match record.kind {
            RecordKind::IsInclude => 1,
            RecordKind::IsExclude => 2,
            RecordKind::ToInclude => 3,
            RecordKind::ToExclude => 4,
            RecordKind::Allow => 5,
            RecordKind::Block => 6,
        };
        bytes[..4].copy_from_slice(&[kind, 0, 0, 0]);
        write_address(&mut bytes[4..], record.group);
    }
}

/// Writes as many bytes of an address as there is room for: callers pass the room for one of its version.
fn write_address(bytes: &mut [u8], address: IpAddr) {
    match address {
        IpAddr::V4(address) => bytes[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => bytes[..16].copy_from_slice(&address.octets()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decode_follows_the_floating_point_formats() {
        assert_eq!([0, 0x7F, 0x80, 0xFF].map(decode_8), [0, 127, 128, 31_744]);
        assert_eq!(
            [0, 0x7FFF, 0x8000, 0xFFFF].map(decode_16),
            [0, 32_767, 32_768, 8_387_584]
        );
    }
}
