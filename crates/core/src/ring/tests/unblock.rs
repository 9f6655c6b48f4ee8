//! A producer dies between claim and commit (docs/spec/shared-memory.md §3.5).

use std::mem::forget;

use super::{super::WriteError, *};

/// Claims without a trace, as a producer does that dies right after the compare-and-swap.
fn claim_without_mark(region: &Region, length: i64) {
    let tail = trailer(region, TAIL);
    set_trailer(region, TAIL, tail + length);
}

#[test]
fn an_empty_ring_and_a_sound_record_are_left_alone() {
    let region = ring(256);
    let (producer, mut consumer) = many_to_one(&region);
    assert!(!consumer.unblock());
    producer.write(1, b"one").unwrap();
    assert!(!consumer.unblock());
    assert_eq!(1, drain(&mut consumer).len());
}

#[test]
fn a_marked_claim_becomes_padding() {
    let region = ring(256);
    let (producer, mut consumer) = many_to_one(&region);
    forget(producer.try_claim(1, 12).unwrap());
    producer.write(2, b"next").unwrap();
    assert!(drain(&mut consumer).is_empty());
    assert!(consumer.unblock());
    assert_eq!((20, -1), (word(&region, 0), word(&region, 4)));
    assert_eq!(vec![(2, b"next".to_vec())], drain(&mut consumer));
}

#[test]
fn a_claim_without_a_mark_ends_where_the_next_record_begins() {
    for start in [0, 1, 7] {
        let region = ring(256);
        let (producer, mut consumer) = many_to_one(&region);
        for _ in 0..start {
            producer.write(9, &[]).unwrap();
        }
        drain(&mut consumer);
        claim_without_mark(&region, 32);
        assert!(!consumer.unblock(), "nothing says where the claim ends");
        producer.write(2, b"next").unwrap();
        assert!(consumer.unblock(), "start {start}");
        assert_eq!(32, word(&region, start * 8));
        assert_eq!(vec![(2, b"next".to_vec())], drain(&mut consumer));
    }
}

#[test]
fn several_dead_claims_are_freed_one_after_the_other() {
    let region = ring(256);
    let (producer, mut consumer) = many_to_one(&region);
    forget(producer.try_claim(1, 8).unwrap());
    claim_without_mark(&region, 24);
    forget(producer.try_claim(1, 0).unwrap());
    producer.write(2, b"next").unwrap();
    for _ in 0..3 {
        assert!(drain(&mut consumer).is_empty());
        assert!(consumer.unblock());
    }
    assert_eq!(vec![(2, b"next".to_vec())], drain(&mut consumer));
    assert!(!consumer.unblock());
}

#[test]
fn a_claim_without_a_mark_may_reach_to_the_end_of_the_ring() {
    let region = ring(256);
    let (producer, mut consumer) = many_to_one(&region);
    for _ in 0..8 {
        producer.write(9, &[0; 16]).unwrap();
    }
    drain(&mut consumer);
    claim_without_mark(&region, 64);
    assert_eq!(256, consumer.tail());
    assert!(!consumer.unblock());
    producer.write(2, b"next").unwrap();
    assert!(
        consumer.unblock(),
        "the record at the beginning shows that the claim reaches to the end"
    );
    assert!(drain(&mut consumer).is_empty());
    assert_eq!(vec![(2, b"next".to_vec())], drain(&mut consumer));
}

#[test]
fn a_full_ring_is_unblocked() {
    let region = ring(256);
    let (producer, mut consumer) = many_to_one(&region);
    forget(producer.try_claim(1, 24).unwrap());
    while producer.write(2, &[1; 24]).is_ok() {}
    assert!(consumer.unblock());
    assert_eq!(7, drain(&mut consumer).len());
}

#[test]
fn dead_claims_on_both_sides_of_the_end_are_freed() {
    let region = ring(256);
    let (producer, mut consumer) = many_to_one(&region);
    for _ in 0..8 {
        producer.write(9, &[0; 16]).unwrap();
    }
    drain(&mut consumer);
    claim_without_mark(&region, 64);
    claim_without_mark(&region, 16);
    producer.write(2, b"next").unwrap();
    assert!(consumer.unblock());
    assert!(drain(&mut consumer).is_empty());
    assert!(consumer.unblock());
    assert_eq!(vec![(2, b"next".to_vec())], drain(&mut consumer));
}

#[test]
fn a_ring_that_is_full_of_nothing_is_freed() {
    for start in [0, 10] {
        let region = ring(256);
        let (producer, mut consumer) = many_to_one(&region);
        for _ in 0..start {
            producer.write(9, &[0; 8]).unwrap();
        }
        drain(&mut consumer);
        claim_without_mark(&region, 232);
        assert_eq!(Err(WriteError::Full), producer.write(1, &[1; 32]));
        assert!(consumer.unblock());
        assert!(drain(&mut consumer).is_empty());
        assert_eq!(Ok(()), producer.write(1, &[1; 32]));
    }
}
