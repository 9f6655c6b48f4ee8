// SPDX-License-Identifier: Apache-2.0
//! The ring with one producer.

use loom::thread;
use taran_core::{
    memory::Region,
    ring::{
        TRAILER_LENGTH,
        one_to_one::{Consumer, Producer},
    },
};

use super::explore;

/// A ring of 64 bytes with head and tail at `start`.
fn ring(start: usize) -> (Producer, Consumer) {
    let region = Region::anonymous(64 + TRAILER_LENGTH).unwrap();
    let (mut producer, mut consumer) = (
        Producer::open(&region).unwrap(),
        Consumer::open(&region).unwrap(),
    );
    for _ in 0..start / 8 {
        producer.write(1, &[]).unwrap();
        assert_eq!(Ok(1), consumer.read(1, |_, _| ()));
    }
    (producer, consumer)
}

/// The producer writes while the consumer reads. Accepted messages arrive once and in order.
fn write_and_read(start: usize, lengths: &'static [usize]) {
    explore(4, move || {
        let (mut producer, mut consumer) = ring(start);
        let writing = thread::spawn(move || {
            let mut accepted = Vec::new();
            for (number, length) in lengths.iter().enumerate() {
                let type_id = number as i32 + 1;
                if producer
                    .write(type_id, &vec![type_id as u8; *length])
                    .is_ok()
                {
                    accepted.push(type_id);
                }
            }
            accepted
        });
        let mut seen = Vec::new();
        let mut read = |consumer: &mut Consumer| {
            let read = consumer.read(4, |type_id, bytes| {
                assert!(bytes.iter().all(|byte| i32::from(*byte) == type_id));
                assert_eq!(lengths[type_id as usize - 1], bytes.len());
                seen.push(type_id);
            });
            read.unwrap()
        };
        read(&mut consumer);
        read(&mut consumer);
        let accepted = writing.join().unwrap();
        while consumer.head() != consumer.tail() {
            read(&mut consumer);
        }
        assert_eq!(accepted, seen);
    });
}

#[test]
fn consecutive_messages_arrive_in_order() {
    write_and_read(0, &[8, 0, 4]);
}

#[test]
fn message_ending_at_end_arrives() {
    write_and_read(48, &[8, 8]);
}

#[test]
fn message_beyond_end_wraps() {
    write_and_read(56, &[8, 8]);
}

#[test]
fn released_space_is_reused() {
    write_and_read(32, &[8, 8, 8, 8, 8]);
}
