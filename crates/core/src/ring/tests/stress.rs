// SPDX-License-Identifier: Apache-2.0
//! Real threads, a bounded number of messages.

use std::thread;

use super::{super::*, *};

/// Miri takes a thousand times as long for each.
const PER_PRODUCER: u64 = if cfg!(miri) { 60 } else { 30_000 };

fn message(producer: u64, number: u64) -> Vec<u8> {
    let mut payload = [producer.to_le_bytes(), number.to_le_bytes()].concat();
    payload.resize(16 + (number % 40) as usize, (producer + number) as u8);
    payload
}

#[test]
fn many_producers_lose_nothing_and_each_keeps_its_order() {
    const PRODUCERS: u64 = 3;
    let region = ring(1024);
    let (producer, mut consumer) = many_to_one(&region);
    thread::scope(|scope| {
        for id in 0..PRODUCERS {
            let producer = producer.clone();
            scope.spawn(move || {
                for number in 0..PER_PRODUCER {
                    let payload = message(id, number);
                    if number % 5 == 0 {
                        drop(producer.try_claim(1, 5)); // an aborted one in between
                    }
                    while producer.write(id as i32 + 1, &payload) == Err(WriteError::Full) {
                        thread::yield_now();
                    }
                }
            });
        }
        let mut next = [0; PRODUCERS as usize];
        while next.iter().sum::<u64>() < PRODUCERS * PER_PRODUCER {
            let read = consumer.read(10, |type_id, payload| {
                let producer = type_id as u64 - 1;
                let number = &mut next[producer as usize];
                assert_eq!(message(producer, *number), payload);
                *number += 1;
            });
            if read.unwrap() == 0 {
                thread::yield_now();
            }
        }
    });
    drain(&mut consumer);
    assert_eq!(0, consumer.size());
}

#[test]
fn one_producer_and_one_consumer_agree() {
    let region = ring(1024);
    let (mut producer, mut consumer) = one_to_one(&region);
    thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0..PER_PRODUCER {
                let payload = message(0, number);
                while producer.write(1, &payload) == Err(WriteError::Full) {
                    thread::yield_now();
                }
            }
        });
        let mut next = 0;
        while next < PER_PRODUCER {
            let read = consumer.read(10, |_, payload| {
                assert_eq!(message(0, next), payload);
                next += 1;
            });
            if read.unwrap() == 0 {
                thread::yield_now();
            }
        }
    });
}
