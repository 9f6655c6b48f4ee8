// SPDX-License-Identifier: Apache-2.0
//! Arbitrary bytes written to a mapped ring: the consumer reports the corruption and continues.

use proptest::prelude::*;

use super::{super::*, *};

#[test]
fn read_invalid_length_fails_and_ring_continues() {
    for length in [1, 7, 33, 4096, i32::MAX] {
        let region = ring(1024);
        let (producer, mut consumer) = many_to_one(&region);
        producer.write(1, b"good").unwrap();
        producer.write(2, b"bad").unwrap();
        producer.write(3, b"lost").unwrap();
        set_word(&region, 16, length);

        assert_eq!(
            vec![(1, b"good".to_vec())],
            drain(&mut consumer),
            "{length}"
        );
        let error = consumer
            .read(9, |_, _| panic!("no record is delivered"))
            .unwrap_err();
        assert_eq!(
            Corrupt {
                position: 16,
                length,
                tail: 48,
                dropped: 32
            },
            error
        );
        assert!(error.to_string().contains("position 16"), "{error}");
        assert_eq!(consumer.head(), consumer.tail());

        producer.write(4, b"again").unwrap();
        assert_eq!(vec![(4, b"again".to_vec())], drain(&mut consumer));
    }
}

#[test]
fn read_length_beyond_tail_fails() {
    let region = ring(1024);
    let (producer, mut consumer) = many_to_one(&region);
    producer.write(1, b"one").unwrap();
    set_word(&region, 0, 64);
    assert!(consumer.read(1, |_, _| ()).is_err(), "the tail is at 16");
}

#[test]
fn read_invalid_tail_repairs_it() {
    for tail in [3, -8, 15, 16 + 1024 + 8, i64::MIN, i64::MAX, i64::MAX - 7] {
        let region = ring(1024);
        let (producer, mut consumer) = many_to_one(&region);
        producer.write(1, b"one").unwrap();
        set_trailer(&region, TAIL, tail);
        if tail % 8 != 0 {
            assert!(matches!(
                producer.write(1, b"two"),
                Err(WriteError::Corrupt { .. })
            ));
        }
        assert!(consumer.read(1, |_, _| ()).is_err(), "{tail}");
        producer.write(2, b"three").unwrap();
        let mut messages = drain(&mut consumer);
        messages.extend(drain(&mut consumer)); // the first read may have stopped at the end of the memory
        assert_eq!(vec![(2, b"three".to_vec())], messages, "{tail}");
    }
}

#[test]
fn unblock_repairs_tail_that_makes_ring_full() {
    let region = ring(1024);
    let (producer, mut consumer) = many_to_one(&region);
    set_trailer(&region, TAIL, 1 << 40);
    assert!(matches!(
        producer.write(1, b"one"),
        Err(WriteError::Corrupt { .. })
    ));
    assert_eq!(Ok(0), consumer.read(1, |_, _| ()));
    assert!(consumer.unblock());
    producer.write(1, b"one").unwrap();
    assert_eq!(vec![(1, b"one".to_vec())], drain(&mut consumer));
}

#[test]
fn head_in_trailer_is_overwritten_by_consumer() {
    let region = ring(1024);
    let (producer, mut consumer) = many_to_one(&region);
    producer.write(1, b"one").unwrap();
    set_trailer(&region, HEAD, 5);
    assert_eq!(vec![(1, b"one".to_vec())], drain(&mut consumer));
    assert_eq!(16, trailer(&region, HEAD));
}

#[test]
fn heartbeat_repairs_head_that_makes_empty_ring_full() {
    let region = ring(128);
    let (producer, mut consumer) = many_to_one(&region);
    for _ in 0..9 {
        producer.write(1, b"message").unwrap();
        drain(&mut consumer);
    }
    set_trailer(&region, HEAD, 0);
    set_trailer(&region, HEAD_CACHE, 0);
    assert_eq!(
        Err(WriteError::Corrupt { tail: 144, head: 0 }),
        producer.write(1, b"message")
    );
    consumer.set_heartbeat_ms(1);
    assert_eq!(Ok(()), producer.write(1, b"message"));
}

#[test]
fn repair_of_sound_ring_does_nothing() {
    let region = ring(1024);
    let (producer, mut consumer) = many_to_one(&region);
    assert_eq!(consumer.repair(), None);
    producer.write(1, b"one").unwrap();
    assert_eq!(consumer.repair(), None);
    std::mem::forget(producer.try_claim(2, 8).unwrap());
    assert_eq!(consumer.repair(), None);
    assert_eq!(vec![(1, b"one".to_vec())], drain(&mut consumer));
    assert_eq!(consumer.repair(), None, "a claim is not damage");
}

