// SPDX-License-Identifier: Apache-2.0
//! UDP datagrams: templates, trains, checksums.

use proptest::prelude::*;
use taran_ether::{
    BuildError, ChecksumOffload, Frame, FrameError, PathError, Payload, UdpChecksum, UdpTemplate,
    Verification, VlanTag,
};

use crate::samples::{path, udp, udp_payload};

const TRUSTED: Verification = Verification {
    ipv4_header: true,
    udp: UdpChecksum::Trusted,
};
const UNFINISHED: Verification = Verification {
    ipv4_header: true,
    udp: UdpChecksum::VerifyOrUnfinished,
};

fn ends() -> impl Strategy<Value = (&'static str, &'static str)> {
    prop_oneof![
        Just(("10.0.0.1:40001", "10.0.0.2:40456")),
        Just(("10.0.0.1:40001", "239.255.0.1:40456")),
        Just(("[fd00::1]:40001", "[fd00::2]:40456")),
        Just(("[fe80::1]:40001", "[ff18::2]:40456")),
    ]
}

fn tags() -> impl Strategy<Value = Option<VlanTag>> {
    prop::option::of((0u16..0xFFF, 0u8..8))
        .prop_map(|tag| tag.and_then(|(id, p)| VlanTag::new(id, p)))
}

proptest! {
    #[test]
    fn parse_reads_what_build_and_finish_wrote((source, destination) in ends(), vlan in tags(), payload in prop::collection::vec(any::<u8>(), 0..1452), class: u8, hops in 1u8..) {
        let mut path = path(source, destination, vlan);
        (path.traffic_class, path.hop_limit) = (class, hops);
        let template = UdpTemplate::new(&path).unwrap();
        let mut built = vec![0xAA; 1600];
        let length = template.build(&mut built, &payload, ChecksumOffload::Software).unwrap();
        let start = template.header_length();
        let mut finished = vec![0x55; 1600];
        finished[start..start + payload.len()].copy_from_slice(&payload);
        prop_assert_eq!(template.finish(&mut finished, payload.len(), ChecksumOffload::Software), Ok(length));
        prop_assert_eq!(&built[..length], &finished[..length]);
        prop_assert!(built[length..].iter().all(|byte| *byte == 0xAA));

        let frame = Frame::parse(&built[..length], Verification::STRICT).unwrap();
        let Payload::Udp(header, datagram) = frame.payload else { panic!("{frame:?}") };
        prop_assert_eq!((datagram.source, datagram.destination, datagram.payload), (path.source, path.destination, &payload[..]));
        prop_assert_eq!((header.traffic_class, header.hop_limit, frame.ethernet.vlan), (class, hops, vlan));
        prop_assert_eq!((frame.ethernet.source, frame.ethernet.destination), (path.source_mac, path.destination_mac));
    }

    #[test]
    fn parse_of_a_datagram_with_a_flipped_bit_is_refused((source, destination) in ends(), payload in prop::collection::vec(any::<u8>(), 0..64)) {
        let bytes = udp(source, destination, None, &payload);
        let udp_start = bytes.len() - payload.len() - 8;
        let is_v4 = udp_start == 34;
        // The IPv4 header has a checksum; the pseudo-header covers the addresses of IPv6.
        let covered = if is_v4 { 14..bytes.len() } else { 22..bytes.len() };
        for at in covered {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                let field = [changed[udp_start + 6], changed[udp_start + 7]];
                match Frame::parse(&changed, Verification::STRICT) {
                    Err(_) => {}
                    // Over IPv4 a checksum of 0 is none.
                    Ok(_) if is_v4 && at >= udp_start + 6 && field == [0, 0] => {}
                    // A shorter length changes the sum by other bytes than that one.
                    Ok(frame) if at == udp_start + 4 || at == udp_start + 5 => {
                        prop_assert!(udp_payload(&frame).len() < payload.len());
                    }
                    Ok(frame) => prop_assert!(false, "byte {} bit {}: {:?}", at, bit, frame),
                }
            }
        }
    }

    #[test]
    fn train_carries_all_bytes_in_order((source, destination) in ends(), bytes in prop::collection::vec(any::<u8>(), 0..5000), segment in 1usize..1452) {
        let template = UdpTemplate::new(&path(source, destination, None)).unwrap();
        let mut train = template.train(&bytes, segment).unwrap();
        let mut frame = [0; 1600];
        let mut carried = Vec::new();
        prop_assert_eq!(train.remaining(), bytes.len().div_ceil(segment));
        while !train.is_done() {
            let short = train.build_next(&mut frame[..20], ChecksumOffload::Software);
            let is_refused = matches!(short, Err(BuildError::Buffer { room: 20, .. }));
            prop_assert!(is_refused);
            let length = train.build_next(&mut frame, ChecksumOffload::Software).unwrap();
            let parsed = Frame::parse(&frame[..length], Verification::STRICT).unwrap();
            let payload = udp_payload(&parsed);
            prop_assert!(payload.len() == segment || train.is_done());
            carried.extend_from_slice(payload);
            prop_assert_eq!(train.accepted(), carried.len());
        }
        prop_assert_eq!(&carried, &bytes);
        prop_assert_eq!(train.build_next(&mut frame, ChecksumOffload::Software), Ok(0));
    }
}

