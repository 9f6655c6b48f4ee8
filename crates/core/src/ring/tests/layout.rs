// SPDX-License-Identifier: Apache-2.0
//! The layout that other implementations see (docs/spec/shared-memory.md §3), and returned errors.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{super::*, *};

#[test]
fn write_record_has_length_type_and_payload() {
    let region = ring(128);
    let (producer, mut consumer) = many_to_one(&region);
    producer.write(7, b"hello").unwrap();
    assert_eq!([13, 0, 0, 0, 7, 0, 0, 0], region.bytes(0, 8));
    assert_eq!(b"hello", region.bytes(8, 5));
    assert_eq!((16, 0), (trailer(&region, TAIL), trailer(&region, HEAD)));
    assert_eq!(16, producer.size());

    assert_eq!(vec![(7, b"hello".to_vec())], drain(&mut consumer));
    assert_eq!(
        [0; 16],
        region.bytes(0, 16),
        "consumed bytes are zeroed before the head advances"
    );
    assert_eq!((16, 16), (trailer(&region, TAIL), trailer(&region, HEAD)));
    assert_eq!(0, consumer.size());
}

#[test]
fn claim_length_is_negative_until_commit_or_abort() {
    let region = ring(128);
    let (producer, mut consumer) = many_to_one(&region);
    let mut claim = producer.try_claim(3, 4).unwrap();
    claim.copy_from_slice(b"abcd");
    assert_eq!(-12, word(&region, 0));
    let aborted = producer.try_claim(4, 9).unwrap();
    assert_eq!(-17, word(&region, 16));
    assert!(drain(&mut consumer).is_empty());

    aborted.abort();
    assert_eq!((17, -1), (word(&region, 16), word(&region, 20)));
    claim.commit();
    drop(producer.try_claim(5, 0).unwrap());
    producer.write(6, b"").unwrap();
    assert_eq!(
        vec![(3, b"abcd".to_vec()), (6, vec![])],
        drain(&mut consumer)
    );
    assert_eq!(consumer.head(), consumer.tail());

    let panics = AssertUnwindSafe(|| producer.write_with(1, 1, |_| panic!("while filling")));
    assert!(catch_unwind(panics).is_err());
    producer.write(1, b"next").unwrap();
    assert_eq!(vec![(1, b"next".to_vec())], drain(&mut consumer));
}

#[test]
fn has_next_matches_read() {
    let region = ring(128);
    let (producer, mut consumer) = many_to_one(&region);
    assert!(!consumer.has_next());
    let claim = producer.try_claim(3, 4).unwrap();
    producer.write(4, b"second").unwrap();
    assert!(!consumer.has_next(), "not committed");
    claim.commit();
    assert!(consumer.has_next());
    assert_eq!(2, drain(&mut consumer).len());
    assert!(!consumer.has_next());

    producer.write(5, b"").unwrap();
    set_word(&region, consumer.head() as usize, i32::MAX);
    assert!(consumer.has_next(), "a damaged record is reported by read");
    assert!(consumer.read(1, |_, _| ()).is_err());
    assert!(!consumer.has_next());
}

#[test]
fn write_beyond_end_pads_and_wraps() {
    let region = ring(128);
    let (producer, mut consumer) = many_to_one(&region);
    for _ in 0..5 {
        producer.write(1, &[9; 16]).unwrap();
    }
    // 120 of 128 bytes are used, and the head is at 0: no space to wrap.
    assert_eq!(Err(WriteError::Full), producer.write(2, &[8; 8]));
    assert_eq!(
        120,
        trailer(&region, TAIL),
        "a rejected write changes nothing"
    );
    assert_eq!(2, consumer.read(2, |_, _| ()).unwrap());
    producer.write(2, &[8; 8]).unwrap();
    assert_eq!((8, -1), (word(&region, 120), word(&region, 124)));
    assert_eq!((16, 2), (word(&region, 0), word(&region, 4)));
    assert_eq!(144, trailer(&region, TAIL));
    assert_eq!(
        3,
        consumer
            .read(10, |type_id, _| assert_eq!(1, type_id))
            .unwrap()
    );
    assert_eq!(vec![(2, vec![8; 8])], drain(&mut consumer));
    assert_eq!(144, consumer.head());
}

#[test]
fn one_to_one_write_pads_end_before_it_returns_full() {
    let region = ring(128);
    let (mut producer, mut consumer) = one_to_one(&region);
    for _ in 0..4 {
        producer.write(1, &[9; 16]).unwrap();
    }
    assert_eq!(1, consumer.read(1, |_, _| ()).unwrap());
    // 32 bytes are left at the end: a record of 24 and the next header.
    producer.write(2, &[8; 16]).unwrap();
    assert_eq!(120, trailer(&region, TAIL));
    // 8 are left there, and 24 at the beginning: enough for the record, not for the next header.
    assert_eq!(Err(WriteError::Full), producer.write(3, &[7; 16]));
    assert_eq!((8, -1), (word(&region, 120), word(&region, 124)));
    assert_eq!(128, trailer(&region, TAIL));
    assert_eq!(Ok(()), producer.write(3, &[7; 8]));
    assert_eq!(Err(WriteError::Full), producer.write(3, &[]));
    let mut types = Vec::new();
    while consumer.read(10, |type_id, _| types.push(type_id)).unwrap() > 0 {}
    assert_eq!([1, 1, 1, 2, 3], *types);
}

