// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;

const MTU: i32 = 1408;

fn ready(length: i32, segment: i32, padding: i32) -> Result<Scan, CorruptFrame> {
    Ok(Scan::Ready(SegmentRun {
        length,
        segment,
        padding,
    }))
}

fn limit(window: i32) -> RunLimit {
    RunLimit {
        datagram: MTU,
        window,
        datagrams: 64,
        bytes: 65_504,
    }
}

#[test]
fn scan_returns_frames_that_fit_one_datagram() {
    let log = log();
    let term = log.term(0);
    assert_eq!(scan(term, 0, MTU), Ok(Scan::Empty));
    for index in 0..10 {
        put(term, index * 320, &[7; 288]);
    }
    assert_eq!(scan(term, 0, MTU), ready(1280, 1280, 0));
    assert_eq!(scan(term, 0, 1279), ready(960, 960, 0));
    assert_eq!(scan(term, 0, 319), Ok(Scan::OverLimit));
    assert_eq!(scan(term, 9 * 320, MTU), ready(320, 320, 0));
    assert_eq!(scan(term, 0, 0), Ok(Scan::Empty));
    assert_eq!(scan(term, 0, -1), Ok(Scan::Empty));
}

#[test]
fn scan_padding_returns_header_only() {
    let log = log();
    let term = log.term(0);
    let at = TERM_LENGTH - 192;
    put(term, at, b"hello");
    put_padding(term, at + 64, 128);
    assert_eq!(scan(term, at, MTU), ready(96, 96, 96));
    assert_eq!(scan(term, at, 64), ready(64, 64, 0));
    assert_eq!(scan(term, at, 95), ready(64, 64, 0));
    assert_eq!(scan(term, at + 64, 32), ready(32, 32, 96));
    assert_eq!(scan(term, at + 64, 31), Ok(Scan::OverLimit));
    assert_eq!(scan(term, TERM_LENGTH, MTU), Ok(Scan::Empty));
    assert_eq!(scan_run(term, at, &limit(1 << 20)), ready(96, 96, 96));
}

#[test]
fn scan_stops_at_uncommitted_frame() {
    let log = log();
    let term = log.term(0);
    let end = put(term, 0, b"hello");
    put_length(term, end, -37);
    assert_eq!(scan(term, 0, MTU), ready(64, 64, 0));
    assert_eq!(scan(term, end, MTU), Ok(Scan::Empty));
    assert_eq!(scan_run(term, end, &limit(1 << 20)), Ok(Scan::Empty));
}

#[test]
fn scan_run_joins_datagrams_of_equal_length() {
    let log = log();
    let term = log.term(0);
    for index in 0..21 {
        put(term, index * 320, &[7; 288]);
    }
    // Four frames per datagram: five full datagrams and one with the remaining frame.
    assert_eq!(scan_run(term, 0, &limit(1 << 20)), ready(21 * 320, 1280, 0));
    assert_eq!(
        scan_run(
            term,
            0,
            &RunLimit {
                datagrams: 2,
                ..limit(1 << 20)
            }
        ),
        ready(2560, 1280, 0)
    );
    assert_eq!(
        scan_run(
            term,
            0,
            &RunLimit {
                datagrams: 1,
                ..limit(1 << 20)
            }
        ),
        ready(1280, 1280, 0)
    );
    assert_eq!(
        scan_run(
            term,
            0,
            &RunLimit {
                bytes: 3000,
                ..limit(1 << 20)
            }
        ),
        ready(2560, 1280, 0)
    );
    // The window shortens the last datagram, as it would a single one.
    assert_eq!(scan_run(term, 0, &limit(3000)), ready(2880, 1280, 0));
    assert_eq!(scan_run(term, 0, &limit(700)), ready(640, 640, 0));
    assert_eq!(scan_run(term, 0, &limit(100)), Ok(Scan::OverLimit));
    assert_eq!(
        SegmentRun {
            length: 21 * 320,
            segment: 1280,
            padding: 0
        }
        .datagrams(),
        6
    );
}

