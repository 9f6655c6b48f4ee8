// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::position::RawTail;

fn shared() -> SharedAppender {
    SharedAppender::new(log())
}

fn exclusive() -> ExclusiveAppender {
    ExclusiveAppender::new(new_log(LogKind::Exclusive, 0)).unwrap()
}

fn append(appender: &SharedAppender, message: &[u8]) -> Result<i64, AppendError> {
    appender.append(appender.tail().unwrap(), message, None)
}

/// Fills the term up to `left` bytes before its end.
fn fill(appender: &SharedAppender, left: i32) {
    let mut room = TERM_LENGTH - left;
    while room > 0 {
        let space = room.min(1408);
        append(appender, &vec![1; space as usize - 32]).unwrap();
        room -= space;
    }
}

const LAST_TERM: i64 = ((1 << 31) - 1) * TERM_LENGTH as i64;

#[test]
fn append_writes_specified_bytes() {
    let (shared, mut exclusive) = (shared(), exclusive());
    assert_eq!(append(&shared, b"first"), Ok(64));
    assert_eq!(append(&shared, b"hello"), Ok(128));
    assert_eq!(exclusive.append(b"first", None), Ok(64));
    assert_eq!(exclusive.append(b"hello", None), Ok(128));
    let expected = [
        &[0x25, 0, 0, 0, 0, 0xc0, 1, 0][..],
        &[64, 0, 0, 0, 0xb3, 0xff, 0xff, 0xff],
        &[0xe9, 3, 0, 0, 100, 0, 0, 0],
        &[0; 8],
        b"hello",
        &[0; 27],
    ];
    assert_eq!(shared.log().term(0).bytes(64, 64), expected.concat());
    assert_eq!(exclusive.log().term(0).bytes(64, 64), expected.concat());
    assert_eq!(shared.log().raw_tail(0), RawTail::new(100, 128));
    assert_eq!(exclusive.log().raw_tail(0), RawTail::new(100, 128));
    assert_eq!(
        (shared.tail().unwrap().position(), exclusive.position()),
        (128, 128)
    );
}

#[test]
fn append_empty_message_writes_header_only() {
    let shared = shared();
    assert_eq!(append(&shared, b""), Ok(32));
    assert_eq!(
        shared.append_parts(shared.tail().unwrap(), &[], None),
        Ok(64)
    );
    assert_eq!(exclusive().append(b"", None), Ok(32));
}

/// Returns the flags and payload lengths of all frames.
fn frames(log: &LogBuffers) -> Vec<(u8, usize)> {
    let mut frames = Vec::new();
    poll(log.term(0), 0, usize::MAX, |frame| {
        frames.push((frame.flags(), frame.payload().len()));
    })
    .unwrap();
    frames
}

#[test]
fn append_long_message_writes_fragments() {
    let max_payload = 1376;
    for (length, expected, position) in [
        (max_payload, vec![(0xc0, 1376)], 1408),
        (max_payload + 1, vec![(0x80, 1376), (0x40, 1)], 1408 + 64),
        (2 * max_payload, vec![(0x80, 1376), (0x40, 1376)], 2816),
        (
            8192,
            vec![
                (0x80, 1376),
                (0, 1376),
                (0, 1376),
                (0, 1376),
                (0, 1376),
                (0x40, 1312),
            ],
            5 * 1408 + 1344,
        ),
    ] {
        let message: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
        let (shared, mut exclusive) = (shared(), exclusive());
        assert_eq!(append(&shared, &message), Ok(position));
        assert_eq!(exclusive.append(&message, None), Ok(position));
        for log in [shared.log(), exclusive.log()] {
            assert_eq!(frames(log), expected);
            let mut whole: Vec<u8> = Vec::new();
            poll(log.term(0), 0, 99, |frame| whole.extend(frame.payload())).unwrap();
            assert_eq!(whole, message);
            assert_eq!(log.producer_position(), position);
        }
    }
    let too_long = AppendError::TooLong {
        length: 8193,
        max: 8192,
    };
    assert_eq!(append(&shared(), &[0; 8193]), Err(too_long));
    assert_eq!(exclusive().append(&[0; 8193], None), Err(too_long));
}