#[test]
fn controlled_read_action_decides_what_is_consumed() {
    let region = ring(256);
    let (producer, mut consumer) = many_to_one(&region);
    for type_id in 1..=8 {
        producer.write(type_id, &[]).unwrap();
    }
    let mut seen = Vec::new();
    let mut heads = Vec::new();
    let mut read = |action: fn(i32) -> Action| {
        let count = consumer.controlled_read(3, |type_id, _| {
            seen.push(type_id);
            heads.push(trailer(&region, HEAD));
            action(type_id)
        });
        (count.unwrap(), trailer(&region, HEAD))
    };
    assert_eq!((0, 0), read(|_| Action::Abort));
    assert_eq!((1, 8), read(|_| Action::Break));
    assert_eq!(
        (1, 16),
        read(|type_id| if type_id == 3 {
            Action::Abort
        } else {
            Action::Continue
        })
    );
    assert_eq!((3, 40), read(|_| Action::Commit));
    assert_eq!((3, 64), read(|_| Action::Continue));
    assert_eq!([1, 1, 2, 3, 3, 4, 5, 6, 7, 8], *seen);
    assert_eq!([0, 0, 8, 8, 16, 24, 32, 40, 40, 40], *heads);
    assert!(region.bytes(0, 256).iter().all(|byte| *byte == 0));
}

#[test]
fn read_with_panicking_handler_consumes_message() {
    let region = ring(128);
    let (producer, mut consumer) = many_to_one(&region);
    producer.write(1, b"bad").unwrap();
    producer.write(2, b"good").unwrap();
    let read = AssertUnwindSafe(|| consumer.read(2, |_, _| panic!("in the handler")));
    assert!(catch_unwind(read).is_err());
    assert_eq!(vec![(2, b"good".to_vec())], drain(&mut consumer));
}

#[test]
fn write_invalid_message_is_rejected() {
    let region = ring(128);
    let (producer, mut consumer) = many_to_one(&region);
    assert_eq!(16, producer.max_message_length());
    assert_eq!(Err(WriteError::BadTypeId(0)), producer.write(0, &[]));
    assert_eq!(Err(WriteError::BadTypeId(-1)), producer.write(-1, &[]));
    assert_eq!(
        Err(WriteError::TooLong {
            length: 17,
            max: 16
        }),
        producer.write(1, &[0; 17])
    );
    assert!(producer.try_claim(1, usize::MAX).is_err());
    assert_eq!(0, consumer.read(1, |_, _| ()).unwrap());
    assert_eq!(0, trailer(&region, TAIL));
}

#[test]
fn open_region_of_invalid_length_fails() {
    for length in [8, 767, 768, 768 + 16, 768 + 100, 768 + 1024 + 8] {
        let region = Region::anonymous(length).unwrap();
        let error = many_to_one::Producer::open(&region).unwrap_err();
        assert_eq!(RingError::Length { length }, error);
        assert!(error.to_string().contains(&length.to_string()));
    }
}

#[test]
fn trailer_has_correlation_id_and_heartbeat() {
    let region = ring(128);
    let (producer, consumer) = many_to_one(&region);
    assert_eq!(
        [0, 1, 2],
        [
            producer.next_correlation_id(),
            consumer.next_correlation_id(),
            producer.next_correlation_id()
        ]
    );
    assert_eq!(3, trailer(&region, 512));
    consumer.set_heartbeat_ms(77);
    assert_eq!(
        (77, 77),
        (trailer(&region, 640), producer.consumer_heartbeat_ms())
    );
}

#[test]
fn open_consumer_continues_at_head() {
    let region = ring(128);
    let (producer, mut consumer) = many_to_one(&region);
    producer.write(1, b"one").unwrap();
    producer.write(2, b"two").unwrap();
    consumer.read(1, |_, _| ()).unwrap();
    let mut next = many_to_one::Consumer::open(&region).unwrap();
    assert_eq!(vec![(2, b"two".to_vec())], drain(&mut next));

    set_trailer(&region, HEAD, 3);
    assert_eq!(
        Some(RingError::Position { position: 3 }),
        many_to_one::Consumer::open(&region).err()
    );
}

#[test]
fn positions_wrap_around_at_i64_max() {
    let region = ring(128);
    let start = i64::MAX - 127;
    for field in [TAIL, HEAD_CACHE, HEAD] {
        set_trailer(&region, field, start);
    }
    let (producer, mut consumer) = many_to_one(&region);
    for round in 0..40 {
        producer.write(1, &[round; 16]).unwrap();
        let mut seen = 0;
        while seen == 0 {
            seen = consumer
                .read(1, |_, payload| assert_eq!([round; 16], payload))
                .unwrap();
        }
    }
}