#[test]
fn scan_run_stops_before_longer_datagram() {
    let log = log();
    let term = log.term(0);
    let mut at = put(term, 0, &[7; 1000]);
    at = put(term, at, &[7; 1000]);
    let end_of_equal = at;
    at = put(term, at, &[7; 1300]);
    put_padding(term, at, TERM_LENGTH - at);
    assert_eq!(
        scan_run(term, 0, &limit(1 << 20)),
        ready(end_of_equal, end_of_equal / 2, 0)
    );
    let padding = TERM_LENGTH - at - 32;
    assert_eq!(
        scan_run(term, end_of_equal, &limit(1 << 20)),
        ready(1344 + 32, 1376, padding)
    );
}

#[test]
fn scan_run_ends_after_padding_and_advances_over_it() {
    let log = log();
    let term = log.term(0);
    let at = TERM_LENGTH - 3 * 1408;
    put(term, at, &[7; 1376]);
    put(term, at + 1408, &[7; 1376]);
    put_padding(term, at + 2816, 1408);
    let Ok(Scan::Ready(run)) = scan_run(term, at, &limit(1 << 20)) else {
        panic!()
    };
    assert_eq!(
        run,
        SegmentRun {
            length: 2848,
            segment: 1408,
            padding: 1376
        }
    );
    assert_eq!((run.advance(), run.datagrams()), (3 * 1408, 3));
}

#[test]
fn scan_with_hostile_frame_fails() {
    let log = log();
    let term = log.term(0);
    let end = put(term, 0, b"sound");
    for length in hostile_lengths(end) {
        put_length(term, end, length);
        let corrupt = Err(CorruptFrame {
            offset: end,
            length,
        });
        assert_eq!(
            (scan(term, end, MTU), scan_run(term, end, &limit(1 << 20))),
            (corrupt, corrupt)
        );
        assert_eq!(scan_run(term, 0, &limit(1 << 20)), ready(64, 64, 0));
    }
    for offset in [-32, 1, TERM_LENGTH + 32, i32::MAX, i32::MIN] {
        assert!(scan(term, offset, MTU).is_err() && scan_run(term, offset, &limit(MTU)).is_err());
    }
}

proptest! {
    /// A run equals the datagrams of consecutive single scans, as long as these have equal length.
    #[test]
    fn scan_run_equals_sequence_of_scans(
        runs in proptest::collection::vec((prop_oneof![Just(288usize), Just(32), 0usize..1376], 1usize..100), 1..12),
        oddities in proptest::collection::vec((0usize..100, any::<bool>()), 0..3),
        window in 32i32..80_000, datagrams in 1i32..20, pad in any::<bool>()
    ) {
        let log = log();
        let term = log.term(0);
        let (mut end, mut ends) = (0, Vec::new());
        for length in runs.iter().flat_map(|&(length, count)| std::iter::repeat_n(length, count)) {
            if end + 1408 > TERM_LENGTH - 256 {
                break;
            }
            ends.push((end, length));
            end = put(term, end, &vec![7; length]);
        }
        for &(index, is_padding) in &oddities {
            // An aborted message, or an uncommitted one.
            let (at, length) = ends[index % ends.len()];
            let length = length as i32 + 32;
            if is_padding {
                put_padding(term, at, length);
            } else if at > 0 {
                put_length(term, at, -length);
            }
        }
        if pad {
            put_padding(term, end, 256);
        }
        let limit = RunLimit { datagram: MTU, window, datagrams, bytes: 65_504 };
        match scan_run(term, 0, &limit).unwrap() {
            Scan::Ready(run) => {
                prop_assert!(run.length <= window && run.segment <= MTU && run.datagrams() <= datagrams);
                let mut at = 0;
                while at < run.length {
                    let room = run.segment.min(window - at);
                    let Scan::Ready(one) = scan(term, at, room).unwrap() else { panic!("a gap in the run") };
                    prop_assert!(one.length == run.segment || at + one.length == run.length);
                    at += one.length;
                    prop_assert_eq!(one.padding, if at == run.length { run.padding } else { 0 });
                }
                prop_assert_eq!(at, run.length);
                if run.padding == 0 && run.length % run.segment == 0 && run.datagrams() < datagrams
                    && run.segment <= 65_504 - run.length && run.length < window
                {
                    let room = run.segment.min(window - run.length);
                    let next = scan(term, run.length, room).unwrap();
                    prop_assert!(!matches!(next, Scan::Ready(_)), "ended before {:?}", next);
                }
            }
            other => prop_assert_eq!(scan(term, 0, MTU.min(window)).unwrap(), other),
        }
    }
}