#[test]
fn repair_of_impossible_tail_returns_the_damage() {
    for tail in [-8, 3, 1024 + 8, 1 << 40, i64::MIN, i64::MAX] {
        let region = ring(1024);
        let (producer, mut consumer) = many_to_one(&region);
        set_trailer(&region, TAIL, tail);
        let damage = consumer.repair().expect("the tail is impossible");
        assert_eq!((damage.position, damage.tail), (0, tail));
        assert_eq!(consumer.repair(), None, "{tail}");
        producer.write(1, b"one").unwrap();
        let mut messages = drain(&mut consumer);
        messages.extend(drain(&mut consumer)); // the first may have ended with the ring's memory
        assert_eq!(vec![(1, b"one".to_vec())], messages, "{tail}");
    }
}

#[test]
fn repair_of_tail_before_unread_records_clears_them() {
    let region = ring(1024);
    let (producer, mut consumer) = many_to_one(&region);
    producer.write(1, b"lost").unwrap();
    producer.write(1, b"lost too").unwrap();
    set_trailer(&region, TAIL, 0);
    assert!(consumer.has_next());
    assert!(drain(&mut consumer).is_empty());
    assert!(consumer.repair().is_some());
    assert!(!consumer.has_next());
    producer.write(2, b"next").unwrap();
    assert_eq!(vec![(2, b"next".to_vec())], drain(&mut consumer));
    assert!(!consumer.has_next());
}

#[test]
fn write_with_damaged_head_is_refused_as_corrupt() {
    for head in [8, 3, 1 << 40, -2048, i64::MIN] {
        let region = ring(1024);
        let (producer, consumer) = many_to_one(&region);
        set_trailer(&region, HEAD, head);
        set_trailer(&region, HEAD_CACHE, head);
        assert_eq!(
            Err(WriteError::Corrupt { tail: 0, head }),
            producer.write(1, b"one")
        );
        assert_eq!(trailer(&region, TAIL), 0);
        consumer.set_heartbeat_ms(1);
        assert_eq!(Ok(()), producer.write(1, b"one"));
    }
}

#[derive(Clone, Debug)]
enum Call {
    Write(usize),
    Word(usize, i32),
    Trailer(usize, i64),
    Read(usize),
    Unblock,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let word = prop_oneof![any::<i32>(), -70..70, Just(i32::MIN), Just(i32::MAX)];
    let field = prop_oneof![Just(TAIL), Just(HEAD_CACHE), Just(HEAD)];
    let position = prop_oneof![
        any::<i64>(),
        -300_i64..300,
        (-40_i64..40).prop_map(|number| number * 8)
    ];
    let call = prop_oneof![
        4 => (0_usize..17).prop_map(Call::Write),
        3 => (0_usize..32, word).prop_map(|(index, word)| Call::Word(index * 4, word)),
        1 => (field, position).prop_map(|(field, position)| Call::Trailer(field, position)),
        4 => (1_usize..4).prop_map(Call::Read),
        2 => Just(Call::Unblock),
    ];
    prop::collection::vec(call, 0..100)
}

proptest! {
    /// Under AddressSanitizer this also checks that nothing outside the ring is accessed.
    #[test]
    #[cfg_attr(miri, ignore = "property tests take hours under Miri")]
    fn ring_recovers_after_arbitrary_writes(calls in calls()) {
        let region = ring(128);
        let (producer, mut consumer) = many_to_one(&region);
        let (mut single, mut single_consumer) = one_to_one(&region);
        for call in calls {
            match call {
                Call::Write(length) => {
                    let _ = producer.write(1, &vec![0xEE; length]);
                    let _ = single.write(1, &vec![0xEE; length]);
                }
                Call::Word(offset, word) => set_word(&region, offset, word),
                Call::Trailer(field, position) => set_trailer(&region, field, position),
                Call::Read(limit) => {
                    let _ = consumer.read(limit, |_, payload| assert!(payload.len() <= 120));
                    let _ = single_consumer.read(limit, |_, payload| assert!(payload.len() <= 120));
                }
                Call::Unblock => { consumer.unblock(); }
            }
        }
        // After the last arbitrary write the ring repairs itself within a few passes.
        for _ in 0..64 {
            let _ = producer.write(1, &[0; 9]);
            let _ = consumer.read(usize::MAX, |_, _| ());
            let _ = consumer.read(usize::MAX, |_, _| ());
            consumer.unblock();
            consumer.set_heartbeat_ms(0);
        }
        for round in 0..40 {
            prop_assert_eq!(Ok(()), producer.write(5, &[round; 9]));
            let mut seen = Vec::new();
            for _ in 0..2 {
                consumer.read(9, |type_id, payload| seen.push((type_id, payload.to_vec()))).unwrap();
            }
            prop_assert_eq!(vec![(5, vec![round; 9])], seen);
        }
    }
}