#[test]
fn append_parts_gathers_into_one_message() {
    let bytes: Vec<u8> = (0..4000).map(|index| (index % 251) as u8).collect();
    for cuts in [
        vec![0, 0],
        vec![1, 1376],
        vec![1376, 2752],
        vec![1377, 1377, 3999],
        vec![3, 4000],
    ] {
        let mut parts = Vec::new();
        let mut begin = 0;
        for cut in cuts.into_iter().chain([bytes.len()]) {
            parts.push(&bytes[begin..cut]);
            begin = cut;
        }
        let mut whole: Vec<u8> = Vec::new();
        let shared = shared();
        shared
            .append_parts(shared.tail().unwrap(), &parts, None)
            .unwrap();
        poll(shared.log().term(0), 0, 99, |frame| {
            whole.extend(frame.payload());
        })
        .unwrap();
        assert_eq!(whole, bytes);
    }
    let mut exclusive = exclusive();
    exclusive.append_parts(&[b"he", b"", b"llo"], None).unwrap();
    assert_eq!(exclusive.log().term(0).bytes(32, 5), b"hello");
}

#[test]
fn reserved_value_supplier_is_called_for_each_frame() {
    let mut seen = Vec::new();
    let mut supplier = |frame: LogFrame<'_>| {
        seen.push((
            frame.offset(),
            frame.length(),
            frame.payload()[0],
            frame.flags(),
        ));
        i64::from(frame.offset()) + 7
    };
    let shared = shared();
    shared
        .append(shared.tail().unwrap(), &[5; 2000], Some(&mut supplier))
        .unwrap();
    shared
        .append(shared.tail().unwrap(), &[6; 10], Some(&mut supplier))
        .unwrap();
    assert_eq!(
        seen,
        [
            (0, 1408, 5, 0x80),
            (1408, 656, 5, 0x40),
            (2080, 42, 6, 0xc0)
        ]
    );
    let mut values = Vec::new();
    poll(shared.log().term(0), 0, 9, |frame| {
        values.push(frame.header().reserved_value.get());
    })
    .unwrap();
    assert_eq!(values, [7, 1415, 2087]);
}

#[test]
fn append_beyond_term_end_pads_and_rotates() {
    let shared = shared();
    fill(&shared, 96);
    assert_eq!(append(&shared, &[2; 100]), Err(AppendError::AdminAction));
    assert_eq!(length_at(shared.log().term(0), TERM_LENGTH - 96), 96);
    assert_eq!(
        shared.log().raw_tail(0).offset(),
        i64::from(TERM_LENGTH) - 96 + 160
    );
    assert_eq!(shared.tail().unwrap().position(), i64::from(TERM_LENGTH));
    assert_eq!(append(&shared, &[2; 100]), Ok(i64::from(TERM_LENGTH) + 160));
    assert_eq!(length_at(shared.log().term(1), 0), 132);
    let polled = poll(shared.log().term(0), TERM_LENGTH - 96, 9, |_| {
        panic!("padding")
    })
    .unwrap();
    assert_eq!(
        polled,
        Polled {
            fragments: 0,
            offset: TERM_LENGTH
        }
    );
}

#[test]
fn append_exact_fit_writes_no_padding() {
    let shared = shared();
    fill(&shared, 64);
    assert_eq!(append(&shared, b"last"), Ok(i64::from(TERM_LENGTH)));
    assert_eq!(shared.log().active_term_count(), 0);
    assert_eq!(append(&shared, b"next"), Err(AppendError::AdminAction));
    assert_eq!(append(&shared, b"next"), Ok(i64::from(TERM_LENGTH) + 64));
}

#[test]
fn append_with_stale_tail_leaves_log_intact() {
    let shared = shared();
    let old = shared.tail().unwrap();
    for term in 0..3 {
        fill(&shared, 64);
        append(&shared, &[3; 100]).unwrap_err();
        assert_eq!(shared.log().active_term_count(), term + 1);
        shared.log().clean(
            i64::from(TERM_LENGTH * term),
            i64::from(TERM_LENGTH * (term + 1)),
        );
    }
    // The partition is reused three terms later.
    assert_eq!(
        shared.append(old, b"late", None),
        Ok(3 * i64::from(TERM_LENGTH) + 64)
    );
    assert_eq!(frames(shared.log()), [(0xc0, 4)]);
}

#[test]
fn tail_during_rotation_is_none() {
    let shared = shared();
    shared
        .log()
        .metadata()
        .active_term_count
        .store(1, Ordering::Release);
    assert_eq!(shared.tail(), None);
}

