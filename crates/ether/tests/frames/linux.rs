// SPDX-License-Identifier: Apache-2.0
//! Frames that Linux made.

use taran_ether::{
    Addresses, ArpOperation, ArpPacket, Frame, FrameError, IcmpMessage, MacAddress,
    MembershipMessage, MembershipReport, NeighbourAdvertisement, NeighbourSolicitation, Payload,
    Record, RecordKind, UdpChecksum, Unreachable, Verification,
};

use crate::samples::{FAR, NEAR, udp_payload};

fn linux(name: &str) -> Vec<u8> {
    let lines = include_str!("linux.txt").lines();
    let mut frames = lines.filter_map(|line| line.split_once(' '));
    let (_, hex) = frames.find(|(found, _)| *found == name).unwrap();
    let digits = hex.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn parse(bytes: &[u8]) -> Payload<'_> {
    Frame::parse(bytes, Verification::STRICT).unwrap().payload
}

fn written(write: impl FnOnce(&mut [u8]) -> Option<usize>) -> Vec<u8> {
    let mut buffer = vec![0xAA; 300];
    let length = write(&mut buffer).unwrap();
    buffer.truncate(length);
    buffer
}

#[test]
fn arp_packets_are_those_of_linux() {
    let mut packet = ArpPacket {
        operation: ArpOperation::Request,
        sender_mac: NEAR,
        sender: [10, 9, 0, 1].into(),
        target_mac: MacAddress([0; 6]),
        target: [10, 9, 0, 2].into(),
    };
    let request = linux("arp-request");
    assert_eq!(parse(&request), Payload::Arp(packet));
    assert_eq!(
        written(|b| packet.write_frame(MacAddress::BROADCAST, None, b)),
        request
    );
    packet = ArpPacket {
        operation: ArpOperation::Reply,
        sender_mac: FAR,
        sender: packet.target,
        target_mac: NEAR,
        target: packet.sender,
    };
    let reply = linux("arp-reply");
    assert_eq!(parse(&reply), Payload::Arp(packet));
    assert_eq!(written(|b| packet.write_frame(NEAR, None, b)), reply);
}

#[test]
fn nd_messages_are_those_of_linux() {
    let bytes = linux("nd-solicitation");
    let Payload::Solicitation(header, solicitation) = parse(&bytes) else {
        panic!("{:?}", parse(&bytes))
    };
    let expected = NeighbourSolicitation {
        target: "fd09::2".parse().unwrap(),
        source_mac: Some(NEAR),
    };
    assert_eq!(solicitation, expected);
    let addresses = Addresses {
        source_mac: NEAR,
        destination_mac: MacAddress::of_group(header.destination).unwrap(),
        vlan: None,
        source: header.source,
        destination: header.destination,
    };
    assert_eq!(written(|b| solicitation.write_frame(&addresses, b)), bytes);

    let bytes = linux("nd-advertisement");
    let Payload::Advertisement(header, advertisement) = parse(&bytes) else {
        panic!("{:?}", parse(&bytes))
    };
    let expected = NeighbourAdvertisement {
        target: "fd09::2".parse().unwrap(),
        target_mac: Some(FAR),
        is_solicited: true,
        is_override: true,
        is_router: false,
    };
    assert_eq!(advertisement, expected);
    let addresses = Addresses {
        source_mac: FAR,
        destination_mac: NEAR,
        vlan: None,
        source: header.source,
        destination: header.destination,
    };
    assert_eq!(written(|b| advertisement.write_frame(&addresses, b)), bytes);
}

#[test]
fn nd_solicitation_for_duplicate_detection_has_no_source() {
    let bytes = linux("nd-solicitation-dad");
    let Payload::Solicitation(header, solicitation) = parse(&bytes) else {
        panic!("{:?}", parse(&bytes))
    };
    assert!(header.source.is_unspecified());
    assert_eq!(solicitation.source_mac, None);
    assert_eq!(solicitation.target.to_string(), "fe80::ff:fe00:a");
}

#[test]
fn membership_reports_are_those_of_linux() {
    let cases = [
        ("igmp-join", RecordKind::ToExclude, "239.1.2.3", "10.9.0.1"),
        ("igmp-leave", RecordKind::ToInclude, "239.1.2.3", "10.9.0.1"),
        (
            "mld-join",
            RecordKind::ToExclude,
            "ff18::1234",
            "fe80::ff:fe00:a",
        ),
        (
            "mld-leave",
            RecordKind::ToInclude,
            "ff18::1234",
            "fe80::ff:fe00:a",
        ),
    ];
    for (name, kind, group, host) in cases {
        let bytes = linux(name);
        let Payload::Membership(header, MembershipMessage::Records(records)) = parse(&bytes) else {
            panic!("{:?}", parse(&bytes))
        };
        let group = group.parse().unwrap();
        let records: Vec<_> = records.iter().map(|(k, g, s)| (k, g, s.len())).collect();
        // A change to EXCLUDE without sources is what Linux reports as a join; a leave is a change to INCLUDE.
        assert_eq!(records, [(kind, group, 0)], "{name}");
        assert!(header.has_router_alert, "{name}");
        let record = [Record { kind, group }];
        let report = MembershipReport::Records(&record);
        let host = host.parse().unwrap();
        let ours = written(|b| report.write_frame(NEAR, None, host, b));
        assert_eq!(
            without_flow_label(ours),
            without_flow_label(bytes),
            "{name}"
        );
    }
    let bytes = linux("mld-report-two-records");
    let Payload::Membership(_, MembershipMessage::Records(records)) = parse(&bytes) else {
        panic!("{:?}", parse(&bytes))
    };
    assert_eq!(records.iter().count(), 2);
}

/// Clears the flow label of IPv6, which is free.
fn without_flow_label(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes[12..14] == [0x86, 0xDD] {
        bytes[15] &= 0xF0;
        bytes[16..18].fill(0);
    }
    bytes
}

#[test]
fn unfinished_checksums_are_taken_where_they_are_expected() {
    let unfinished = Verification {
        ipv4_header: true,
        udp: UdpChecksum::VerifyOrUnfinished,
    };
    for (name, payload) in [
        ("udp4-unfinished", b"taran ipv4"),
        ("udp6-unfinished", b"taran ipv6"),
    ] {
        let bytes = linux(name);
        let strict = Frame::parse(&bytes, Verification::STRICT);
        assert_eq!(strict.err(), Some(FrameError::UdpChecksum), "{name}");
        let frame = Frame::parse(&bytes, unfinished).unwrap();
        assert_eq!(udp_payload(&frame), payload, "{name}");
    }
}

#[test]
fn unreachable_port_names_the_datagram() {
    for (name, source, destination) in [
        ("icmp4-port-unreachable", "10.9.0.1:40001", "10.9.0.2:40456"),
        (
            "icmp6-port-unreachable",
            "[fd09::1]:40001",
            "[fd09::2]:40456",
        ),
    ] {
        let bytes = linux(name);
        let Payload::Icmp(_, IcmpMessage::Unreachable { reason, quote }) = parse(&bytes) else {
            panic!("{:?}", parse(&bytes))
        };
        assert_eq!(reason, Unreachable::Port);
        let ends = (source.parse().unwrap(), destination.parse().unwrap());
        assert_eq!(quote.udp_addresses(), Some(ends), "{name}");
    }
}

#[test]
fn router_solicitation_is_not_handled() {
    let bytes = linux("router-solicitation");
    let refused = Frame::parse(&bytes, Verification::STRICT);
    assert_eq!(refused.err(), Some(FrameError::IcmpType));
}
