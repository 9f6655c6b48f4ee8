// SPDX-License-Identifier: Apache-2.0
//! Tests of the worked examples, byte by byte (docs/spec/wire.md §9), and of each validation rule (docs/spec/wire.md
//! §1.14).

use proptest::prelude::*;

use super::*;

const SESSION: i32 = 0x1A2B_3C4D;
const STREAM: i32 = 1001;
const RECEIVER: i64 = 0x1122_3344_5566_7788;
const TERM_LENGTH: i32 = 65_536;

/// Parses a hexadecimal dump; other characters are separators.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|c| c.to_digit(16))
        .map(|d| d as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn hello_at_192() -> Vec<u8> {
    hex("25 00 00 00|00|c0|01 00  c0 00 00 00|4d 3c 2b 1a
         e9 03 00 00|65 00 00 00  00 00 00 00 00 00 00 00
         68 65 6c 6c 6f 00 00 00  00 00 00 00 00 00 00 00
         00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00")
}

fn hello_then_padding() -> Vec<u8> {
    hex("25 00 00 00 00 c0 01 00  80 ff 00 00 4d 3c 2b 1a
         e9 03 00 00 65 00 00 00  00 00 00 00 00 00 00 00
         68 65 6c 6c 6f 00 00 00  00 00 00 00 00 00 00 00
         00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
         40 00 00 00|00|c0|00 00  c0 ff 00 00|4d 3c 2b 1a
         e9 03 00 00 65 00 00 00  00 00 00 00 00 00 00 00")
}

fn data(datagram: &[u8]) -> DataFrame<'_> {
    match Frame::parse(datagram).unwrap() {
        Frame::Data(frame) => frame,
        other => panic!("{other:?}"),
    }
}

#[test]
fn data_frame_of_specification_round_trips() {
    let bytes = hello_at_192();
    let frame = data(&bytes);
    assert_eq!((frame.session_id(), frame.stream_id()), (SESSION, STREAM));
    assert_eq!((frame.term_id(), frame.term_offset()), (101, 192));
    assert_eq!(frame.flags(), DataHeader::UNFRAGMENTED);
    assert_eq!(frame.header().header.frame_length.get(), 37);
    assert!(!frame.is_heartbeat());
    let frames = frame.validate(TERM_LENGTH).unwrap();
    assert_eq!(
        (
            frames.term_offset(),
            frames.length_in_term(),
            frames.wire_length()
        ),
        (192, 64, 64)
    );
}

#[test]
fn padding_with_header_only_counts_full_length_in_term() {
    let bytes = hello_then_padding();
    let frames = data(&bytes).validate(TERM_LENGTH).unwrap();
    assert_eq!((frames.wire_length(), frames.length_in_term()), (96, 128));
}

#[test]
fn heartbeat_flags_are_recognised() {
    let expected = hex("00 00 00 00|00|c0|01 00  00 01 00 00|4d 3c 2b 1a
                        e9 03 00 00|65 00 00 00  00 00 00 00 00 00 00 00");
    let made = DataHeader::heartbeat(DataHeader::UNFRAGMENTED, SESSION, STREAM, 101, 256);
    assert_eq!(made.as_bytes(), expected);
    let frame = data(&expected);
    assert!(frame.is_heartbeat() && !frame.is_end_of_stream() && !frame.is_revoked());
    assert_eq!(frame.validate(TERM_LENGTH).unwrap().length_in_term(), 0);

    let mut end = expected.clone();
    end[5] = 0xe0;
    assert!(data(&end).is_end_of_stream() && !data(&end).is_revoked());
    end[5] = 0xf0;
    assert!(data(&end).is_end_of_stream() && data(&end).is_revoked());
}

#[test]
fn empty_message_is_not_heartbeat() {
    let header = DataHeader {
        header: FrameHeader::new(32, DataHeader::UNFRAGMENTED, FrameType::DATA),
        ..DataHeader::heartbeat(0, SESSION, STREAM, 101, 256)
    };
    let frame = data(header.as_bytes());
    assert!(!frame.is_heartbeat());
    assert_eq!(frame.validate(TERM_LENGTH).unwrap().length_in_term(), 32);
}

fn setup() -> Setup {
    Setup {
        header: Setup::header(0),
        term_offset: 192.into(),
        session_id: SESSION.into(),
        stream_id: STREAM.into(),
        initial_term_id: 100.into(),
        active_term_id: 101.into(),
        term_length: TERM_LENGTH.into(),
        mtu: 1408.into(),
        ttl: 0.into(),
    }
}

#[test]
fn setup_of_specification_round_trips() {
    let expected = hex("28 00 00 00|00|00|05 00  c0 00 00 00|4d 3c 2b 1a
                        e9 03 00 00|64 00 00 00  65 00 00 00|00 00 01 00
                        80 05 00 00|00 00 00 00");
    assert_eq!(setup().as_bytes(), expected);
    assert!(matches!(Frame::parse(&expected), Ok(Frame::Setup(parsed)) if *parsed == setup()));
}

#[test]
fn setup_with_invalid_fields_is_rejected() {
    let rejected = |setup: Setup| Frame::parse(setup.as_bytes()).unwrap_err();
    for length in [0, -1, 65_535, 32_768, i32::MIN] {
        assert_eq!(
            rejected(Setup {
                term_length: length.into(),
                ..setup()
            }),
            InvalidFrame::TermLength(length)
        );
    }
    for offset in [-32, 1, TERM_LENGTH, i32::MAX] {
        let expected = InvalidFrame::TermOffset {
            term_offset: offset,
            term_length: TERM_LENGTH,
        };
        assert_eq!(
            rejected(Setup {
                term_offset: offset.into(),
                ..setup()
            }),
            expected
        );
    }
    for mtu in [0, 31, 32, 33, -32, 65_536, i32::MIN] {
        assert_eq!(
            rejected(Setup {
                mtu: mtu.into(),
                ..setup()
            }),
            InvalidFrame::Mtu(mtu)
        );
    }
}

fn status() -> StatusMessage {
    StatusMessage {
        header: StatusMessage::header(0),
        session_id: SESSION.into(),
        stream_id: STREAM.into(),
        consumption_term_id: 101.into(),
        consumption_term_offset: 192.into(),
        receiver_window: 32_768.into(),
        receiver_id: RECEIVER.into(),
    }
}

fn parsed_status(datagram: &[u8]) -> StatusFrame<'_> {
    match Frame::parse(datagram).unwrap() {
        Frame::StatusMessage(frame) => frame,
        other => panic!("{other:?}"),
    }
}

#[test]
fn status_message_of_specification_round_trips() {
    let expected = hex("24 00 00 00|00|00|03 00  4d 3c 2b 1a|e9 03 00 00
                        65 00 00 00|c0 00 00 00  00 80 00 00|88 77 66 55
                        44 33 22 11");
    assert_eq!(status().as_bytes(), expected);
    let frame = parsed_status(&expected);
    assert_eq!((*frame.message, frame.group_tag()), (status(), None));
}

#[test]
fn status_message_with_group_tag_round_trips() {
    let message = StatusMessage {
        header: StatusMessageWithTag::header(0),
        ..status()
    };
    let tagged = StatusMessageWithTag {
        message,
        group_tag: 7.into(),
    };
    let mut expected = status().as_bytes().to_vec();
    expected[0] = 0x2c;
    expected.extend(hex("07 00 00 00 00 00 00 00"));
    assert_eq!(tagged.as_bytes(), expected);
    assert_eq!(parsed_status(&expected).group_tag(), Some(7));
}

#[test]
fn status_message_with_odd_feedback_length_has_no_tag() {
    for extra in [1, 4, 7, 9, 100] {
        let mut bytes = status().as_bytes().to_vec();
        bytes.resize(36 + extra, 0xff);
        bytes[0] = 36 + extra as u8;
        let frame = parsed_status(&bytes);
        assert_eq!((frame.feedback.len(), frame.group_tag()), (extra, None));
    }
}

#[test]
fn status_message_flags_are_recognised() {
    let elicit = hex("24 00 00 00 00 80 03 00  4d 3c 2b 1a e9 03 00 00
                      00 00 00 00 00 00 00 00  00 00 00 00 88 77 66 55  44 33 22 11");
    let made = StatusMessage {
        header: StatusMessage::header(StatusMessage::SEND_SETUP),
        consumption_term_id: 0.into(),
        consumption_term_offset: 0.into(),
        receiver_window: 0.into(),
        ..status()
    };
    assert_eq!(made.as_bytes(), elicit);
    assert!(parsed_status(&elicit).message.asks_for_setup());
    assert!(made.check(Some(TERM_LENGTH)).is_ok());

    let end = hex("24 00 00 00 00 40 03 00  4d 3c 2b 1a e9 03 00 00
                   65 00 00 00 00 01 00 00  00 80 00 00 88 77 66 55  44 33 22 11");
    let made = StatusMessage {
        header: StatusMessage::header(StatusMessage::EOS),
        consumption_term_offset: 256.into(),
        ..status()
    };
    assert_eq!(made.as_bytes(), end);
    assert!(parsed_status(&end).message.is_end_of_stream());
}

#[test]
fn status_message_outside_term_is_rejected() {
    assert!(status().check(Some(TERM_LENGTH)).is_ok());
    let far = StatusMessage {
        consumption_term_offset: TERM_LENGTH.into(),
        ..status()
    };
    assert!(far.check(Some(TERM_LENGTH)).is_err());
    assert!(far.check(None).is_ok());
    let wide = StatusMessage {
        receiver_window: 32_769.into(),
        ..status()
    };
    assert_eq!(
        wide.check(Some(TERM_LENGTH)),
        Err(InvalidFrame::Window {
            window: 32_769,
            max: 32_768
        })
    );
    assert!(
        StatusMessage {
            receiver_window: (-1).into(),
            ..status()
        }
        .check(None)
        .is_err()
    );
}

fn nak() -> Nak {
    Nak {
        header: Nak::header(),
        session_id: SESSION.into(),
        stream_id: STREAM.into(),
        term_id: 101.into(),
        term_offset: 192.into(),
        length: 64.into(),
    }
}

#[test]
fn nak_of_specification_round_trips() {
    let expected = hex("1c 00 00 00|00|00|02 00  4d 3c 2b 1a|e9 03 00 00
                        65 00 00 00|c0 00 00 00  40 00 00 00");
    assert_eq!(nak().as_bytes(), expected);
    assert!(matches!(Frame::parse(&expected), Ok(Frame::Nak(parsed)) if *parsed == nak()));
}

#[test]
fn nak_outside_term_is_rejected() {
    assert!(nak().check(TERM_LENGTH).is_ok());
    assert!(
        Nak {
            length: (TERM_LENGTH - 192).into(),
            ..nak()
        }
        .check(TERM_LENGTH)
        .is_ok()
    );
    for length in [TERM_LENGTH - 191, -1, i32::MAX, i32::MIN] {
        assert!(
            Nak {
                length: length.into(),
                ..nak()
            }
            .check(TERM_LENGTH)
            .is_err()
        );
    }
    for offset in [-32, 31, TERM_LENGTH, i32::MIN] {
        assert!(
            Nak {
                term_offset: offset.into(),
                ..nak()
            }
            .check(TERM_LENGTH)
            .is_err()
        );
    }
}

#[test]
fn rttm_of_specification_round_trips() {
    let request = hex("28 00 00 00|00|80|06 00  4d 3c 2b 1a|e9 03 00 00
                       cb 04 fb 71 1f 01 00 00  00 00 00 00 00 00 00 00
                       88 77 66 55 44 33 22 11");
    let made = Rttm {
        header: Rttm::header(Rttm::REPLY),
        session_id: SESSION.into(),
        stream_id: STREAM.into(),
        echo_timestamp: 1_234_567_890_123.into(),
        reception_delta: 0.into(),
        receiver_id: RECEIVER.into(),
    };
    assert_eq!(made.as_bytes(), request);
    assert!(matches!(Frame::parse(&request), Ok(Frame::Rttm(parsed)) if parsed.asks_for_reply()));
    let mut reply = request.clone();
    reply[5] = 0;
    assert_eq!(made.reply(RECEIVER).as_bytes(), reply);
}

#[test]
fn error_frame_of_specification_round_trips() {
    let expected = hex("30 00 00 00|00|08|04 00  4d 3c 2b 1a|e9 03 00 00
                        88 77 66 55 44 33 22 11  07 00 00 00 00 00 00 00
                        0d 00 00 00|08 00 00 00  72 65 6a 65 63 74 65 64");
    let mut buffer = [0; ERROR_FRAME_LENGTH_MAX];
    assert_eq!(
        ErrorFrame::write(
            &mut buffer,
            SESSION,
            STREAM,
            RECEIVER,
            Some(7),
            13,
            b"rejected"
        ),
        expected
    );
    let Ok(Frame::Error(frame)) = Frame::parse(&expected) else {
        panic!()
    };
    assert_eq!((frame.text, frame.group_tag()), (&b"rejected"[..], Some(7)));
    assert_eq!(frame.header.error_code.get(), 13);

    let long = ErrorFrame::write(
        &mut buffer,
        SESSION,
        STREAM,
        RECEIVER,
        None,
        13,
        &[b'x'; 2000],
    );
    assert_eq!(long.len(), 1063);
    let Ok(Frame::Error(frame)) = Frame::parse(long) else {
        panic!()
    };
    assert_eq!((frame.text.len(), frame.group_tag()), (1023, None));
}

#[test]
fn error_text_beyond_frame_is_rejected() {
    let mut buffer = [0; ERROR_FRAME_LENGTH_MAX];
    let bytes = ErrorFrame::write(
        &mut buffer,
        SESSION,
        STREAM,
        RECEIVER,
        None,
        13,
        b"rejected",
    )
    .to_vec();
    for text_length in [-1, 9, 1024, i32::MAX, i32::MIN] {
        let mut bad = bytes.clone();
        bad[36..40].copy_from_slice(&text_length.to_le_bytes());
        let expected = InvalidFrame::ErrorText {
            text_length,
            frame_length: 48,
        };
        assert_eq!(Frame::parse(&bad).unwrap_err(), expected);
    }
}

#[test]
fn response_setup_of_specification_round_trips() {
    let expected = hex("14 00 00 00|00|00|0b 00  4d 3c 2b 1a|e9 03 00 00  81 70 6f 5e");
    let made = ResponseSetup {
        header: ResponseSetup::header(),
        session_id: SESSION.into(),
        stream_id: STREAM.into(),
        response_session_id: 0x5E6F_7081.into(),
    };
    assert_eq!(made.as_bytes(), expected);
    assert!(matches!(Frame::parse(&expected), Ok(Frame::ResponseSetup(parsed)) if *parsed == made));
}

#[test]
fn resolution_with_self_entry_round_trips() {
    let expected = hex("20 00 00 00|00|00|07 00  01|80|72 1f|00 00 00 00
                        c0 a8 01 0a|08 00 64 72  69 76 65 72 2d 61 00 00");
    let entry = ResolutionEntry {
        is_self: true,
        address: "192.168.1.10:8050".parse().unwrap(),
        age_ms: 0,
        name: b"driver-a",
    };
    let mut buffer = [0xff; 64];
    let (bytes, count) = write_resolution(&mut buffer, [entry]);
    assert_eq!((bytes, count), (&expected[..], 1));
    let Ok(Frame::Resolution(entries)) = Frame::parse(&expected) else {
        panic!()
    };
    assert_eq!(entries.collect::<Vec<_>>(), [Ok(entry)]);
}

#[test]
fn resolution_with_two_entries_round_trips() {
    let expected = hex("48 00 00 00|00|00|07 00  01|00|72 1f|fa 00 00 00
                        c0 a8 01 0b|05 00 64 72  76 2d 62 00 00 00 00 00
                        02|00|73 1f|dc 05 00 00  fd 00 00 00 00 00 00 00
                        00 00 00 00 00 00 00 0c  08 00 64 72 69 76 65 72
                        2d 63 00 00 00 00 00 00");
    let entry = |address: &str, age_ms, name| ResolutionEntry {
        is_self: false,
        address: address.parse().unwrap(),
        age_ms,
        name,
    };
    let entries = [
        entry("192.168.1.11:8050", 250, &b"drv-b"[..]),
        entry("[fd00::c]:8051", 1500, &b"driver-c"[..]),
    ];
    let mut buffer = [0xff; 100];
    assert_eq!(write_resolution(&mut buffer, entries), (&expected[..], 2));
    assert_eq!(write_resolution(&mut [0; 71], entries).1, 1);
    let Ok(Frame::Resolution(parsed)) = Frame::parse(&expected) else {
        panic!()
    };
    assert_eq!(parsed.collect::<Vec<_>>(), entries.map(Ok));
}

#[test]
fn resolution_iterator_ends_at_invalid_entry() {
    let good = hex(
        "20 00 00 00 00 00 07 00 01 80 72 1f 00 00 00 00 c0 a8 01 0a 08 00 64 72 69 76 65 72 2d 61 00 00",
    );
    let first = |bytes: &[u8]| match Frame::parse(bytes).unwrap() {
        Frame::Resolution(mut entries) => {
            let error = entries.next().unwrap().unwrap_err();
            (error, entries.next().map(|_| ()))
        }
        other => panic!("{other:?}"),
    };
    let mut bad = good.clone();
    bad[8] = 3;
    assert_eq!(first(&bad), (InvalidFrame::ResolutionType(3), None));
    for name_length in [0i16, -1, 11, 513, i16::MAX] {
        let mut bad = good.clone();
        bad[20..22].copy_from_slice(&name_length.to_le_bytes());
        assert_eq!(
            first(&bad),
            (
                InvalidFrame::ResolutionName {
                    name_length,
                    remaining: 10
                },
                None
            )
        );
    }
    assert!(
        Frame::parse(&hex(
            "15 00 00 00 00 00 07 00 01 80 72 1f 00 00 00 00 c0 a8 01 0a 08"
        ))
        .is_err()
    );
}

#[test]
fn parse_enforces_first_frame_rules() {
    let rejected = |text: &str| Frame::parse(&hex(text)).unwrap_err();
    assert_eq!(
        Frame::parse(&[]).unwrap_err(),
        InvalidFrame::TooShort {
            length: 0,
            needed: 8
        }
    );
    assert_eq!(
        rejected("08 00 00 00 00 00 ff"),
        InvalidFrame::TooShort {
            length: 7,
            needed: 8
        }
    );
    assert_eq!(
        rejected("08 00 00 00 00 00 ff ff"),
        InvalidFrame::UnknownType(0xffff)
    );
    assert_eq!(
        rejected("08 00 00 00 01 00 01 00"),
        InvalidFrame::Version(1)
    );
    assert!(matches!(
        rejected("ff ff ff ff 00 00 01 00"),
        InvalidFrame::FrameLength {
            frame_length: -1,
            ..
        }
    ));
    for kind in 8..=10 {
        assert_eq!(
            rejected(&format!("08 00 00 00 00 00 {kind:02x} 00")),
            InvalidFrame::UnknownType(kind)
        );
    }
    // Each type truncated by one byte, and with a frame length beyond the datagram.
    for (kind, header) in [
        (2u8, 28usize),
        (3, 36),
        (4, 40),
        (5, 40),
        (6, 40),
        (11, 20),
        (0, 32),
        (1, 32),
    ] {
        let mut bytes = vec![0; header - 1];
        bytes[6] = kind;
        let expected = InvalidFrame::TooShort {
            length: header - 1,
            needed: header,
        };
        assert_eq!(Frame::parse(&bytes).unwrap_err(), expected);
        if kind > 1 {
            let mut bytes = vec![0; header];
            (bytes[0], bytes[6]) = (header as u8 + 1, kind);
            assert!(matches!(
                Frame::parse(&bytes).unwrap_err(),
                InvalidFrame::FrameLength { .. }
            ));
        }
    }
    let mut odd = hello_at_192();
    odd.push(0);
    assert_eq!(
        Frame::parse(&odd).unwrap_err(),
        InvalidFrame::DataLength {
            length: 65,
            covered: 0
        }
    );
}

#[test]
fn validate_inconsistent_packet_is_rejected() {
    let rejected = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = hello_then_padding();
        change(&mut bytes);
        data(&bytes).validate(TERM_LENGTH).unwrap_err()
    };
    let set = |at: usize, value: i32| {
        move |bytes: &mut Vec<u8>| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes())
    };
    // Offset of the first frame: not aligned, negative, beyond the term.
    for offset in [1, -32, TERM_LENGTH] {
        assert!(matches!(
            rejected(&set(8, offset)),
            InvalidFrame::TermOffset { .. }
        ));
    }
    // Lengths: negative, zero, shorter than a header, past the term, past the datagram.
    for length in [0, 31, 129, 97, i32::MAX] {
        assert!(
            matches!(rejected(&set(0, length)), InvalidFrame::DataLength { .. }),
            "{length}"
        );
    }
    // Second frame: at the wrong offset, too long for the term, of another type.
    assert_eq!(
        rejected(&set(72, 65_440)),
        InvalidFrame::DataLength {
            length: 96,
            covered: 64
        }
    );
    for length in [-1, 0, 31, 65, i32::MIN] {
        assert_eq!(
            rejected(&set(64, length)),
            InvalidFrame::DataLength {
                length: 96,
                covered: 64
            }
        );
    }
    assert_eq!(
        rejected(&|bytes| bytes[70] = 5),
        InvalidFrame::DataLength {
            length: 96,
            covered: 64
        }
    );
    // A truncated DATA frame, and bytes after padding.
    assert!(matches!(
        rejected(&|bytes| bytes[70] = 1),
        InvalidFrame::DataLength { .. }
    ));
    assert!(matches!(
        rejected(&|bytes| bytes.extend([0; 64])),
        InvalidFrame::DataLength { .. }
    ));
}

fn frame_like() -> impl Strategy<Value = Vec<u8>> {
    let kinds = prop_oneof![0u16..12, Just(0xFFFF)];
    (
        proptest::collection::vec(any::<u8>(), 0..300),
        kinds,
        -10i32..400,
    )
        .prop_map(|(mut bytes, kind, length)| {
            if bytes.len() >= 8 {
                bytes[..4].copy_from_slice(&length.to_le_bytes());
                bytes[4] = 0;
                bytes[6..8].copy_from_slice(&kind.to_le_bytes());
            }
            bytes
        })
}

proptest! {
    #[test]
    fn parse_random_bytes_never_panics(bytes in prop_oneof![frame_like(), proptest::collection::vec(any::<u8>(), 0..200)]) {
        match Frame::parse(&bytes) {
            Ok(Frame::Data(frame)) => {
                if let Ok(frames) = frame.validate(TERM_LENGTH) {
                    prop_assert!(frames.term_offset() + frames.length_in_term() <= TERM_LENGTH);
                }
            }
            Ok(Frame::Resolution(entries)) => prop_assert!(entries.count() <= bytes.len()),
            Ok(Frame::StatusMessage(frame)) => { let _ = frame.message.check(None); }
            Ok(Frame::Nak(nak)) => { let _ = nak.check(TERM_LENGTH); }
            Ok(_) | Err(_) => {}
        }
    }

    #[test]
    fn validated_packet_stays_inside_term(
        offset in any::<i32>(), lengths in proptest::collection::vec(any::<i32>(), 1..4), pad in any::<bool>()
    ) {
        let mut bytes = Vec::new();
        let mut at = offset;
        for (index, &length) in lengths.iter().enumerate() {
            let kind = if pad && index + 1 == lengths.len() { FrameType::PAD } else { FrameType::DATA };
            let header = DataHeader {
                header: FrameHeader::new(length, 0, kind),
                ..DataHeader::heartbeat(0, SESSION, STREAM, 101, at)
            };
            bytes.extend(header.as_bytes());
            at = at.wrapping_add(crate::position::align32(length));
        }
        if let Ok(frames) = data_or_none(&bytes).ok_or(()).and_then(|f| f.validate(TERM_LENGTH).map_err(|_| ())) {
            prop_assert!(frames.term_offset() >= 0 && frames.length_in_term() >= 0);
            prop_assert!(frames.term_offset() + frames.length_in_term() <= TERM_LENGTH);
        }
    }
}

fn data_or_none(bytes: &[u8]) -> Option<DataFrame<'_>> {
    match Frame::parse(bytes) {
        Ok(Frame::Data(frame)) => Some(frame),
        _ => None,
    }
}
