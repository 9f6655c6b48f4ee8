// SPDX-License-Identifier: Apache-2.0
//! A tail snapshot is outdated by every operation of a publisher.

use super::*;

fn exclusive() -> ExclusiveAppender {
    ExclusiveAppender::new(new_log(LogKind::Exclusive, 0)).unwrap()
}

#[test]
fn snapshot_is_current_until_space_is_reserved() {
    let shared = SharedAppender::new(log());
    let snapshot = shared.log().snapshot_if_drained(0).unwrap();
    assert!(snapshot.is_current());
    let claim = shared.claim(shared.tail().unwrap(), 8).unwrap();
    assert!(!snapshot.is_current(), "nothing was committed yet");
    claim.commit();
    assert!(shared.log().snapshot_if_drained(0).is_none());
    assert!(shared.log().snapshot_if_drained(64).unwrap().is_current());

    let mut exclusive = exclusive();
    let log = exclusive.log().clone();
    let snapshot = log.snapshot_if_drained(0).unwrap();
    assert!(snapshot.is_current());
    exclusive.append(b"message", None).unwrap();
    assert!(!snapshot.is_current());
    assert!(log.snapshot_if_drained(64).unwrap().is_current());
}

#[test]
fn snapshot_at_term_end_is_none() {
    let mut exclusive = exclusive();
    let log = exclusive.log().clone();
    let mut position = 0;
    while position < i64::from(TERM_LENGTH) {
        assert!(log.snapshot_if_drained(position).unwrap().is_current());
        position = exclusive.append(&[1; 992], None).unwrap();
    }
    assert!(log.snapshot_if_drained(position).is_none());
    let next_term = exclusive.append(&[1; 992], None);
    assert_eq!(next_term, Err(AppendError::AdminAction));
    assert!(log.snapshot_if_drained(position).unwrap().is_current());
}

#[test]
fn snapshot_is_outdated_after_padding_at_term_end() {
    let shared = SharedAppender::new(log());
    let append = || shared.append(shared.tail().unwrap(), &[1; 1000], None);
    let (mut position, mut snapshot) = (0, shared.log().snapshot_if_drained(0).unwrap());
    while let Ok(end) = append() {
        assert!(!snapshot.is_current());
        (position, snapshot) = (end, shared.log().snapshot_if_drained(end).unwrap());
    }
    assert!(position < i64::from(TERM_LENGTH) && !snapshot.is_current());
}
