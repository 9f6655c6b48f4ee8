// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;
use crate::derive::{Fingerprint, KeyId};
use crate::secret::Secret;

/// One valid datagram of each type.
fn samples() -> Vec<Vec<u8>> {
    let sealed = |frame_type, length: usize| {
        let mut bytes = vec![0x5a; length];
        let header = FrameHeader::new(length as i32, 0, frame_type);
        bytes[..8].copy_from_slice(header.as_bytes());
        bytes
    };
    let hint = Announce::hint(Announce::ANSWER, Fingerprint([1; 16]), 2, 3, 4);
    let hello = Hello::new(KeyId([1; 8]), [2; 16], 3, 4);
    let mut pairs = sealed(PAIR, 43);
    pairs.resize(48, 0);
    pairs.extend(sealed(PAIR, 41));
    vec![
        sealed(SEALED, 72),
        sealed(BACK, 76),
        hint.as_bytes().to_vec(),
        hello.as_bytes().to_vec(),
        sealed(INIT, 192),
        sealed(RESP, 112),
        sealed(COOKIE, 56),
        pairs,
    ]
}

#[test]
fn parse_takes_a_sample_of_each_type() {
    for (index, sample) in samples().iter().enumerate() {
        let parsed = SecureFrame::parse(sample);
        assert!(parsed.is_ok(), "{index}: {parsed:?}");
    }
}

#[test]
fn parse_refuses_every_flipped_bit_of_a_base_header() {
    for sample in samples() {
        for bit in 0..64 {
            let mut bytes = sample.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let allowed = [SEALED, BACK, ANNOUNCE, HELLO, INIT, PAIR];
            // Frame types of equal length, and the flag of an announcement, are told apart by their authenticators.
            if SecureFrame::parse(&bytes).is_ok() {
                let frame_type = FrameType(u16::from_le_bytes([bytes[6], bytes[7]]));
                assert!(allowed.contains(&frame_type), "bit {bit} of {frame_type:?}");
            }
        }
    }
}

#[test]
fn parse_refuses_truncated_and_extended_datagrams() {
    for sample in samples() {
        for cut in 1..=sample.len().min(64) {
            let cut = &sample[..sample.len() - cut];
            // Of two PAIR frames, the first alone is valid.
            if let Ok(SecureFrame::Pair(frames)) = SecureFrame::parse(cut) {
                assert_eq!(frames.count(), if cut.is_empty() { 0 } else { 1 });
            } else {
                assert!(SecureFrame::parse(cut).is_err());
            }
        }
        for more in 1..=64 {
            let mut bytes = sample.clone();
            bytes.resize(sample.len() + more, 0);
            let parsed = SecureFrame::parse(&bytes);
            // A PAIR frame may be padded to eight bytes.
            let is_padding = matches!(parsed, Ok(SecureFrame::Pair(_))) && more < 8;
            assert!(parsed.is_err() || is_padding, "{more} more: {parsed:?}");
        }
    }
}

#[test]
fn parse_refuses_reserved_bytes_that_are_not_zero() {
    let hint = Announce::hint(0, Fingerprint([1; 16]), 2, 3, 4);
    for at in (8..24).chain(64..192) {
        let mut bytes = hint.as_bytes().to_vec();
        bytes[at] = 1;
        assert!(SecureFrame::parse(&bytes).is_err(), "ANNOUNCE {at}");
    }
    let hello = Hello::new(KeyId([1; 8]), [2; 16], 3, 4);
    for at in 40..192 {
        let mut bytes = hello.as_bytes().to_vec();
        bytes[at] = 1;
        assert!(SecureFrame::parse(&bytes).is_err(), "HELLO {at}");
    }
}

#[test]
fn parse_refuses_announcements_of_other_versions() {
    let mut hint = Announce::hint(0, Fingerprint([1; 16]), 2, 3, 4);
    hint.version = 2.into();
    assert_eq!(
        SecureFrame::parse(hint.as_bytes()).err(),
        Some(InvalidSecureFrame::ProtocolVersion(2))
    );
}

