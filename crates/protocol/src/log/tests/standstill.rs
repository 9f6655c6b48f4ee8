//! A standstill ends with whatever a publisher does.

use super::*;

fn exclusive() -> ExclusiveAppender {
    ExclusiveAppender::new(new_log(LogKind::Exclusive, 0)).unwrap()
}

#[test]
fn it_lasts_until_space_is_handed_out() {
    let shared = SharedAppender::new(log());
    let stands = shared.log().stands_at(0).unwrap();
    assert!(stands.lasts());
    let claim = shared.claim(shared.tail().unwrap(), 8).unwrap();
    assert!(!stands.lasts(), "nothing was committed yet");
    claim.commit();
    assert!(shared.log().stands_at(0).is_none());
    assert!(shared.log().stands_at(64).unwrap().lasts());

    let mut exclusive = exclusive();
    let log = exclusive.log().clone();
    let stands = log.stands_at(0).unwrap();
    assert!(stands.lasts());
    exclusive.append(b"message", None).unwrap();
    assert!(!stands.lasts());
    assert!(log.stands_at(64).unwrap().lasts());
}

#[test]
fn there_is_none_at_the_end_of_a_term() {
    let mut exclusive = exclusive();
    let log = exclusive.log().clone();
    let mut position = 0;
    while position < i64::from(TERM_LENGTH) {
        assert!(log.stands_at(position).unwrap().lasts());
        position = exclusive.append(&[1; 992], None).unwrap();
    }
    assert!(log.stands_at(position).is_none());
    let next_term = exclusive.append(&[1; 992], None);
    assert_eq!(next_term, Err(AppendError::AdminAction));
    assert!(log.stands_at(position).unwrap().lasts());
}

#[test]
fn padding_at_the_end_of_a_term_ends_it_too() {
    let shared = SharedAppender::new(log());
    let append = || shared.append(shared.tail().unwrap(), &[1; 1000], None);
    let (mut position, mut stands) = (0, shared.log().stands_at(0).unwrap());
    while let Ok(end) = append() {
        assert!(!stands.lasts());
        (position, stands) = (end, shared.log().stands_at(end).unwrap());
    }
    assert!(position < i64::from(TERM_LENGTH) && !stands.lasts());
}