#[test]
fn append_at_max_position_fails() {
    let at_the_end = |kind| new_log(kind, LAST_TERM + i64::from(TERM_LENGTH) - 96);
    let max = i64::from(TERM_LENGTH) << 31;
    let shared = SharedAppender::new(at_the_end(LogKind::Concurrent));
    assert_eq!(append(&shared, b"last"), Ok(max - 32));
    assert_eq!(
        append(&shared, b"more"),
        Err(AppendError::MaxPositionExceeded)
    );
    assert_eq!(
        append(&shared, b"more"),
        Err(AppendError::MaxPositionExceeded)
    );
    let mut exclusive = ExclusiveAppender::new(at_the_end(LogKind::Exclusive)).unwrap();
    assert_eq!(exclusive.append(b"last", None), Ok(max - 32));
    assert_eq!(
        exclusive.append(b"more", None),
        Err(AppendError::MaxPositionExceeded)
    );
    assert_eq!(
        exclusive.append(b"", None),
        Err(AppendError::MaxPositionExceeded)
    );
    assert_eq!(
        exclusive.append_block(&[0; 32]),
        Err(AppendError::MaxPositionExceeded.into())
    );
    for log in [shared.log(), exclusive.log()] {
        assert_eq!(length_at(log.term_at(max - 1), TERM_LENGTH - 32), 32);
        assert_eq!(log.active_term_count(), i32::MAX);
        assert_eq!(log.producer_position(), max);
    }
}

#[test]
fn claim_dropped_becomes_padding() {
    let shared = shared();
    let claim = |length| shared.claim(shared.tail().unwrap(), length);
    let mut first = claim(5).unwrap();
    assert_eq!((first.len(), first.position()), (5, 64));
    assert_eq!(length_at(shared.log().term(0), 0), -37);
    first.copy_from_slice(b"hello");
    first.set_flags(DataHeader::BEGIN);
    first.set_reserved_value(9);
    assert_eq!(first.commit(), 64);
    claim(100).unwrap().abort();
    drop(claim(10).unwrap());
    claim(0).unwrap().commit();

    let mut seen = Vec::new();
    let polled = poll(shared.log().term(0), 0, 9, |frame| {
        seen.push((
            frame.flags(),
            frame.header().reserved_value.get(),
            frame.payload().to_vec(),
        ));
    });
    assert_eq!(
        polled,
        Ok(Polled {
            fragments: 2,
            offset: 64 + 160 + 64 + 32
        })
    );
    assert_eq!(seen, [(0x80, 9, b"hello".to_vec()), (0xc0, 0, vec![])]);
    assert!(matches!(claim(1376).unwrap().commit(), 1728));
    let too_long = AppendError::TooLong {
        length: 1377,
        max: 1376,
    };
    assert_eq!(claim(1377).unwrap_err(), too_long);

    let mut exclusive = exclusive();
    let mut one = exclusive.claim(5).unwrap();
    one.copy_from_slice(b"hello");
    assert_eq!(
        (one.position(), one.commit(), exclusive.position()),
        (64, 64, 64)
    );
    exclusive.claim(5).unwrap().abort();
    assert_eq!(frames(exclusive.log()), [(0xc0, 5)]);
    assert_eq!(exclusive.claim(1377).unwrap_err(), too_long);
}

#[test]
fn exclusive_appender_rotates_and_resumes() {
    let mut appender = exclusive();
    while appender.term_offset() < TERM_LENGTH - 96 {
        let space = (TERM_LENGTH - 96 - appender.term_offset()).min(1408) as usize;
        appender.append(&vec![1; space - 32], None).unwrap();
    }
    assert_eq!(
        appender.append(&[2; 100], None),
        Err(AppendError::AdminAction)
    );
    assert_eq!(length_at(appender.log().term(0), TERM_LENGTH - 96), 96);
    assert_eq!(
        appender.log().raw_tail(0).offset(),
        i64::from(TERM_LENGTH) + 64
    );
    assert_eq!(
        (appender.position(), appender.term_id()),
        (i64::from(TERM_LENGTH), 101)
    );
    assert_eq!(
        appender.append(&[2; 100], None),
        Ok(i64::from(TERM_LENGTH) + 160)
    );
    // A new appender continues at the tail of this one.
    let next = ExclusiveAppender::new(appender.log().clone()).unwrap();
    assert_eq!(
        (next.position(), next.term_id()),
        (appender.position(), 101)
    );
}

