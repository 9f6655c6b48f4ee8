// SPDX-License-Identifier: Apache-2.0
//! The ring of commands: two producers and the consumer.

use std::mem::forget;

use loom::thread;
use taran_core::{
    memory::Region,
    ring::{
        TRAILER_LENGTH, WriteError,
        many_to_one::{Consumer, Producer},
    },
};

use super::explore;

/// A ring in which two records of 16 bytes fit, with head and tail at `start`.
fn ring(start: usize) -> (Producer, Consumer) {
    ring_of(32, start)
}

fn ring_of(capacity: usize, start: usize) -> (Producer, Consumer) {
    let region = Region::anonymous(capacity + TRAILER_LENGTH).unwrap();
    let (producer, mut consumer) = (
        Producer::open(&region).unwrap(),
        Consumer::open(&region).unwrap(),
    );
    for _ in 0..start / 8 {
        producer.write(1, &[]).unwrap();
        assert_eq!(Ok(1), consumer.read(1, |_, _| ()));
    }
    (producer, consumer)
}

fn payload(type_id: i32) -> [u8; 4] {
    [type_id as u8; 4]
}

/// Reads all available messages and records their types.
fn read(consumer: &mut Consumer, seen: &mut Vec<i32>) -> usize {
    let read = consumer.read(4, |type_id, bytes| {
        assert_eq!(payload(type_id), bytes);
        seen.push(type_id);
    });
    read.unwrap()
}

/// Reads until nothing is between head and tail.
fn drain(consumer: &mut Consumer, seen: &mut Vec<i32>) {
    while consumer.head() != consumer.tail() {
        read(consumer, seen);
    }
}

/// Two producers write a message each while the consumer reads; each accepted message arrives once.
fn write_and_read(preemptions: usize, start: usize) {
    explore(preemptions, move || {
        let (producer, mut consumer) = ring(start);
        let producers = [1, 2].map(|type_id| {
            let producer = producer.clone();
            thread::spawn(move || match producer.write(type_id, &payload(type_id)) {
                Ok(()) => Some(type_id),
                Err(error) => {
                    assert_eq!(WriteError::Full, error);
                    None
                }
            })
        });
        let mut seen = Vec::new();
        read(&mut consumer, &mut seen);
        read(&mut consumer, &mut seen);
        let accepted = producers.map(|producer| producer.join().unwrap());
        drain(&mut consumer, &mut seen);
        seen.sort_unstable();
        assert_eq!(accepted.into_iter().flatten().collect::<Vec<_>>(), seen);
    });
}

#[test]
fn two_producers_write_concurrently() {
    write_and_read(4, 0);
}

#[test]
fn two_producers_wrap_around_end() {
    write_and_read(4, 24);
}

#[test]
fn released_space_is_zero() {
    explore(5, || {
        let (producer, mut consumer) = ring(0);
        producer.write(1, &payload(1)).unwrap();
        producer.write(2, &payload(2)).unwrap();
        let writer = thread::spawn(move || {
            // Full until the consumer has released the first record; then its bytes are reused.
            [3, 4].map(|type_id| producer.write(type_id, &payload(type_id)).is_ok())
        });
        let mut seen = Vec::new();
        for _ in 0..2 {
            let _ = consumer.read(1, |type_id, bytes| {
                assert_eq!(payload(type_id), bytes);
                seen.push(type_id);
            });
        }
        let written = writer.join().unwrap();
        drain(&mut consumer, &mut seen);
        let mut expected = vec![1, 2];
        expected.extend(
            [3, 4]
                .into_iter()
                .zip(written)
                .filter_map(|(type_id, ok)| ok.then_some(type_id)),
        );
        assert_eq!(expected, seen);
    });
}

#[test]
fn released_space_seen_by_one_producer_is_zero_for_the_other() {
    explore(4, || {
        let (producer, mut consumer) = ring(0);
        producer.write(1, &payload(1)).unwrap();
        producer.write(2, &payload(2)).unwrap();
        let writers = [3, 4].map(|type_id| {
            let producer = producer.clone();
            thread::spawn(move || {
                producer
                    .write(type_id, &payload(type_id))
                    .ok()
                    .map(|()| type_id)
            })
        });
        let mut seen = Vec::new();
        read(&mut consumer, &mut seen);
        let written = writers.map(|writer| writer.join().unwrap());
        drain(&mut consumer, &mut seen);
        assert_eq!([1, 2], seen[..2]);
        seen[2..].sort_unstable();
        assert_eq!(written.into_iter().flatten().collect::<Vec<_>>(), seen[2..]);
    });
}

/// A producer died after its claim; another one writes, and the consumer unblocks the ring. There is space for a third
/// record: in a full ring a slow producer cannot be distinguished from a dead one.
fn unblock_while_another_writes(start: usize, die: impl Fn(&Producer) + Sync + Send + 'static) {
    explore(5, move || {
        let (producer, mut consumer) = ring_of(64, start);
        die(&producer);
        let writing = thread::spawn(move || producer.write(2, &payload(2)).unwrap());
        // The consumer is spawned last: loom would miss interleavings otherwise.
        let reading = thread::spawn(move || {
            let mut seen = Vec::new();
            assert_eq!(0, read(&mut consumer, &mut seen));
            let freed = consumer.unblock();
            read(&mut consumer, &mut seen);
            (consumer, seen, freed)
        });
        writing.join().unwrap();
        let (mut consumer, mut seen, freed) = reading.join().unwrap();
        // The head is still at the dead claim, or the claim was freed; a live claim is never freed.
        assert!(freed || consumer.unblock());
        drain(&mut consumer, &mut seen);
        assert_eq!(vec![2], seen);
    });
}

#[test]
fn unblock_marked_claim_skips_it() {
    unblock_while_another_writes(0, |producer| forget(producer.try_claim(1, 4).unwrap()));
}

#[test]
fn unblock_unmarked_claim_skips_it() {
    unblock_while_another_writes(0, |producer| producer.reserve_and_abandon(4));
}

#[test]
fn unblock_unmarked_claim_before_end_skips_it() {
    unblock_while_another_writes(40, |producer| producer.reserve_and_abandon(4));
}

#[test]
fn aborted_claim_is_skipped() {
    explore(5, || {
        let (producer, mut consumer) = ring(16);
        let other = producer.clone();
        let aborting = thread::spawn(move || drop(other.try_claim(1, 4)));
        let writing = thread::spawn(move || producer.write(2, &payload(2)));
        let mut seen = Vec::new();
        read(&mut consumer, &mut seen);
        aborting.join().unwrap();
        let written = writing.join().unwrap();
        drain(&mut consumer, &mut seen);
        assert_eq!(usize::from(written.is_ok()), seen.len());
    });
}

#[test]
fn correlation_ids_are_unique() {
    explore(5, || {
        let (producer, consumer) = ring(0);
        let other = producer.clone();
        let taking = thread::spawn(move || other.next_correlation_id());
        let mut ids = [
            producer.next_correlation_id(),
            consumer.next_correlation_id(),
            taking.join().unwrap(),
        ];
        ids.sort_unstable();
        assert_eq!([0, 1, 2], ids);
    });
}
