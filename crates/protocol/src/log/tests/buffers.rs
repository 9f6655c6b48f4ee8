// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::position::RawTail;

#[test]
fn file_length_of_spec_examples_matches() {
    for (term_length, page_size, expected) in [
        (65_536, 4096, 200_704),
        (16 << 20, 4096, 50_335_744),
        (64 << 20, 4096, 201_330_688),
        (1 << 30, 4096, 3_221_229_568),
        (65_536, 2 << 20, 2_097_152),
    ] {
        assert_eq!(file_length(term_length, page_size), expected);
    }
}

#[test]
fn log_created_opens_with_same_spec() {
    let spec = LogSpec {
        correlation_id: 42,
        page_size: 8192,
        mtu: 8192,
        publication_window: 1,
        receiver_window: 2,
        send_buffer: SocketBufferLengths {
            socket: 3,
            default: 4,
            max: 5,
        },
        receive_buffer: SocketBufferLengths {
            socket: 6,
            default: 7,
            max: 8,
        },
        max_resend: 9,
        entity_tag: 10,
        response_correlation_id: 11,
        linger_timeout_ns: 12,
        untethered_window_limit_timeout_ns: 13,
        untethered_linger_timeout_ns: -0x0123_4567_89AB_CDEF,
        untethered_resting_timeout_ns: 15,
        is_group: true,
        is_reliable: true,
        spies_simulate_connection: true,
        ..spec(LogKind::Exclusive)
    };
    let region = Region::anonymous(spec.file_length()).unwrap();
    LogBuffers::create(&region, &spec, 0).unwrap();
    assert_eq!(LogSpec::of(&region), Ok(spec));
    let log = LogBuffers::open(&region).unwrap();
    assert_eq!(
        (log.session_id(), log.stream_id(), log.mtu()),
        (SESSION, STREAM, 8192)
    );
    assert_eq!((log.kind(), log.correlation_id()), (LogKind::Exclusive, 42));
    assert_eq!(
        (log.geometry().initial_term_id(), log.term_length()),
        (100, TERM_LENGTH)
    );
    assert_eq!(log.end_of_stream_position(), i64::MAX);
    assert!(!log.is_connected() && !log.is_revoked());
}

#[test]
fn metadata_fields_have_specified_offsets() {
    let spec = LogSpec {
        correlation_id: 42,
        max_resend: 16,
        untethered_linger_timeout_ns: 5_000_000_000,
        is_tethered: true,
        ..spec(LogKind::Image)
    };
    let region = Region::anonymous(spec.file_length()).unwrap();
    let log = LogBuffers::create(&region, &spec, 0).unwrap();
    let at = region.len() - 4096;
    let i64_at = |offset| region.atomic_i64(at + offset).load(Ordering::Relaxed);
    let i32_at = |offset| region.atomic_i32(at + offset).load(Ordering::Relaxed);
    assert_eq!(
        (i64_at(128), i64_at(256), i64_at(448), i64_at(456)),
        (i64::MAX, 42, 0, 0)
    );
    assert_eq!(
        (i32_at(264), i32_at(268), i32_at(272), i32_at(276)),
        (100, 32, 1408, TERM_LENGTH)
    );
    assert_eq!((i32_at(280), i32_at(316)), (4096, 16));
    assert_eq!(region.bytes(at + 495, 3), [1, 0, 2]);
    assert_eq!(region.bytes(at + 500, 8), 5_000_000_000i64.to_le_bytes());
    let header = [
        [0, 0, 0, 0, 0, 0xc0, 1, 0],
        [0, 0, 0, 0, 0xb3, 0xff, 0xff, 0xff],
        [0xe9, 3, 0, 0, 100, 0, 0, 0],
        [0; 8],
    ];
    assert_eq!(region.bytes(at + 320, 32), header.concat());
    // Images have no tails.
    assert_eq!((i64_at(0), i64_at(8), i64_at(16), i32_at(24)), (0, 0, 0, 0));

    log.set_connected(true);
    log.set_revoked();
    log.set_active_transport_count(2);
    log.set_end_of_stream_position(96);
    assert_eq!(
        (
            i32_at(136),
            region.bytes(at + 496, 1)[0],
            i32_at(140),
            i64_at(128)
        ),
        (1, 1, 2, 96)
    );
}