#[test]
fn parse_refuses_plain_frames() {
    let heartbeat = taran_protocol::frame::DataHeader::heartbeat(0xc0, 1, 2, 3, 0);
    assert_eq!(
        SecureFrame::parse(heartbeat.as_bytes()).err(),
        Some(InvalidSecureFrame::Type(1))
    );
}

fn items() -> Vec<Item<'static>> {
    vec![
        Item::Request {
            request: 1,
            key: RequestedKey::Stream {
                session_id: -2,
                stream_id: 3,
            },
        },
        Item::Request {
            request: 2,
            key: RequestedKey::Id(KeyId([4; 8])),
        },
        Item::Grant(Grant {
            request: 1,
            session_id: -2,
            stream_id: 3,
            epoch: 4,
            suite: 1,
            flags: GRANT_NEXT,
            first_counter: 5,
            life_seconds: 6,
            identity: Fingerprint([7; 16]),
            secret: Secret::new([8; 32]),
        }),
        Item::Refused {
            request: 9,
            code: Code::NOT_ALLOWED,
            text: b"no",
        },
        Item::BackKey {
            epoch: 1,
            suite: 2,
            secret: Secret::new([3; 32]),
        },
        Item::Got(KeyId([1; 8])),
        Item::Retire(KeyId([2; 8])),
        Item::Renew,
        Item::Bye(Code::CLOSED),
        Item::Path([5; 8]),
        Item::PathAnswer([6; 8]),
        Item::Wish(KeyId([7; 8])),
    ]
}

#[test]
fn items_written_are_read_back() {
    let mut writer = ItemWriter::new();
    for item in items() {
        assert!(writer.push(&item));
    }
    let read: Vec<Item<'_>> = Items::parse(writer.bytes()).unwrap().collect();
    assert_eq!(read, items());
}

#[test]
fn grant_in_a_pair_frame_takes_128_bytes() {
    let mut writer = ItemWriter::new();
    assert!(writer.push(&items()[2]));
    assert_eq!(
        (writer.bytes().len() + PAIR_OVERHEAD).next_multiple_of(8),
        128
    );
}

#[test]
fn items_of_wrong_length_or_type_are_refused_as_a_whole() {
    for item in items() {
        let mut writer = ItemWriter::new();
        writer.push(&Item::Renew);
        writer.push(&item);
        let bytes = writer.bytes();
        for end in 5..bytes.len() {
            assert!(Items::parse(&bytes[..end]).is_err(), "{item:?} up to {end}");
        }
        let mut longer = bytes.to_vec();
        longer[6] = longer[6].wrapping_add(129);
        longer.resize(bytes.len() + 129, 0);
        assert!(Items::parse(&longer).is_err(), "{item:?}");
        let mut unknown = bytes.to_vec();
        unknown[4] = 12;
        assert!(matches!(Items::parse(&unknown), Err(InvalidItem::Type(12))));
    }
}

#[test]
fn item_debug_shows_no_secret() {
    for item in items() {
        let text = format!("{item:?}");
        assert!(!text.contains("8, 8, 8, 8, 8, 8, 8, 8, 8"), "{text}");
        assert!(!text.contains("3, 3, 3, 3, 3, 3, 3, 3, 3"), "{text}");
    }
}

proptest! {
    /// Any bytes are refused or read, and PAIR frames stay inside the datagram.
    #[test]
    fn parse_of_any_bytes_stays_in_bounds(mut bytes in prop::collection::vec(any::<u8>(), 0..300), kind in 0x5450..0x5458_u16, fix in any::<bool>()) {
        if fix && bytes.len() >= 8 {
            let header = FrameHeader::new(bytes.len() as i32, 0, FrameType(kind));
            bytes[..8].copy_from_slice(header.as_bytes());
        }
        if let Ok(SecureFrame::Pair(frames)) = SecureFrame::parse(&bytes) {
            let total: usize = frames.map(|frame| frame.bytes().len()).sum();
            prop_assert!(total <= bytes.len());
        }
        if let Ok(items) = Items::parse(&bytes) {
            prop_assert!(items.count() * 4 <= bytes.len());
        }
    }
}
