// SPDX-License-Identifier: Apache-2.0
//! The same frames, read and built by `etherparse`.

use std::net::{IpAddr, SocketAddr};

use etherparse::{
    IpNumber, LinkExtSlice, NetSlice, PacketBuilder, SlicedPacket, TransportSlice, VlanId,
};
use proptest::prelude::*;
use taran_ether::{Frame, Payload, Verification, VlanTag};

use crate::samples::{FAR, NEAR, samples, udp};

/// Source, destination, payload and VLAN of a datagram.
type Datagram = (SocketAddr, SocketAddr, Vec<u8>, Option<u16>);

/// Reads a frame with `etherparse`; none if it is no datagram.
fn read(bytes: &[u8]) -> Result<Option<Datagram>, String> {
    let packet = SlicedPacket::from_ethernet(bytes).map_err(|error| error.to_string())?;
    let vlan = packet
        .link_exts
        .iter()
        .find_map(|extension| match extension {
            LinkExtSlice::Vlan(vlan) => Some(vlan.vlan_identifier().value()),
            _ => None,
        });
    let ends: (IpAddr, IpAddr) = match &packet.net {
        Some(NetSlice::Ipv4(ip)) => {
            let header = ip.header();
            (
                header.source_addr().into(),
                header.destination_addr().into(),
            )
        }
        Some(NetSlice::Ipv6(ip)) => {
            let header = ip.header();
            (
                header.source_addr().into(),
                header.destination_addr().into(),
            )
        }
        _ => return Ok(None),
    };
    let Some(TransportSlice::Udp(udp)) = &packet.transport else {
        return Ok(None);
    };
    Ok(Some((
        SocketAddr::new(ends.0, udp.source_port()),
        SocketAddr::new(ends.1, udp.destination_port()),
        udp.payload().to_vec(),
        vlan,
    )))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn datagrams_that_are_taken_are_those_of_etherparse(index: prop::sample::Index, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4), cut in 0usize..4) {
        let samples = samples();
        let mut bytes = samples[index.index(samples.len())].bytes.clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(bytes.len() - cut);
        let check = Verification { ipv4_header: false, udp: taran_ether::UdpChecksum::Trusted };
        let ours = Frame::parse(&bytes, check);
        let theirs = read(&bytes);
        match (&ours, &theirs) {
            (Ok(Frame { ethernet, payload: Payload::Udp(_, datagram) }), Ok(Some(read))) => {
                let vlan = ethernet.vlan.map(VlanTag::id);
                let ours = (datagram.source, datagram.destination, datagram.payload.to_vec(), vlan);
                prop_assert_eq!(&ours, read);
            }
            (Ok(Frame { payload: Payload::Udp(..), .. }), other) => {
                prop_assert!(false, "taken, but {:?}", other);
            }
            (Ok(frame), Err(error)) => prop_assert!(false, "{:?} taken, but {}", frame, error),
            _ => {}
        }
    }

    #[test]
    fn datagrams_are_built_as_by_etherparse(is_v6: bool, tag in prop::option::of(0u16..0xFFF), payload in prop::collection::vec(any::<u8>(), 0..1000)) {
        let vlan = tag.and_then(|id| VlanTag::new(id, 0));
        let ours = if is_v6 {
            udp("[fd00::1]:40001", "[fd00::2]:40456", vlan, &payload)
        } else {
            udp("10.0.0.1:40001", "10.0.0.2:40456", vlan, &payload)
        };
        let fd00 = |last: u8| std::array::from_fn(|index| match index { 0 => 0xFD, 15 => last, _ => 0 });
        let builder = PacketBuilder::ethernet2(NEAR.0, FAR.0);
        let builder = match (tag, is_v6) {
            (None, false) => builder.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64),
            (None, true) => builder.ipv6(fd00(1), fd00(2), 64),
            (Some(id), false) => builder.single_vlan(VlanId::try_new(id).unwrap()).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64),
            (Some(id), true) => builder.single_vlan(VlanId::try_new(id).unwrap()).ipv6(fd00(1), fd00(2), 64),
        };
        let mut theirs = Vec::new();
        builder.udp(40_001, 40_456).write(&mut theirs, &payload).unwrap();
        prop_assert_eq!(ours, theirs);
    }
}

#[test]
fn control_frames_have_checksums_that_etherparse_takes() {
    let mut checked = 0;
    for sample in samples() {
        let packet = SlicedPacket::from_ethernet(&sample.bytes).unwrap();
        match (&packet.net, &packet.transport) {
            (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Icmpv4(icmp))) => {
                let message = icmp.slice();
                let sum = icmp.header().icmp_type.calc_checksum(icmp.payload());
                assert_eq!(sum.to_be_bytes(), message[2..4], "{}", sample.name);
                let header = ip.header().to_header();
                assert_eq!(header.calc_header_checksum(), header.header_checksum);
                checked += 1;
            }
            (Some(NetSlice::Ipv6(ip)), Some(TransportSlice::Icmpv6(icmp))) => {
                let header = ip.header();
                let (source, destination) = (header.source(), header.destination());
                assert!(
                    icmp.is_checksum_valid(source, destination),
                    "{}",
                    sample.name
                );
                assert_eq!(ip.payload().ip_number, IpNumber::IPV6_ICMP);
                checked += 1;
            }
            _ => {}
        }
    }
    assert!(checked >= 9, "{checked}");
}
