// SPDX-License-Identifier: Apache-2.0
use zerocopy::IntoBytes;

use super::*;
use crate::frame::{Frame, FrameHeader, ValidatedFrames};

/// Returns a packet of frames with these payload lengths as sent on the wire, optionally followed by a padding header.
fn packet(mut offset: i32, payloads: &[usize], padding: Option<i32>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = |length, frame_type, offset| DataHeader {
        header: FrameHeader::new(length, DataHeader::UNFRAGMENTED, frame_type),
        ..DataHeader::heartbeat(0, SESSION, STREAM, 100, offset)
    };
    for &payload in payloads {
        let length = 32 + payload as i32;
        bytes.extend(header(length, FrameType::DATA, offset).as_bytes());
        bytes.extend((0..payload).map(|index| (index % 251) as u8 + 1));
        bytes.resize(bytes.len().next_multiple_of(32), 0);
        offset += align32(length);
    }
    if let Some(length) = padding {
        bytes.extend(header(length, FrameType::PAD, offset).as_bytes());
    }
    bytes
}

fn validated(bytes: &[u8]) -> ValidatedFrames<'_> {
    match Frame::parse(bytes).unwrap() {
        Frame::Data(frame) => frame.validate(TERM_LENGTH).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn insert_copies_packet_byte_for_byte() {
    for payloads in [&[0][..], &[5], &[32], &[33], &[1376], &[5, 0, 100, 31]] {
        let log = new_log(LogKind::Image, 0);
        let bytes = packet(320, payloads, None);
        assert!(insert(log.term(0), &validated(&bytes)));
        assert_eq!(log.term(0).bytes(320, bytes.len()), bytes);
        assert_eq!(log.term(0).bytes(0, 320), [0; 320]);
        assert_eq!(length_at(log.term(0), 320 + bytes.len() as i32), 0);
    }
}

#[test]
fn insert_duplicate_keeps_first_copy() {
    let log = new_log(LogKind::Image, 0);
    let mut bytes = packet(0, &[5], None);
    assert!(insert(log.term(0), &validated(&bytes)));
    bytes[32] = 99;
    assert!(!insert(log.term(0), &validated(&bytes)));
    assert_eq!(log.term(0).bytes(32, 1), [1]);
}

#[test]
fn insert_padding_at_term_end_succeeds() {
    let log = new_log(LogKind::Image, 0);
    let bytes = packet(TERM_LENGTH - 128, &[5], Some(64));
    let packet = validated(&bytes);
    assert_eq!(packet.length_in_term(), 128);
    assert!(insert(log.term(0), &packet));
    let rebuilt = find_gap(log.term(0), TERM_LENGTH - 128, TERM_LENGTH).unwrap();
    assert_eq!(
        rebuilt,
        GapScan {
            offset: TERM_LENGTH,
            gap: None
        }
    );
}

#[test]
fn insert_heartbeat_or_oversized_packet_is_rejected() {
    let log = new_log(LogKind::Image, 0);
    let heartbeat = DataHeader::heartbeat(DataHeader::UNFRAGMENTED, SESSION, STREAM, 100, 0);
    assert!(!insert(log.term(0), &validated(heartbeat.as_bytes())));
    let bytes = packet(TERM_LENGTH, &[5], None);
    let Ok(Frame::Data(frame)) = Frame::parse(&bytes) else {
        panic!()
    };
    assert!(!insert(
        log.term(0),
        &frame.validate(2 * TERM_LENGTH).unwrap()
    ));
}

#[test]
fn find_gap_reports_gap_until_filled() {
    let log = new_log(LogKind::Image, 0);
    let term = log.term(0);
    let gap = |offset, length| Some(Gap { offset, length });
    assert_eq!(
        find_gap(term, 0, 0),
        Ok(GapScan {
            offset: 0,
            gap: None
        })
    );
    assert_eq!(
        find_gap(term, 0, 96),
        Ok(GapScan {
            offset: 0,
            gap: gap(0, 96)
        })
    );
    assert!(insert(term, &validated(&packet(64, &[5], None))));
    assert_eq!(
        find_gap(term, 0, 128),
        Ok(GapScan {
            offset: 0,
            gap: gap(0, 64)
        })
    );
    assert!(insert(term, &validated(&packet(0, &[0], None))));
    assert_eq!(
        find_gap(term, 0, 128),
        Ok(GapScan {
            offset: 32,
            gap: gap(32, 32)
        })
    );
    assert!(insert(term, &validated(&packet(32, &[0], None))));
    assert_eq!(
        find_gap(term, 0, 128),
        Ok(GapScan {
            offset: 128,
            gap: None
        })
    );
    // A high-water mark inside padding, as heartbeats of an Aeron 1.51 sender can cause.
    assert!(insert(
        term,
        &validated(&packet(128, &[], Some(TERM_LENGTH - 128)))
    ));
    assert_eq!(
        find_gap(term, 0, 160),
        Ok(GapScan {
            offset: TERM_LENGTH,
            gap: None
        })
    );
}

#[test]
fn find_gap_with_hostile_frame_or_offset_fails() {
    let log = new_log(LogKind::Image, 0);
    let term = log.term(0);
    let end = put(term, 0, b"sound");
    for length in hostile_lengths(end) {
        put_length(term, end, length);
        assert_eq!(
            find_gap(term, end, TERM_LENGTH),
            Err(CorruptFrame {
                offset: end,
                length
            })
        );
        assert_eq!(find_gap(term, 0, TERM_LENGTH).unwrap().offset, end);
    }
    for offset in [-32, 1, TERM_LENGTH + 32, i32::MAX, i32::MIN] {
        assert!(find_gap(term, offset, TERM_LENGTH).is_err());
    }
    assert_eq!(
        find_gap(log.term(1), 0, i32::MAX)
            .unwrap()
            .gap
            .unwrap()
            .length,
        TERM_LENGTH
    );
}

#[test]
fn fill_gap_with_received_frame_does_nothing() {
    let log = new_log(LogKind::Image, 0);
    let term = log.term(2);
    let end = put(term, 0, b"before");
    let gap = Gap {
        offset: end,
        length: 128,
    };
    put(term, end + 96, b"late");
    assert!(!fill_gap(&log, 102, gap));
    let gap = Gap {
        offset: end,
        length: 96,
    };
    assert!(fill_gap(&log, 102, gap));
    assert!(!fill_gap(&log, 102, gap));
    let header = [
        96, 0, 0, 0, 0, 0xc0, 0, 0, 64, 0, 0, 0, 0xb3, 0xff, 0xff, 0xff, 0xe9, 3, 0, 0, 102, 0, 0,
        0,
    ];
    assert_eq!(term.bytes(end as usize, 24), header);
    assert_eq!(
        find_gap(term, 0, 224).unwrap(),
        GapScan {
            offset: 224,
            gap: None
        }
    );
    for gap in [
        Gap {
            offset: -32,
            length: 64,
        },
        Gap {
            offset: 33,
            length: 64,
        },
        Gap {
            offset: 320,
            length: 0,
        },
        Gap {
            offset: 320,
            length: 33,
        },
        Gap {
            offset: 320,
            length: -32,
        },
        Gap {
            offset: 320,
            length: TERM_LENGTH,
        },
        Gap {
            offset: 320,
            length: i32::MIN,
        },
    ] {
        assert!(!fill_gap(&log, 102, gap), "{gap:?}");
    }
}
