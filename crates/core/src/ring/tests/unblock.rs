// SPDX-License-Identifier: Apache-2.0
//! A producer dies between claim and commit (docs/spec/shared-memory.md §3.5).

use std::mem::forget;

use super::{super::WriteError, *};

/// Claims space without marking it, like a producer that dies right after the compare-and-swap.
fn claim_without_mark(region: &Region, length: i64) {
    let tail = trailer(region, TAIL);
    set_trailer(region, TAIL, tail + length);
}

#[test]
fn unblock_empty_ring_or_intact_record_does_nothing() {
    let region = ring(256);
    let (producer, mut consumer) = many_to_one(&region);
    assert!(!consumer.unblock());
    producer.write(1, b"one").unwrap();
    assert!(!consumer.unblock());
    assert_eq!(1, drain(&mut consumer).len());
}

#[test]
fn unblock_marked_claim_makes_it_padding() {
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
fn unblock_unmarked_claim_ends_at_next_record() {
    for start in [0, 1, 7] {
        let region = ring(256);
        let (producer, mut consumer) = many_to_one(&region);
        for _ in 0..start {
            producer.write(9, &[]).unwrap();
        }
        drain(&mut consumer);
        claim_without_mark(&region, 32);
        assert!(!consumer.unblock(), "the end of the claim is unknown");
        producer.write(2, b"next").unwrap();
        assert!(consumer.unblock(), "start {start}");
        assert_eq!(32, word(&region, start * 8));
        assert_eq!(vec![(2, b"next".to_vec())], drain(&mut consumer));
    }
}

#[test]
fn unblock_frees_one_dead_claim_per_call() {
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
fn unblock_unmarked_claim_may_reach_end_of_ring() {
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
fn unblock_full_ring_frees_dead_claim() {
    let region = ring(256);
    let (producer, mut consumer) = many_to_one(&region);
    forget(producer.try_claim(1, 24).unwrap());
    while producer.write(2, &[1; 24]).is_ok() {}
    assert!(consumer.unblock());
    assert_eq!(7, drain(&mut consumer).len());
}

#[test]
fn unblock_frees_dead_claims_on_both_sides_of_the_end() {
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
fn unblock_ring_full_of_unmarked_claims_frees_it() {
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
