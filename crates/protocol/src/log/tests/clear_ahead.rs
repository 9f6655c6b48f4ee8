// SPDX-License-Identifier: Apache-2.0
//! Header-ahead clearing by single writers, and unblocking of such logs after the writer died.

use super::*;
use crate::position::RawTail;

/// Returns an exclusive appender at `position` in a log full of stale frames.
fn appender_at(position: i64) -> ExclusiveAppender {
    let log = new_log(LogKind::Exclusive, position);
    fill_with_old_frames(&log, position);
    ExclusiveAppender::new(log).unwrap()
}

/// Returns the length in the slot at a position.
fn slot(log: &LogBuffers, position: i64) -> i32 {
    length_at(log.term_at(position), log.geometry().term_offset(position))
}

/// Reserves space up to `end` as a publisher that then dies: clears the next slot, then moves the tail.
fn reserve_and_die(appender: &ExclusiveAppender, end: i32) {
    let term_id = appender.term_id();
    appender
        .log()
        .clear_slot(i64::from(end.min(TERM_LENGTH)) & !31);
    appender.log().metadata().tails[0]
        .store(RawTail::new(term_id, end as u32).0, Ordering::Release);
}

#[test]
fn clear_range_across_terms_zeroes_every_slot() {
    let term_length = 1 << 20;
    let spec = LogSpec::new(LogKind::Image, SESSION, STREAM, 100, term_length);
    let region = Region::anonymous(spec.file_length()).unwrap();
    let log = LogBuffers::create(&region, &spec, 0).unwrap();
    for partition in 0..3 {
        for offset in (0..term_length).step_by(32) {
            put_length(log.term(partition), offset, 32);
        }
    }
    let (from, to) = (i64::from(term_length) - 64, 2 * i64::from(term_length) + 32);
    assert_eq!(log.clear_range(from, to), to);
    for position in (0..3 * i64::from(term_length)).step_by(32) {
        let expected = if position > from && position <= to {
            0
        } else {
            32
        };
        assert_eq!(slot(&log, position), expected, "{position}");
    }
}

#[test]
fn clear_slot_at_max_position_is_zero() {
    let end = new_log(LogKind::Image, 0).geometry().max_position();
    let log = new_log(LogKind::Image, 0);
    fill_with_old_frames(&log, 32);
    log.clear_slot(end);
    assert_eq!(slot(&log, end), 0);
    fill_with_old_frames(&log, 32);
    assert_eq!(log.clear_range(end - 64, end), end);
    assert_eq!((slot(&log, end - 32), slot(&log, end)), (0, 0));

    let mut appender = appender_at(end - 64);
    assert_eq!(appender.append(&[1; 32], None), Ok(end));
    assert_eq!(slot(appender.log(), end), 0);
    let error = AppendError::MaxPositionExceeded;
    assert_eq!(appender.append(&[1], None), Err(error));
    assert_eq!(slot(appender.log(), end), 0);
}

#[test]
fn exclusive_append_clears_next_slot() {
    let mut appender = appender_at(64);
    let log = appender.log().clone();
    for length in [0, 1, 31, 32, 1376, 1377, 8192] {
        let position = appender.append(&vec![1; length], None).unwrap();
        assert_eq!(slot(&log, position), 0, "{length}");
    }
    let position = appender.claim(100).unwrap().commit();
    assert_eq!(slot(&log, position), 0);
    let position = appender.append_padding(500).unwrap();
    assert_eq!(slot(&log, position), 0);
}

#[test]
fn exclusive_append_of_any_lengths_leaves_no_stale_frame_behind_it() {
    let mut appender = appender_at(0);
    let log = appender.log().clone();
    // Short and long frames alternate, over all three terms and into used ones.
    let lengths = [0, 32, 480, 481, 1376, 64, 4096, 1, 2048, 100];
    let mut sent = 0;
    while appender.position() < 4 * i64::from(TERM_LENGTH) {
        let length = lengths[sent % lengths.len()];
        let appended = appender.append(&vec![1; length], None);
        let position = appender.position();
        assert_eq!(slot(&log, position), 0, "{appended:?} at {position}");
        sent += 1;
    }
}