#[test]
fn initial_tails_without_start_position_are_at_term_starts() {
    let log = log();
    let tails: Vec<_> = (0..3).map(|index| log.raw_tail(index)).collect();
    assert_eq!(
        tails,
        [
            RawTail::new(100, 0),
            RawTail::new(98, 0),
            RawTail::new(99, 0)
        ]
    );
    assert_eq!((log.active_term_count(), log.producer_position()), (0, 0));
}

#[test]
fn initial_tails_with_start_position_point_to_it() {
    let position = 4 * i64::from(TERM_LENGTH) + 96;
    let log = new_log(LogKind::Exclusive, position);
    let tails: Vec<_> = (0..3).map(|index| log.raw_tail(index)).collect();
    assert_eq!(
        tails,
        [
            RawTail::new(103, 0),
            RawTail::new(104, 96),
            RawTail::new(102, 0)
        ]
    );
    assert_eq!(
        (log.active_term_count(), log.producer_position()),
        (4, position)
    );

    let spec = spec(LogKind::Exclusive);
    let region = Region::anonymous(spec.file_length()).unwrap();
    for position in [-32, 1, i64::from(TERM_LENGTH) << 31] {
        let rejected = LogBuffers::create(&region, &spec, position).unwrap_err();
        assert!(
            matches!(rejected, LogError::StartPosition { .. }),
            "{rejected}"
        );
    }
}

#[test]
fn open_with_hostile_metadata_fails() {
    let good = spec(LogKind::Concurrent);
    let rejected = |offset: usize, value: i32| {
        let region = Region::anonymous(good.file_length()).unwrap();
        LogBuffers::create(&region, &good, 0).unwrap();
        region
            .atomic_i32(region.len() - 4096 + offset)
            .store(value, Ordering::Relaxed);
        LogBuffers::open(&region).unwrap_err()
    };
    for value in [0, -1, 65_535, i32::MAX, i32::MIN, 4096] {
        assert_eq!(rejected(276, value), LogError::TermLength(value));
    }
    let expected = file_length(131_072, 4096);
    assert_eq!(
        rejected(276, 131_072),
        LogError::FileLength {
            found: 200_704,
            expected
        }
    );
    for value in [0, -4096, 4095, 6000, 2048, i32::MIN] {
        assert_eq!(rejected(280, value), LogError::PageSize(value));
    }
    assert!(matches!(
        rejected(280, 1 << 30),
        LogError::FileLength { .. }
    ));
    for value in [0, 32, 33, -64, 65_536, i32::MAX, i32::MIN] {
        assert_eq!(rejected(272, value), LogError::Mtu(value));
    }
    assert_eq!(rejected(268, 24), LogError::HeaderLength(24));
    assert_eq!(rejected(496, 3 << 8), LogError::Kind(3));
    for length in [1, 4096, 200_703] {
        let region = Region::anonymous(length).unwrap();
        assert!(matches!(
            LogBuffers::open(&region),
            Err(LogError::FileLength { .. })
        ));
    }
}

#[test]
fn rotate_repeated_rotates_once() {
    let log = log();
    assert!(log.rotate(0, 100));
    assert!(!log.rotate(0, 100));
    assert_eq!(
        (log.active_term_count(), log.raw_tail(1)),
        (1, RawTail::new(101, 0))
    );
    assert_eq!(log.producer_position(), i64::from(TERM_LENGTH));
    assert!(log.rotate(1, 101) && log.rotate(2, 102));
    assert_eq!(log.raw_tail(0), RawTail::new(103, 0));
}

#[test]
fn producer_position_with_tail_beyond_term_is_term_end() {
    let log = log();
    log.metadata().tails[0].store(RawTail::new(100, 70_000).0, Ordering::Relaxed);
    assert_eq!(log.producer_position(), i64::from(TERM_LENGTH));
}
