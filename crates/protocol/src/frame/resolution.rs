// SPDX-License-Identifier: Apache-2.0
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use zerocopy::IntoBytes;

use super::{FrameHeader, FrameType, InvalidFrame};

const HEADER: usize = 8;
/// Bytes of type, flags, port and age.
const ENTRY_FIXED: usize = 8;
const NAME_LENGTH_MAX: usize = 512;
const TYPE_IPV4: u8 = 1;
const TYPE_IPV6: u8 = 2;
const SELF: u8 = 0x80;

/// Iterator over the entries of a name resolution datagram. Ends after the first invalid entry (docs/spec/wire.md
/// §1.8).
#[doc(alias = "ResolutionEntryFlyweight")]
#[derive(Clone, Copy, Debug)]
pub struct Resolutions<'a> {
    rest: &'a [u8],
}

/// Name and address of one driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolutionEntry<'a> {
    /// True if the entry describes the sender of the datagram.
    pub is_self: bool,
    /// Address of the driver's name resolver.
    pub address: SocketAddr,
    /// Milliseconds since the sender last received an update for the driver.
    pub age_ms: i32,
    /// Driver name, ASCII, 1 to 512 bytes.
    pub name: &'a [u8],
}

impl<'a> Resolutions<'a> {
    pub(super) fn parse(datagram: &'a [u8]) -> Result<Self, InvalidFrame> {
        // The shortest entry has 14 bytes before its name.
        if datagram.len() < HEADER + 14 {
            return Err(InvalidFrame::TooShort {
                length: datagram.len(),
                needed: HEADER + 14,
            });
        }
        Ok(Self {
            rest: &datagram[HEADER..],
        })
    }

    /// Parses the next entry (docs/spec/wire.md §1.14 rule 6).
    fn parse_entry(&mut self) -> Result<ResolutionEntry<'a>, InvalidFrame> {
        let rest = self.rest;
        let short = |needed| InvalidFrame::TooShort {
            length: rest.len(),
            needed,
        };
        let (fixed, after) = rest
            .split_first_chunk::<ENTRY_FIXED>()
            .ok_or(short(ENTRY_FIXED))?;
        let [kind, flags, port_low, port_high, age @ ..] = *fixed;
        let port = u16::from_le_bytes([port_low, port_high]);
        let (ip, after) = match kind {
            TYPE_IPV4 => {
                let (octets, after) = after.split_first_chunk::<4>().ok_or(short(14))?;
                (IpAddr::V4(Ipv4Addr::from(*octets)), after)
            }
            TYPE_IPV6 => {
                let (octets, after) = after.split_first_chunk::<16>().ok_or(short(26))?;
                (IpAddr::V6(Ipv6Addr::from(*octets)), after)
            }
            other => return Err(InvalidFrame::ResolutionType(other)),
        };
        let (length, after) = after.split_first_chunk::<2>().ok_or(short(26))?;
        let name_length = i16::from_le_bytes(*length);
        let bad_name = InvalidFrame::ResolutionName {
            name_length,
            remaining: after.len(),
        };
        let length = usize::try_from(name_length).map_err(|_| bad_name)?;
        if length == 0 || length > NAME_LENGTH_MAX {
            return Err(bad_name);
        }
        let name = after.get(..length).ok_or(bad_name)?;
        let taken = (rest.len() - after.len() + length).next_multiple_of(8);
        self.rest = rest.get(taken..).unwrap_or_default();
        Ok(ResolutionEntry {
            is_self: flags & SELF != 0,
            address: SocketAddr::new(ip, port),
            age_ms: i32::from_le_bytes(age),
            name,
        })
    }
}

impl<'a> Iterator for Resolutions<'a> {
    type Item = Result<ResolutionEntry<'a>, InvalidFrame>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let entry = self.parse_entry();
        if entry.is_err() {
            self.rest = &[];
        }
        Some(entry)
    }
}

/// Writes a name resolution datagram into `buffer`, with as many entries as fit, in order. Returns its bytes and the
/// number of entries. An entry with an empty name or one longer than 512 bytes ends the datagram like one that does not
/// fit.
pub fn write_resolution<'b, 'n>(
    buffer: &'b mut [u8],
    entries: impl IntoIterator<Item = ResolutionEntry<'n>>,
) -> (&'b [u8], usize) {
    let mut at = HEADER.min(buffer.len());
    let mut count = 0;
    for entry in entries {
        let Some(end) = write_entry(&mut buffer[at..], &entry) else {
            break;
        };
        at += end;
        count += 1;
    }
    let header = FrameHeader::new(at as i32, 0, FrameType::RESOLUTION);
    if let Some(start) = buffer.get_mut(..HEADER) {
        start.copy_from_slice(header.as_bytes());
    }
    (&buffer[..at], count)
}

fn write_entry(buffer: &mut [u8], entry: &ResolutionEntry<'_>) -> Option<usize> {
    if entry.name.is_empty() || entry.name.len() > NAME_LENGTH_MAX {
        return None;
    }
    let address_length = if entry.address.is_ipv4() { 4 } else { 16 };
    let name_at = ENTRY_FIXED + address_length + 2;
    let end = (name_at + entry.name.len()).next_multiple_of(8);
    let bytes = buffer.get_mut(..end)?;
    bytes[0] = if entry.address.is_ipv4() {
        TYPE_IPV4
    } else {
        TYPE_IPV6
    };
    bytes[1] = if entry.is_self { SELF } else { 0 };
    bytes[2..4].copy_from_slice(&entry.address.port().to_le_bytes());
    bytes[4..8].copy_from_slice(&entry.age_ms.to_le_bytes());
    match entry.address.ip() {
        IpAddr::V4(ip) => bytes[8..12].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => bytes[8..24].copy_from_slice(&ip.octets()),
    }
    bytes[name_at - 2..name_at].copy_from_slice(&(entry.name.len() as i16).to_le_bytes());
    bytes[name_at..name_at + entry.name.len()].copy_from_slice(entry.name);
    bytes[name_at + entry.name.len()..].fill(0);
    Some(end)
}