#[test]
fn exclusive_append_of_short_frames_clears_beyond_the_lines_that_a_reader_prefetches() {
    let mut appender = appender_at(0);
    let log = appender.log().clone();
    let mut append = |length: usize| {
        let position = appender.append(&vec![1; length], None).unwrap();
        let stale = (position..).step_by(32).find(|at| slot(&log, *at) != 0);
        stale.unwrap() - position
    };
    // Steadily, so that no message has to wait for all of it.
    let distances: Vec<i64> = (0..40).map(|_| append(32)).collect();
    assert!(
        distances
            .iter()
            .zip(&distances[1..])
            .all(|(a, b)| b - a <= 96)
    );
    assert_eq!(distances[39], 2048);
    append(1376);
    assert!((0..40).map(|_| append(32)).all(|distance| distance > 0));
    assert_eq!(append(32), 2048);
}

#[test]
fn exclusive_rotation_clears_first_slot_of_next_term() {
    let term_length = i64::from(TERM_LENGTH);
    // The term ends with a frame, or with padding.
    for (start, length) in [(term_length - 64, 32), (term_length - 64, 100)] {
        let mut appender = appender_at(start);
        let _result = appender.append(&vec![1; length], None);
        assert_eq!(slot(appender.log(), term_length), 0, "{length}");
    }
}

#[test]
fn unblock_reserved_space_without_frame_pads_to_tail() {
    let appender = appender_at(0);
    let log = appender.log();
    reserve_and_die(&appender, 256);
    assert!(log.unblock(0));
    assert_eq!((slot(log, 0), slot(log, 256)), (256, 0));
    assert!(!log.unblock(256), "nothing is reserved there");
}

#[test]
fn unblock_started_frame_pads_to_tail() {
    let appender = appender_at(0);
    let log = appender.log();
    // Of three fragments, one is committed and one started.
    put(log.term(0), 0, &[1; 32]);
    put_length(log.term(0), 64, -64);
    reserve_and_die(&appender, 192);
    assert!(!log.unblock(0), "it is committed");
    assert!(log.unblock(64));
    assert_eq!((slot(log, 64), slot(log, 192)), (128, 0));
}

#[test]
fn unblock_abandoned_claim_keeps_following_frames() {
    let mut appender = appender_at(0);
    std::mem::forget(appender.claim(40).unwrap());
    let end = appender.append(&[1; 40], None).unwrap();
    let log = appender.log();
    assert!(log.unblock(0));
    assert_eq!((slot(log, 0), slot(log, 96), slot(log, end)), (72, 72, 0));
}

#[test]
fn exclusive_append_zeroes_alignment_bytes() {
    let mut appender = appender_at(0);
    let log = appender.log().clone();
    for partition in 0..3 {
        log.term(partition).write(32, &[0xAA; 4096]);
    }
    let mut at = 0;
    for length in [1, 31, 33, 1377] {
        let end = appender.append(&vec![1; length], None).unwrap();
        assert_eq!(log.term(0).bytes(end as usize - 1, 1), [0], "{length}");
        at = end;
    }
    let end = appender.claim(1).unwrap().commit();
    assert_eq!(
        (end - at, log.term(0).bytes(end as usize - 31, 31)),
        (64, &[0; 31][..])
    );
}

#[test]
fn clears_ahead_of_shared_log_is_false() {
    let log = log();
    log.set_clears_ahead();
    assert!(!log.clears_ahead());
}

#[test]
fn unblock_at_term_end_rotates_to_empty_term() {
    let appender = appender_at(0);
    let log = appender.log();
    let blocked = i64::from(TERM_LENGTH) - 96;
    log.clear_slot(blocked);
    reserve_and_die(&appender, TERM_LENGTH + 64);
    assert!(log.unblock(blocked));
    assert_eq!(
        (slot(log, blocked), slot(log, i64::from(TERM_LENGTH))),
        (96, 0)
    );
    assert_eq!(log.active_term_count(), 1);
}

#[test]
fn unblock_with_hostile_tail_does_nothing() {
    let appender = appender_at(64);
    for tail in [0, 32, 64, 65, 97] {
        reserve_and_die(&appender, tail);
        assert!(!appender.log().unblock(64), "{tail}");
    }
}
