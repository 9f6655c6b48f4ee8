// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::position::RawTail;

fn set_tail(log: &LogBuffers, partition: usize, term_id: i32, offset: i32) {
    log.metadata().tails[partition]
        .store(RawTail::new(term_id, offset as u32).0, Ordering::Release);
}

fn padding_at(log: &LogBuffers, partition: usize, offset: i32) -> Option<i32> {
    let mut found = None;
    let frame = super::super::frame::next_frame(log.term(partition), offset).unwrap()?;
    if frame.is_padding() {
        let header = frame.header();
        assert_eq!(
            (header.session_id.get(), header.stream_id.get()),
            (SESSION, STREAM)
        );
        assert_eq!(header.term_offset.get(), offset);
        found = Some(frame.length());
    }
    found
}

#[test]
fn unblock_uncommitted_claim_becomes_padding() {
    let log = log();
    let end = put(log.term(0), 0, b"before");
    put_length(log.term(0), end, -37);
    set_tail(&log, 0, 100, end + 64);
    assert!(log.unblock(i64::from(end)));
    assert_eq!(padding_at(&log, 0, end), Some(37));
    assert!(!log.unblock(i64::from(end)));
}

#[test]
fn unblock_claim_without_header_pads_to_next_frame() {
    let log = log();
    set_tail(&log, 0, 100, 256);
    assert!(!log.unblock(0), "the claim may still be started");
    put_length(log.term(0), 160, -50);
    assert!(log.unblock(0));
    assert_eq!(padding_at(&log, 0, 0), Some(160));
    assert_eq!(length_at(log.term(0), 160), -50);
}

#[test]
fn unblock_without_blocked_claim_does_nothing() {
    let log = log();
    assert!(!log.unblock(0));
    let end = put(log.term(0), 0, b"committed");
    set_tail(&log, 0, 100, end);
    assert!(!log.unblock(0));
    assert!(!log.unblock(i64::from(end)));
}

#[test]
fn unblock_claim_to_term_end_pads_and_rotates() {
    let log = log();
    let at = TERM_LENGTH - 96;
    set_tail(&log, 0, 100, TERM_LENGTH + 64);
    assert!(log.unblock(i64::from(at)));
    assert_eq!(padding_at(&log, 0, at), Some(96));
    assert_eq!(
        (log.active_term_count(), log.raw_tail(1)),
        (1, RawTail::new(101, 0))
    );
}

#[test]
fn unblock_unfinished_rotation_completes_it() {
    let log = log();
    set_tail(&log, 0, 100, TERM_LENGTH + 32);
    assert!(log.unblock(i64::from(TERM_LENGTH)));
    assert_eq!(
        (log.active_term_count(), log.raw_tail(1)),
        (1, RawTail::new(101, 0))
    );
    // Half done: the tail of the next term is set, the term count is not.
    set_tail(&log, 1, 101, TERM_LENGTH + 32);
    set_tail(&log, 2, 102, 0);
    assert!(log.unblock(2 * i64::from(TERM_LENGTH)));
    assert_eq!(
        (log.active_term_count(), log.raw_tail(2)),
        (2, RawTail::new(102, 0))
    );
}

#[test]
fn unblock_full_term_without_overrun_does_nothing() {
    let log = log();
    set_tail(&log, 0, 100, TERM_LENGTH);
    assert!(!log.unblock(i64::from(TERM_LENGTH)));
    assert_eq!(log.active_term_count(), 0);
}

#[test]
fn unblock_with_hostile_length_or_position_does_nothing() {
    let log = log();
    set_tail(&log, 0, 100, 256);
    for length in [-1, -31, -TERM_LENGTH - 1, i32::MIN, 1, i32::MAX] {
        put_length(log.term(0), 0, length);
        assert!(!log.unblock(0), "{length}");
        assert_eq!(length_at(log.term(0), 0), length);
    }
    for position in [-1, 1, 33, i64::MIN, i64::MAX] {
        let _ = log.unblock(position);
    }
}

#[test]
fn clean_stops_at_term_end() {
    let log = log();
    let term_length = i64::from(TERM_LENGTH);
    for partition in 0..3 {
        log.term(partition)
            .write(0, &vec![0xff; TERM_LENGTH as usize]);
    }
    assert_eq!(log.clean(0, 64), 64);
    assert_eq!(
        log.term(0).bytes(0, 72),
        [[0; 64].as_slice(), &[0xff; 8]].concat()
    );
    assert_eq!(log.clean(64, 2 * term_length), term_length);
    assert!(
        log.term(0)
            .bytes(0, TERM_LENGTH as usize)
            .iter()
            .all(|&byte| byte == 0)
    );
    assert_eq!(log.term(1).bytes(0, 8), [0xff; 8]);
    assert_eq!(log.clean(term_length, term_length + 32), term_length + 32);
    assert_eq!(log.term(1).bytes(24, 16), [[0; 8], [0xff; 8]].concat());
    assert_eq!(log.clean(term_length, term_length), term_length);
    assert_eq!(log.clean(term_length, 0), term_length);
    assert_eq!(
        log.clean(term_length, term_length + 31),
        term_length,
        "not a whole frame"
    );
    // Positions that a hostile counter could hold.
    assert_eq!(log.clean(33, 95), 64);
    let _ = (
        log.clean(i64::MIN, i64::MAX),
        log.clean(i64::MAX - 7, i64::MAX),
        log.clean(-5, 5),
    );
}