#[test]
fn template_of_a_path_without_room_is_refused() {
    let mut narrow = path("10.0.0.1:1", "10.0.0.2:2", None);
    narrow.mtu = 27;
    assert_eq!(
        UdpTemplate::new(&narrow).err(),
        Some(PathError::Mtu {
            mtu: 27,
            needed: 28
        })
    );
    narrow.mtu = 28;
    assert_eq!(UdpTemplate::new(&narrow).unwrap().max_payload(), 0);
    narrow.mtu = u32::MAX;
    assert_eq!(UdpTemplate::new(&narrow).unwrap().max_payload(), 65_507);
    let wide = path("[fd00::1]:1", "[fd00::2]:2", None);
    assert_eq!(UdpTemplate::new(&wide).unwrap().max_payload(), 1452);
    let mixed = UdpTemplate::new(&path("10.0.0.1:1", "[fd00::2]:2", None));
    assert!(matches!(mixed.err(), Some(PathError::Versions { .. })));
    let without_port = UdpTemplate::new(&path("10.0.0.1:1", "10.0.0.2:0", None));
    assert!(matches!(without_port.err(), Some(PathError::Port(_))));
}

#[test]
fn build_of_a_payload_beyond_path_or_buffer_leaves_the_buffer() {
    let template = UdpTemplate::new(&path("10.0.0.1:1", "10.0.0.2:2", None)).unwrap();
    let mut frame = [0xAA; 2000];
    let too_long = template.build(&mut frame, &[0; 1473], ChecksumOffload::Software);
    let most = BuildError::TooLong {
        length: 1473,
        most: 1472,
    };
    assert_eq!(too_long, Err(most));
    let no_room = template.build(&mut frame[..42 + 9], &[0; 10], ChecksumOffload::Software);
    assert_eq!(
        no_room,
        Err(BuildError::Buffer {
            room: 51,
            needed: 52
        })
    );
    assert!(frame.iter().all(|byte| *byte == 0xAA));
    assert!(template.train(&[0; 3000], 1473).is_err());
    assert!(template.train(&[0; 3000], 0).is_err());
    // One short segment is a datagram, whatever the segment length.
    assert!(template.train(&[0; 100], 1473).is_ok());
}

#[test]
fn datagram_for_a_card_is_unfinished_until_the_card_completes_it() {
    for (source, destination) in [("10.0.0.1:1", "10.0.0.2:2"), ("[fd00::1]:1", "[fd00::2]:2")] {
        let template = UdpTemplate::new(&path(source, destination, None)).unwrap();
        let mut frame = [0; 200];
        let length = template
            .build(&mut frame, b"for a card", ChecksumOffload::Card)
            .unwrap();
        let parse = |frame: &[u8], check| {
            Frame::parse(&frame[..length], check).map(|f| udp_payload(&f).len())
        };
        assert_eq!(
            parse(&frame, Verification::STRICT),
            Err(FrameError::UdpChecksum)
        );
        assert_eq!(parse(&frame, UNFINISHED), Ok(10));
        assert_eq!(parse(&frame, TRUSTED), Ok(10));
        // What a card does: the checksum from the start of UDP on, with the sum of the pseudo-header in the field.
        let start = template.udp_start();
        let sum = taran_ether::checksum::checksum(&frame[start..length]);
        frame[start + 6..start + 8].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(parse(&frame, Verification::STRICT), Ok(10));
        // Any other wrong value is refused.
        frame[start + 7] ^= 1;
        assert_eq!(parse(&frame, UNFINISHED), Err(FrameError::UdpChecksum));
    }
}

#[test]
fn datagram_without_checksum_is_taken_over_ipv4_only() {
    let without = |source, destination| {
        let mut bytes = udp(source, destination, None, b"payload");
        let start = bytes.len() - 15;
        bytes[start + 6..start + 8].fill(0);
        Frame::parse(&bytes, Verification::STRICT).map(|frame| udp_payload(&frame).len())
    };
    assert_eq!(without("10.0.0.1:1", "10.0.0.2:2"), Ok(7));
    assert_eq!(
        without("[fd00::1]:1", "[fd00::2]:2"),
        Err(FrameError::UdpChecksumMissing)
    );
}

#[test]
fn datagram_whose_checksum_is_zero_is_sent_with_ffff() {
    let mut seen = false;
    for word in 0..=u16::MAX {
        let bytes = udp("10.0.0.1:1", "10.0.0.2:2", None, &word.to_be_bytes());
        assert_ne!(bytes[40..42], [0, 0]);
        seen |= bytes[40..42] == [0xFF, 0xFF];
    }
    assert!(seen);
}
