// SPDX-License-Identifier: Apache-2.0
//! UDP datagrams (RFC 768).

use std::net::{IpAddr, SocketAddr};

use crate::FrameError;
use crate::ip::IpPacket;

/// Length of a UDP header.
pub const UDP_LENGTH: usize = 8;

/// Treatment of the UDP checksum of received datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UdpChecksum {
    /// The checksum is verified. Over IPv4 it may be missing.
    #[default]
    Verify,
    /// As `Verify`, but the sum of the pseudo-header alone is taken as the checksum that a kernel left to a card, which
    /// frames on virtual interfaces never pass.
    VerifyOrUnfinished,
    /// The card has verified the checksum.
    Trusted,
}

/// A received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpDatagram<'a> {
    /// Address of the sender.
    pub source: SocketAddr,
    /// Address to which the datagram was sent.
    pub destination: SocketAddr,
    /// Payload, in the received frame.
    pub payload: &'a [u8],
}

impl<'a> UdpDatagram<'a> {
    /// Parses the payload of a packet. Bytes after the UDP length are ignored, as by the kernel.
    pub(crate) fn parse(packet: &IpPacket<'a>, check: UdpChecksum) -> Result<Self, FrameError> {
        let header = packet
            .payload
            .first_chunk::<UDP_LENGTH>()
            .ok_or(FrameError::UdpTruncated)?;
        let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let length = usize::from(word(4));
        let datagram = packet.payload.get(..length);
        let datagram = datagram.filter(|datagram| datagram.len() >= UDP_LENGTH);
        let datagram = datagram.ok_or(FrameError::UdpLength)?;
        if word(2) == 0 {
            return Err(FrameError::UdpPort);
        }
        verify(packet, datagram, word(6), check)?;
        Ok(Self {
            source: SocketAddr::new(packet.header.source, word(0)),
            destination: SocketAddr::new(packet.header.destination, word(2)),
            payload: &datagram[UDP_LENGTH..],
        })
    }
}

fn verify(
    packet: &IpPacket<'_>,
    datagram: &[u8],
    field: u16,
    check: UdpChecksum,
) -> Result<(), FrameError> {
    if check == UdpChecksum::Trusted {
        return Ok(());
    }
    if field == 0 {
        return match packet.header.source {
            IpAddr::V4(_) => Ok(()),
            IpAddr::V6(_) => Err(FrameError::UdpChecksumMissing),
        };
    }
    let mut sum = packet.pseudo_header(datagram.len());
    if check == UdpChecksum::VerifyOrUnfinished && sum.folded() == field {
        return Ok(());
    }
    sum.add(datagram);
    if sum.checksum() == 0 {
        Ok(())
    } else {
        Err(FrameError::UdpChecksum)
    }
}
