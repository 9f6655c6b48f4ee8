// SPDX-License-Identifier: Apache-2.0
//! One frame of each kind, built by the crate.

use std::net::SocketAddr;
use std::ops::Range;

use taran_ether::{
    Addresses, ArpOperation, ArpPacket, ChecksumOffload, Echo, Frame, IcmpMessage, MacAddress,
    MembershipReport, MembershipVersion, NeighbourAdvertisement, NeighbourSolicitation, Payload,
    Record, RecordKind, UdpPath, UdpTemplate, VlanTag, checksum, solicited_node,
};

pub(crate) const NEAR: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xA]);
pub(crate) const FAR: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xB]);

pub(crate) struct Sample {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    /// Bytes of which each changed bit has to be noticed.
    pub(crate) covered: Range<usize>,
    pub(crate) has_checksum: bool,
}

pub(crate) fn path(source: &str, destination: &str, vlan: Option<VlanTag>) -> UdpPath {
    UdpPath {
        source_mac: NEAR,
        destination_mac: FAR,
        vlan,
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
        hop_limit: 64,
        traffic_class: 0,
        mtu: 1500,
    }
}

pub(crate) fn udp(
    source: &str,
    destination: &str,
    vlan: Option<VlanTag>,
    payload: &[u8],
) -> Vec<u8> {
    let template = UdpTemplate::new(&path(source, destination, vlan)).unwrap();
    let mut frame = vec![0xAA; 2000];
    let length = template.build(&mut frame, payload, ChecksumOffload::Software);
    frame.truncate(length.unwrap());
    frame
}

/// Computes the checksum of an IPv4 header behind an untagged Ethernet header.
pub(crate) fn repair_ipv4(bytes: &mut [u8]) {
    let length = usize::from(bytes[14] & 0xF) * 4;
    bytes[24..26].fill(0);
    let sum = checksum::checksum(&bytes[14..14 + length]);
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
}

fn addresses(source: &str, destination: &str) -> Addresses {
    Addresses {
        source_mac: NEAR,
        destination_mac: FAR,
        vlan: None,
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
    }
}

fn written(write: impl FnOnce(&mut [u8]) -> Option<usize>) -> Vec<u8> {
    let mut buffer = vec![0xAA; 2000];
    let length = write(&mut buffer).unwrap();
    buffer.truncate(length);
    buffer
}

fn record(kind: RecordKind, group: &str) -> Record {
    Record {
        kind,
        group: group.parse().unwrap(),
    }
}

pub(crate) fn samples() -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut push = |name, covered: usize, bytes: Vec<u8>| {
        let length = bytes.len();
        samples.push(Sample {
            name,
            covered: covered.min(length)..length,
            has_checksum: covered < length,
            bytes,
        });
    };
    let tag = VlanTag::new(7, 3);
    // The length and the checksum of UDP have flips that pass (`datagrams`), so that only ports and addresses are covered.
    push(
        "udp4",
        42,
        udp("10.0.0.1:7", "10.0.0.2:9", None, b"payload"),
    );
    push(
        "udp4-vlan",
        46,
        udp("10.0.0.1:7", "10.0.0.2:9", tag, b"payload"),
    );
    push(
        "udp6",
        62,
        udp("[fd00::1]:7", "[fd00::2]:9", None, b"payload"),
    );
    push(
        "udp6-vlan",
        66,
        udp("[fd00::1]:7", "[fd00::2]:9", tag, b"payload"),
    );
    let arp = ArpPacket {
        operation: ArpOperation::Request,
        sender_mac: NEAR,
        sender: [10, 0, 0, 1].into(),
        target_mac: MacAddress([0; 6]),
        target: [10, 0, 0, 2].into(),
    };
    push("arp", usize::MAX, written(|b| arp.write_frame(FAR, tag, b)));
    let echo = Echo {
        identity: [1, 2, 3, 4],
        data: b"are you there",
    };
    let (v4, v6) = (
        addresses("10.0.0.1", "10.0.0.2"),
        addresses("fd00::1", "fd00::2"),
    );
    push("echo4", 14, written(|b| v4.write_echo(b, true, &echo)));
    push("echo6", 54, written(|b| v6.write_echo(b, true, &echo)));
    push("reply4", 14, written(|b| v4.write_echo(b, false, &echo)));
    push("reply6", 54, written(|b| v6.write_echo(b, false, &echo)));
    let target = "fd00::2".parse().unwrap();
    let mut to_group = v6;
    to_group.destination = solicited_node(target).into();
    to_group.destination_mac = MacAddress::of_group(to_group.destination).unwrap();
    let solicitation = NeighbourSolicitation {
        target,
        source_mac: Some(NEAR),
    };
    push(
        "solicitation",
        54,
        written(|b| solicitation.write_frame(&to_group, b)),
    );
    let advertisement = NeighbourAdvertisement {
        target,
        target_mac: Some(NEAR),
        is_solicited: true,
        is_override: true,
        is_router: false,
    };
    push(
        "advertisement",
        54,
        written(|b| advertisement.write_frame(&v6, b)),
    );
    let (group4, group6) = ("239.1.2.3".parse().unwrap(), "ff18::1234".parse().unwrap());
    let host4 = "10.9.0.1".parse().unwrap();
    let host6 = "fe80::ff:fe00:a".parse().unwrap();
    let records4 = [
        record(RecordKind::ToExclude, "239.1.2.3"),
        record(RecordKind::IsExclude, "239.1.2.4"),
    ];
    let records6 = [
        record(RecordKind::ToInclude, "ff18::1"),
        record(RecordKind::IsExclude, "ff18::2"),
    ];
    for (name, covered, report, host) in [
        ("igmp3", 14, MembershipReport::Records(&records4), host4),
        (
            "igmp2",
            14,
            MembershipReport::Report(MembershipVersion::V2, group4),
            host4,
        ),
        (
            "igmp1",
            14,
            MembershipReport::Report(MembershipVersion::V1, group4),
            host4,
        ),
        ("igmp-leave", 14, MembershipReport::Leave(group4), host4),
        ("mld2", 62, MembershipReport::Records(&records6), host6),
        (
            "mld1",
            62,
            MembershipReport::Report(MembershipVersion::V2, group6),
            host6,
        ),
        ("mld-done", 62, MembershipReport::Leave(group6), host6),
    ] {
        push(
            name,
            covered,
            written(|b| report.write_frame(NEAR, None, host, b)),
        );
    }
    samples
}

pub(crate) fn udp_payload<'a>(frame: &Frame<'a>) -> &'a [u8] {
    match frame.payload {
        Payload::Udp(_, datagram) => datagram.payload,
        other => panic!("no datagram: {other:?}"),
    }
}

/// Asserts that the slices of a parsed frame lie in its bytes.
pub(crate) fn assert_views(frame: &Frame<'_>, bytes: &[u8]) {
    let lies_within = |view: &[u8]| {
        view.is_empty() || bytes.as_ptr_range().contains(&view.as_ptr()) && view.len() < bytes.len()
    };
    match frame.payload {
        Payload::Udp(_, datagram) => {
            assert!(lies_within(datagram.payload));
            assert_ne!(SocketAddr::port(&datagram.destination), 0);
        }
        Payload::Icmp(_, IcmpMessage::EchoRequest(echo) | IcmpMessage::EchoReply(echo)) => {
            assert!(lies_within(echo.data));
        }
        _ => {}
    }
}
