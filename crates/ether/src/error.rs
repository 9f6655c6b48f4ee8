// SPDX-License-Identifier: Apache-2.0
//! Reasons for which a frame is refused, and their counters.

use thiserror::Error;

macro_rules! reasons {
    ($($(#[$attribute:meta])* $name:ident: $class:ident, $text:literal;)+) => {
        /// Reason for which a received frame is refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
        pub enum FrameError {
            $(#[doc = $text] #[error($text)] $name,)+
        }

        impl FrameError {
            /// All reasons.
            pub const ALL: &[FrameError] = &[$(FrameError::$name),+];

            /// Returns whether the frame violates its protocol, or is of no use here.
            pub fn class(self) -> RefusalClass {
                match self {
                    $(FrameError::$name => RefusalClass::$class,)+
                }
            }
        }
    };
}

/// Kind of refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalClass {
    /// The frame violates its protocol.
    Malformed,
    /// The frame may be valid, but nothing here handles it.
    Unsupported,
}

reasons! {
    EthernetTruncated: Malformed, "the frame ends within its Ethernet header";
    EthernetSource: Malformed, "the source MAC address is a group address";
    VlanTruncated: Malformed, "the frame ends within its VLAN tag";
    VlanId: Malformed, "the VLAN identifier is 4095, which is reserved";
    VlanNested: Unsupported, "the frame has more than one VLAN tag";
    LengthField: Unsupported, "the frame has an IEEE 802.3 length in place of an EtherType";
    EtherType: Unsupported, "the EtherType is none of IPv4, IPv6 and ARP";
    ArpTruncated: Malformed, "the ARP packet has less than 28 bytes";
    ArpFormat: Malformed, "the ARP packet is not for IPv4 over Ethernet";
    ArpSender: Malformed, "the sender of the ARP packet has a group address";
    ArpOperation: Unsupported, "the ARP operation is neither request nor reply";
    Ipv4Truncated: Malformed, "the frame ends within the IPv4 header";
    Ipv4Version: Malformed, "the version in the IPv4 header is not 4";
    Ipv4HeaderLength: Malformed, "the header length of IPv4 is below 20 or beyond the packet";
    Ipv4TotalLength: Malformed, "the total length of IPv4 is below the header length or beyond the frame";
    Ipv4Checksum: Malformed, "the checksum of the IPv4 header is wrong";
    Ipv4Flags: Malformed, "the reserved flag of IPv4 is set";
    Ipv4Options: Malformed, "an IPv4 option ends beyond the header";
    Ipv4SourceRoute: Unsupported, "the IPv4 packet has a source route";
    Ipv4Source: Malformed, "the IPv4 source is a group, broadcast, loopback or reserved address, or missing";
    Ipv4Destination: Malformed, "the IPv4 destination is a loopback or unspecified address";
    Ipv6Truncated: Malformed, "the frame ends within the IPv6 header";
    Ipv6Version: Malformed, "the version in the IPv6 header is not 6";
    Ipv6PayloadLength: Malformed, "the payload length of IPv6 is beyond the frame";
    Ipv6Source: Malformed, "the IPv6 source is a group or loopback address, or missing";
    Ipv6Destination: Malformed, "the IPv6 destination is a loopback or unspecified address, or a group of the own node";
    Ipv6Extension: Malformed, "an IPv6 extension header ends beyond the packet";
    Ipv6ExtensionOrder: Malformed, "hop-by-hop options are not the first IPv6 extension header, or an extension header is repeated";
    Ipv6Options: Malformed, "an IPv6 option ends beyond its extension header";
    Ipv6UnknownOption: Unsupported, "an unknown IPv6 option asks to discard the packet";
    Ipv6Routing: Unsupported, "the IPv6 routing header has segments left";
    Fragment: Unsupported, "the packet is a fragment";
    Protocol: Unsupported, "the packet is none of UDP, ICMP, IGMP and ICMPv6";
    UdpTruncated: Malformed, "the packet ends within the UDP header";
    UdpLength: Malformed, "the UDP length is below 8 or beyond the packet";
    UdpPort: Malformed, "the UDP destination port is 0";
    UdpChecksum: Malformed, "the UDP checksum is wrong";
    UdpChecksumMissing: Malformed, "the UDP checksum over IPv6 is missing";
    IcmpTruncated: Malformed, "the ICMP message ends within its header";
    IcmpChecksum: Malformed, "the ICMP checksum is wrong";
    IcmpCode: Malformed, "the code of an ICMP echo or ND message is not 0";
    IcmpQuote: Malformed, "the packet that an ICMP error quotes is truncated or not of this IP version";
    IcmpType: Unsupported, "the ICMP type is not handled";
    NdHopLimit: Malformed, "the hop limit of an ND message is not 255";
    NdTarget: Malformed, "the target of an ND message is a group or unspecified address";
    NdOptions: Malformed, "an ND option has a length of 0, ends beyond the message, or has no Ethernet address";
    NdSource: Malformed, "an ND solicitation without a source has a link-layer address, or is not sent to a solicited-node group";
    NdSolicited: Malformed, "a solicited ND advertisement is sent to a group";
    NdFragmented: Malformed, "an ND message has a fragment header";
    IgmpTruncated: Malformed, "the IGMP message ends within its header";
    IgmpChecksum: Malformed, "the IGMP checksum is wrong";
    IgmpTtl: Malformed, "the TTL of an IGMP message is not 1";
    IgmpType: Unsupported, "the IGMP type is not handled";
    MldHopLimit: Malformed, "the hop limit of an MLD message is not 1";
    MldSource: Malformed, "the source of an MLD message is not a link-local address";
    MldRouterAlert: Malformed, "an MLD message has no router alert option";
    MembershipGroup: Malformed, "the group of a membership message is not a group address";
    MembershipRecords: Malformed, "a group record or source of a membership message ends beyond it";
}

/// Number of refused frames by reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalCounters {
    counts: [u64; FrameError::ALL.len()],
}

impl RefusalCounters {
    /// Creates counters of zero.
    pub fn new() -> Self {
        Self {
            counts: [0; FrameError::ALL.len()],
        }
    }

    /// Counts a refused frame.
    pub fn count(&mut self, reason: FrameError) {
        let count = &mut self.counts[reason as usize];
        *count = count.saturating_add(1);
    }

    /// Returns the number of frames refused for a reason.
    pub fn get(&self, reason: FrameError) -> u64 {
        self.counts[reason as usize]
    }

    /// Returns the number of frames refused for reasons of a class.
    pub fn total(&self, class: RefusalClass) -> u64 {
        let of_class = self.iter().filter(|(reason, _)| reason.class() == class);
        of_class.map(|(_, count)| count).sum()
    }

    /// Returns each reason with its number of frames.
    pub fn iter(&self) -> impl Iterator<Item = (FrameError, u64)> + '_ {
        let reasons = FrameError::ALL.iter().copied();
        reasons.zip(self.counts.iter().copied())
    }
}

impl Default for RefusalCounters {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_count_each_reason_by_itself() {
        let mut counters = RefusalCounters::new();
        for (index, &reason) in FrameError::ALL.iter().enumerate() {
            assert_eq!(reason as usize, index);
            for _ in 0..=index {
                counters.count(reason);
            }
        }
        for (index, (reason, count)) in counters.iter().enumerate() {
            assert_eq!(count, index as u64 + 1);
            assert_eq!(counters.get(reason), count);
        }
        let all = FrameError::ALL.len() as u64;
        let total =
            counters.total(RefusalClass::Malformed) + counters.total(RefusalClass::Unsupported);
        assert_eq!(total, all * (all + 1) / 2);
    }
}