#[test]
fn append_padding_writes_padding_frame() {
    let mut appender = exclusive();
    assert_eq!(appender.append_padding(100), Ok(160));
    assert_eq!(appender.append_padding(0), Ok(192));
    assert_eq!(appender.append(b"x", None), Ok(256));
    assert_eq!(frames(appender.log()), [(0xc0, 1)]);
    assert_eq!(length_at(appender.log().term(0), 0), 160);
    assert!(matches!(
        appender.append_padding(8193),
        Err(AppendError::TooLong { .. })
    ));
}

#[test]
fn append_block_copies_frames_unchanged() {
    let mut source = exclusive();
    source.append(b"one", None).unwrap();
    source.append(b"two", None).unwrap();
    source.append_padding(0).unwrap();
    let block = source.log().term(0).bytes(0, 160).to_vec();

    let mut target = exclusive();
    assert_eq!(target.append_block(&block), Ok(160));
    assert_eq!(target.log().term(0).bytes(0, 160), block);
    assert_eq!(target.log().raw_tail(0), RawTail::new(100, 160));
    let misplaced = BlockError::Misplaced {
        field: "term offset",
        found: 0,
        expected: 160,
    };
    assert_eq!(target.append_block(&block), Err(misplaced));

    let rejected = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bad = block.clone();
        change(&mut bad);
        exclusive().append_block(&bad).unwrap_err()
    };
    for (at, field) in [
        (12, "session id"),
        (16, "stream id"),
        (20, "term id"),
        (6, "type"),
    ] {
        let error = rejected(&|bad| bad[at] ^= 1);
        assert!(
            matches!(error, BlockError::Misplaced { field: found, .. } if found == field),
            "{error}"
        );
    }
    assert!(matches!(
        rejected(&|bad| bad.truncate(100)),
        BlockError::NotFrames(_)
    ));
    assert!(matches!(
        rejected(&|bad| bad.truncate(32)),
        BlockError::NotFrames(_)
    ));
    assert!(matches!(
        rejected(&|bad| bad.clear()),
        BlockError::NotFrames(_)
    ));
    assert!(matches!(
        rejected(&|bad| bad[64] = 200),
        BlockError::NotFrames(_)
    ));
    assert!(matches!(
        rejected(&|bad| bad.resize(70_000, 0)),
        BlockError::TooLong { .. }
    ));
    // Padding with its header only, as on the wire.
    assert!(matches!(
        rejected(&|bad| bad[128] = 64),
        BlockError::NotFrames(_)
    ));
}

#[test]
fn append_block_after_full_term_rotates() {
    let mut appender = exclusive();
    while appender.term_offset() < TERM_LENGTH {
        let space = (TERM_LENGTH - appender.term_offset()).min(1408) as usize;
        appender.append(&vec![1; space - 32], None).unwrap();
    }
    let mut block = appender.log().term(0).bytes(0, 1408).to_vec();
    block[20] = 101;
    assert_eq!(
        appender.append_block(&block),
        Ok(i64::from(TERM_LENGTH) + 1408)
    );
    assert_eq!(appender.log().active_term_count(), 1);
}

#[test]
fn append_with_hostile_tail_fails() {
    let shared = shared();
    shared.log().metadata().tails[0].store(RawTail::new(100, 7).0, Ordering::Release);
    assert!(matches!(
        append(&shared, b"x"),
        Err(AppendError::CorruptTail(_))
    ));
    shared.log().metadata().tails[0].store(RawTail::new(100, u32::MAX - 31).0, Ordering::Release);
    assert_eq!(append(&shared, b"x"), Err(AppendError::AdminAction));

    for (count, tail) in [
        (0, RawTail::new(101, 0)),
        (0, RawTail::new(100, 33)),
        (-1, RawTail::new(99, 0)),
    ] {
        let log = log();
        log.metadata()
            .active_term_count
            .store(count, Ordering::Release);
        for index in 0..3 {
            log.metadata().tails[index].store(tail.0, Ordering::Release);
        }
        assert!(matches!(
            ExclusiveAppender::new(log),
            Err(LogError::Tail { .. })
        ));
    }
}
